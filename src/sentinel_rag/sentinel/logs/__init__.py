"""A workspace in Azure Log Analytics: connection and tables, and the texts, times and names that queries are of."""
