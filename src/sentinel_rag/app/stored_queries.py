"""The queries that alerts hold: what the supervisor hands to the Sentinel tool server, and what that makes of it.

A tool server has no PATH to find node by, so the supervisor tells where node lies. Whether Microsoft's parser is there
is found out with the first stored query and not at start, because most runs have none.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.sentinel.alert_events import AlertEvents
    from sentinel_rag.sentinel.kql_guard import KqlGuard


def stored_query_configuration(settings: Settings) -> dict[str, Any]:
    """The tool server's share of its configuration line. The allow-list of tables for freeform KQL holds here too."""
    node = shutil.which("node")
    return {"node_folder": "" if node is None else str(Path(node).parent), "tables": list(settings.freeform_tables)}


def stored_queries(configuration: Mapping[str, Any], shared: KqlGuard | None) -> AlertEvents:
    """The tool, whose guard starts with the first query; where freeform KQL has one, it is `shared`."""
    from sentinel_rag.sentinel.alert_events import AlertEvents

    def guard() -> KqlGuard:
        if shared is not None:
            return shared
        from sentinel_rag.sentinel.kql_guard import KqlGuard, installed_parser

        return KqlGuard(installed_parser(search_path=configuration["node_folder"]))

    tables = configuration["tables"]
    return AlertEvents(guard, allowed_tables=frozenset(tables) if tables else None)
