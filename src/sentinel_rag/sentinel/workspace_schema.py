"""Which tables and columns one workspace has, as its metadata endpoint tells them.

Remembered for half a minute, because a schema of Azure is megabytes and a query that is put right asks for it again. A
name that is not in it is looked up anew: a table that was just made must not be denied.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from sentinel_rag.sentinel.failures import QueryFailedError, invalid_argument
from sentinel_rag.sentinel.log_analytics import LogsWorkspace

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> KQL type."""

REMEMBERED_FOR_S = 30.0


class WorkspaceSchema:
    """Reads and remembers the schema of one workspace. `monotonic` is a clock in seconds."""

    def __init__(self, workspace: LogsWorkspace, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._workspace = workspace
        self._monotonic = monotonic
        self._remembered: Schema = {}
        self._read_at = float("-inf")

    async def read(self, *, anew: bool = False) -> Schema:
        """The schema; with `anew` as it is now. Raises QueryFailedError."""
        if anew or self._monotonic() - self._read_at >= REMEMBERED_FOR_S:
            self._remembered = await self._workspace.schema()
            self._read_at = self._monotonic()
        return self._remembered

    async def table(self, name: str) -> tuple[str, Mapping[str, str]]:
        """A table by its name in any case: the name as the workspace writes it, and its columns.

        Raises QueryFailedError INVALID_ARGUMENT with the nearest names for one that is not there."""
        wanted = name.strip().removeprefix("[").removesuffix("]").strip("\"'")
        for anew in (False, True):
            schema = await self.read(anew=anew)
            found = wanted if wanted in schema else _in_any_case(wanted, schema)
            if found is not None:
                return found, schema[found]
        raise _no_table(wanted, schema)


def _in_any_case(name: str, schema: Schema) -> str | None:
    same = [table for table in schema if table.casefold() == name.casefold()]
    return same[0] if len(same) == 1 else None


def _no_table(name: str, schema: Schema) -> QueryFailedError:
    from sentinel_rag.sentinel.kql_guard.names import nearest_names  # its package costs the tool server's start 20 ms

    near = nearest_names(name, schema)
    shown = name if len(name) <= 60 else name[:60] + "…"
    if not schema:
        return invalid_argument(
            "table", f"The workspace has no table {shown!r}; it tells no tables at all.", next_step="Try list_tables."
        )
    return invalid_argument(
        "table",
        f"The workspace has no table {shown!r}." + (f" Did you mean {' or '.join(near)}?" if near else ""),
        allowed=near,
        next_step="list_tables tells which tables hold rows.",
    )
