"""Freeform KQL where the operator has opted in: what the supervisor hands to the Sentinel tool server, and what that
makes of it. The supervisor looks for Microsoft's parser, because a tool server has no PATH to find node by.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.sentinel.freeform_query import FreeformQueries

_FALLBACK = (
    "Freeform KQL is on, but Microsoft's parser is not there: queries are checked by a fallback, which knows no types "
    "and refuses more."
)


def switched_off_tools(settings: Settings) -> list[str]:
    """Tools of the policy that this run neither serves nor lets pass."""
    return [] if settings.freeform_kql else sorted(OPT_IN_TOOLS)


def freeform_configuration(settings: Settings) -> dict[str, Any] | None:
    """The tool server's share of its configuration line; None where freeform KQL is off."""
    if not settings.freeform_kql:
        return None
    from sentinel_rag.sentinel.kql_guard.parser_installation import parser_state

    state = parser_state()
    parser = None
    if not state.missing and state.node is not None:
        version = list(state.node.version)
        parser = {"folder": str(state.folder), "node": str(state.node.program), "version": version}
    return {"tables": list(settings.freeform_tables), "parser": parser}


def freeform_queries(configuration: Mapping[str, Any] | None) -> FreeformQueries | None:
    """The tool, its parser starting in the background; None where freeform KQL is off."""
    if configuration is None:
        return None
    from sentinel_rag.sentinel.freeform_query import FreeformQueries
    from sentinel_rag.sentinel.kql_guard import KqlGuard, OfficialParser

    found = configuration["parser"]
    parser = None
    if found is None:
        from sentinel_rag.app.serving import give_notice

        give_notice(UnavailableError(_FALLBACK, next_step="Run: sentinel kql install (it needs npm and node)"))
    else:
        parser = OfficialParser(Path(found["folder"]), Path(found["node"]), node_version=tuple(found["version"]))
        parser.warm()
    tables = configuration["tables"]
    return FreeformQueries(KqlGuard(parser), allowed_tables=frozenset(tables) if tables else None)
