"""KQL over the store: kql-duckdb with the workspace's tables, time range and limits around it.

Others use `KqlEngine` and the errors; everything else is in the modules of this folder.
"""
