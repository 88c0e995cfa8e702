"""What a policy may leave out about the file and web tools of this product: where they run and what they take.

Files in the form of the source template name such a tool and its rules alone. Their parameters are then those of the
tool's schema, each text in the canonical form that keeps a rule from being walked around (`./confidential//x`). Nothing
else has a default here: effect, labels and rules are the author's, and what is not said stays the worst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sentinel_rag.contracts.file_tools import FILE_TOOLS
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.web_tools import WEB_TOOLS
from sentinel_rag.gateway.policy.conditions import Kind, ValueType
from sentinel_rag.gateway.policy.model import Parameter

QUERY_SHAPED = frozenset({"run_freeform_kql", "get_alert_events"})
"""Tools of the Sentinel server whose columns are named, and whose rows may be made up, by the text of a query: `project
Total = CommandLine`, `evaluate pivot(CommandLine)`, `print owner = "..."`."""

MANY_NAMES: Mapping[str, str] = {
    "get_incident_detail": "incident",
    "query_alerts": "incident",
    "search_knowledge_base": "like_incident",
}
"""Tools of this product with a parameter that takes one incident by its number, a GUID, a Defender id or an address."""

_FORMATS = {"file_path": "path", "directory": "path", "url": "url"}


@dataclass(frozen=True, slots=True)
class OwnTool:
    """The server that runs a tool, and its parameters by name."""

    server: str
    parameters: Mapping[str, Parameter]


def _own(server: str, schema: ToolSchema) -> OwnTool:
    required = schema.required()
    return OwnTool(
        server,
        {
            name: Parameter(
                name, ValueType(Kind(str(wanted["type"]))), required=name in required, format=_FORMATS.get(name)
            )
            for name, wanted in schema.parameter_schemas().items()
        },
    )


OWN_TOOLS: Mapping[str, OwnTool] = {
    **{schema.name: _own("files", schema) for schema in FILE_TOOLS},
    **{schema.name: _own("web", schema) for schema in WEB_TOOLS},
}
