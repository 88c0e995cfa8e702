"""Microsoft Sentinel's REST API (Resource Manager, api-version 2025-09-01), on Azure and on the embedded workspace.

`ArmConnection` is one endpoint with one credential, `SentinelRest` one workspace behind it, `Incident` what it answers.
"""

from sentinel_rag.sentinel.rest.connection import ArmConnection
from sentinel_rag.sentinel.rest.incident_client import Incident, IncidentComment, IncidentRelation, SentinelRest

__all__ = ["ArmConnection", "Incident", "IncidentComment", "IncidentRelation", "SentinelRest"]
