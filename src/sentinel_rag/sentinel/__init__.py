"""Library: what Microsoft Sentinel knows, read through Azure Log Analytics and returned as typed results.

`service.SentinelService` is the way in: one async call for each tool, over workspaces of a `log_analytics.LogAnalytics`
connection that a credential of `credentials` signs. The other modules serve these; templates are data in `templates/`.
Nothing is imported here, so that a process pays for Azure's SDK only where it makes a connection.
"""
