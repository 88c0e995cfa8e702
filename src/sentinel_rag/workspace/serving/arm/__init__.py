"""Microsoft Sentinel's REST API over the embedded workspace, as Azure Resource Manager serves it.

`routes` of `incident_routes` is all that others need. Paths, bodies, statuses and limits are those of api-version
2025-09-01.
"""
