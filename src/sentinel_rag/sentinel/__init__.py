"""Library: what Microsoft Sentinel knows, read through Azure Log Analytics and returned as typed results.

`service.SentinelService` is the way in: one async call for each tool, over workspaces of a `logs.log_analytics`
connection that a credential of `credentials` signs. `entities`, `alerts` and `incidents` say what a row means, each
knowing those before it; the modules beside them are tools that join several. Nothing is imported here, so that a
process pays for Azure's SDK only where it makes a connection.
"""
