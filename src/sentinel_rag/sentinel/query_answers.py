"""What the body of an HTTP 200 holds: a table, a cut table, or none; and tables with their columns, for metadata."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from types import TracebackType

from sentinel_rag.sentinel import error_bodies
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.json_text import load_json
from sentinel_rag.sentinel.log_tables import LogsTable, decode_table
from sentinel_rag.sentinel.typed_rows import read_typed


def read_answer(content: bytes, kql: str, duration_ms: float) -> LogsTable:
    """The primary table of an HTTP 200. Raises QueryFailedError for a body that holds none."""
    if not content.strip():
        raise QueryFailedError(error_bodies.protocol_error("Log Analytics answered 200 with an empty body."))
    try:
        typed = read_typed(content)
        if typed is not None:
            reason = error_bodies.partial_reason(typed.error) if isinstance(typed.error, Mapping) else ""
            return typed.table(kql, partial_reason=reason, duration_ms=duration_ms)
        document = load_json(content)
        error = document.get("error")
        tables = document.get("tables") or []
        if not tables:
            if isinstance(error, Mapping):
                raise QueryFailedError(error_bodies.rejected_by_details(error))
            raise QueryFailedError(error_bodies.protocol_error("Log Analytics answered 200 without a table."))
        reason = error_bodies.partial_reason(error) if isinstance(error, Mapping) else ""
        primary = next((table for table in tables if table.get("name") == "PrimaryResult"), tables[0])
        return decode_table(primary, kql, partial_reason=reason, duration_ms=duration_ms)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryFailedError(
            error_bodies.protocol_error("Log Analytics answered with something that is not a query result.")
        ) from error


def read_large_answer(content: bytes, kql: str, duration_ms: float) -> LogsTable:
    """As `read_answer`, without the garbage collector in between."""
    with collector_pause:
        return read_answer(content, kql, duration_ms)


def read_schema(content: bytes) -> dict[str, dict[str, str]]:
    """Table -> column -> KQL type of a metadata answer. Raises QueryFailedError for a body that is none."""
    try:
        return {
            str(table["name"]): {
                str(column["name"]): _kql_type(str(column["type"])) for column in table.get("columns") or ()
            }
            for table in load_json(content).get("tables") or ()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryFailedError(
            error_bodies.protocol_error("Log Analytics answered with something that is not a schema.")
        ) from error


_OTHER_NAMES = {"boolean": "bool", "double": "real", "date": "datetime", "time": "timespan", "uuid": "guid"}


def _kql_type(name: str) -> str:
    """The type as queries write it; the service also has older names for some."""
    return _OTHER_NAMES.get(name.lower(), name.lower())


# The garbage collector left out while a large answer is decoded: it would walk the rows so far again and again.
#
# Nothing that a decoder makes is garbage before it is done, and it is done in a fraction of a second. Several may
# decode at once; the last one to leave lets the collector in again.


class CollectorPause:
    """A context manager for any thread, shared by all who pause."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._was_on = gc.isenabled()
                gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_on:
                gc.enable()


collector_pause = CollectorPause()
