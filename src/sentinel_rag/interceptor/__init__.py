"""Zone B: authenticates, labels, decides, records and forwards each tool call; it executes nothing."""
