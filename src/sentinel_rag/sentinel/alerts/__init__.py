"""SecurityAlert: the newest row of each alert, what it says, how their number went, and the query stored in one."""
