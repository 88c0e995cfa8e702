"""Rows of SecurityIncident as Python values: what a store's cursor gives, with JSON columns read and times in UTC.

Between the store and the REST bodies. Times stay without zone, as the store keeps them; the wire's form of a time is
made here too, because the store's JSON columns hold it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

if TYPE_CHECKING:
    import duckdb

Row = Mapping[str, Any]
"""Column -> value of one row."""

_NAMESPACE = UUID("3c1f0f4e-0a52-4a53-9b0c-6f0e6a7f2b91")


def fetch_rows(cursor: duckdb.DuckDBPyConnection) -> list[Row]:
    """All rows of the statement that ran last, by column name."""
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def json_value(cell: Any) -> Any:
    """A dynamic cell; None for an empty one and for text that is not JSON."""
    if not isinstance(cell, str):
        return cell
    try:
        value = json.loads(cell, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str) and value[:1] in "[{":  # exports encode some of these columns twice
        return json_value(value)
    return value


def json_list(cell: Any) -> list[Any]:
    """A dynamic cell that should be a list; empty if it is none."""
    value = json_value(cell)
    return value if isinstance(value, list) else []


def json_object(cell: Any) -> dict[str, Any]:
    """A dynamic cell that should be an object; empty if it is none."""
    value = json_value(cell)
    return value if isinstance(value, dict) else {}


def wire_time(moment: datetime | None) -> str | None:
    """`2024-07-02T12:23:42.9500000Z`: seven fraction digits, as the service writes times."""
    return None if moment is None else f"{moment.isoformat(timespec='microseconds')}0Z"


def derived_guid(*parts: object) -> str:
    """A GUID that depends only on `parts`, for what the log keeps without an id."""
    return str(uuid5(_NAMESPACE, "/".join(map(str, parts))))


def etag_of(row: Row) -> str:
    """The quoted etag of a row: another row, another etag; the same row keeps it over restarts."""
    text = json.dumps(row, sort_keys=True, default=str, ensure_ascii=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'"{digest[:8]}-{digest[8:12]}-0100-0000-{digest[12:20]}0000"'


class NotCurrentError(Exception):
    """The etag of the write is not that of the newest row: somebody wrote in between."""


def require_current(newest: Row | None, *etags: str | None) -> None:
    """Raises NotCurrentError if one of the etags that a write names is not that of the newest row; `*` is any, None
    names none."""
    for etag in etags:
        if etag is not None and etag != "*" and (newest is None or etag != etag_of(newest)):
            raise NotCurrentError
