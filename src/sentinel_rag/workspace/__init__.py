"""The embedded workspace: a DuckDB store that runs KQL and speaks the Log Analytics query protocol on loopback."""
