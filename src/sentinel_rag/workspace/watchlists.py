"""Watchlists of an embedded workspace: each put in whole from a CSV file, and read in KQL by `_GetWatchlist("ALIAS")`.

The rows have the form of Sentinel's table `Watchlist`, so that a query reads them here as it does there.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.watchlists import TABLE, check_alias
from sentinel_rag.workspace.importing.importer import Importer
from sentinel_rag.workspace.store import Store, read_schema

MOST_BYTES = 16 << 20
MOST_ITEMS = 100_000


class Watchlists:
    """The watchlists of `store`; `importer` writes their rows."""

    def __init__(self, store: Store, importer: Importer) -> None:
        self._store = store
        self._importer = importer
        self._alone = Lock()

    def put(self, alias: str, file: Path, *, search_key: str | None, replaces: bool) -> dict[str, Any]:
        """Put a list in; the column `search_key`, by default the first, is the one that joins use. Raises UsageError
        for a list of that alias without `replaces`, and for a file that is no list."""
        check_alias(alias)
        made, now = str(uuid4()), format_time(utc_now())
        items = list(_items(file, search_key))
        with self._alone, tempfile.TemporaryDirectory(dir=self._store.folder) as folder:
            if not replaces and self._others(alias, made):
                raise UsageError(
                    f"There is a watchlist {alias} already.",
                    next_step="Replace it, or choose another alias.",
                    code="exists",
                )
            rows = Path(folder) / "watchlist.jsonl"
            with rows.open("w", encoding="utf-8") as lines:
                for key, item in items:
                    lines.write(json.dumps(_row(alias, file.name, made, now, key, item)) + "\n")
            self._importer.import_path(rows, table=TABLE)
            self._others(alias, made, removes=True)  # only now: a list that cannot be put in leaves the old one
        return {"alias": alias, "items": len(items), "columns": list(items[0][1])}

    def remove(self, alias: str) -> None:
        """Raises UsageError where there is none of that alias."""
        with self._alone:
            if not self._others(alias, "", removes=True):
                raise UsageError(f"There is no watchlist {alias!r}.", next_step="See: sentinel watchlist list")

    def _others(self, alias: str, made: str, *, removes: bool = False) -> int:
        """How many items the alias has of other lists than `made`; two that differ by case alone are one."""
        with self._store.writing() as cursor:
            if TABLE not in read_schema(cursor):
                return 0
            of = f"FROM {TABLE} WHERE lower(WatchlistAlias) = lower(?) AND WatchlistId IS DISTINCT FROM ?"
            [[count]] = cursor.execute(f"SELECT count(*) {of}", [alias, made]).fetchall()  # a constant
            if removes:
                cursor.execute(f"DELETE {of}", [alias, made])  # a constant
            return int(count)


def _items(file: Path, search_key: str | None) -> Iterator[tuple[str, dict[str, str]]]:
    """Each item with its search key. Raises UsageError, with the line."""
    number = 0
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"A watchlist may have {MOST_BYTES >> 20} MB.", next_step="Import larger ones as a table.")
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            heads = [head.strip() for head in next(reader, [])]
            if not all(heads) or len(set(heads)) < len(heads) or not heads:
                raise UsageError("Its first line must name each column once.", next_step="Correct the file.")
            key = heads[0] if search_key is None else search_key
            if key not in heads:
                raise UsageError(f"It has no column {key!r}.", next_step=f"Name one of: {', '.join(heads)}.")
            for number, cells in enumerate(filter(None, reader), 1):
                if len(cells) != len(heads) or number > MOST_ITEMS:
                    why = f"has {len(cells)} cells and not {len(heads)}"
                    why = why if number <= MOST_ITEMS else f"is beyond the {MOST_ITEMS:,} items that a list may have"
                    raise UsageError(f"Line {reader.line_num} {why}.", next_step="Correct the file.")
                item = dict(zip(heads, cells, strict=True))
                yield item[key], item
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"It is no CSV file in UTF-8: {error}.", next_step="Save it as one.") from None
    except OSError as error:
        raise UsageError(f"{file.name} cannot be read: {error.strerror}.", next_step="Name a readable file.") from None
    if not number:
        raise UsageError("It has no item.", next_step="Put one line below the names of its columns.")


def _row(alias: str, source: str, made: str, now: str, key: str, item: dict[str, str]) -> dict[str, Any]:
    one = str(uuid4())
    times = dict.fromkeys(("TimeGenerated", "CreatedTimeUTC", "LastUpdatedTimeUTC", "_DTTimestamp"), now)
    names = {
        "WatchlistAlias": alias,
        "WatchlistName": alias,
        "WatchlistId": made,
        "Source": source,
        "Provider": "Custom",
    }
    ids = {"WatchlistItemId": one, "_DTItemId": one, "_DTItemType": "watchlist-item", "_DTItemStatus": "Create"}
    return {**times, **names, **ids, "SearchKey": key, "WatchlistItem": item}
