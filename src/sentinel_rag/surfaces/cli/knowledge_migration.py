"""`sentinel knowledge migrate`: everything of one store into another, told while it goes on and checked at the end.

What is moved and how, `knowledge.moving` knows. Which store is used from then on stays a setting.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sentinel_rag.app.knowledge_stores import open_store, place_of
from sentinel_rag.app.knowledge_zone import ingest_files
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._safe_text import safe_cell

if TYPE_CHECKING:
    from sentinel_rag.knowledge.ingest_record import IngestFiles
    from sentinel_rag.knowledge.moving import MoveListener, MoveReport


def migrate(to: str, source: str | None, *, beside: bool, as_json: bool) -> int:
    """Move from the store `source` (None: the one in use) to the store `to`; 3 if there is nothing to move."""
    from sentinel_rag.knowledge.ingest_lock import IngestLock
    from sentinel_rag.knowledge.moving import move

    settings = load_settings()
    in_use = settings.knowledge.store
    source = source or in_use
    if source == to:
        raise UsageError(
            f"Both are the store {to}.", next_step="Name two: sentinel knowledge migrate --from STORE --to STORE."
        )
    with (
        IngestLock(_files_of(source, settings).lock).hold("sentinel knowledge migrate"),
        open_store(source, settings) as here,
        open_store(to, settings) as there,
        _progress(sys.stderr.isatty() and not as_json) as listener,
    ):
        report = move(here, there, beside=beside, listener=listener)
        if report.compared:
            _carry_records(_files_of(source, settings), _files_of(to, settings))
    if as_json:
        figures = {
            "moved": report.moved,
            "there_before": report.there_before,
            "chunks": report.chunks,
            "vectors": report.vectors,
            "compared": report.compared,
        }
        print(json.dumps({"from": source, "to": to, **figures}, indent=2))
    elif not report.compared:
        print("There was nothing to move.")
    else:
        print(f"from  {safe_cell(place_of(source, settings))}")
        print(f"to    {safe_cell(place_of(to, settings))}")
        print(
            f"{report.moved:,} document{'' if report.moved == 1 else 's'} moved, {report.there_before:,} were there "
            f"before; {report.chunks:,} chunks, {report.vectors:,} vectors. All compared: equal."
        )
        if to != in_use:
            print(f"The store in use is still {in_use}. To use the other: SENTINEL_KNOWLEDGE_STORE={to}")
    return 0 if report.compared else 3


def _files_of(store: str, settings: Settings) -> IngestFiles:
    return ingest_files(replace(settings, knowledge=replace(settings.knowledge, store=store)))


def _carry_records(source: IngestFiles, target: IngestFiles) -> None:
    """What was told of the one store's sources (incidents as of when, playbooks of which folder) holds for the other
    too, unless something was told of it before."""
    for old, new in ((source.record, target.record), (source.playbooks, target.playbooks)):
        if old.is_file() and not new.exists():
            part = new.with_name(f"{new.name}-new")
            shutil.copy(old, part)  # with its permissions
            part.replace(new)


@contextmanager
def _progress(shown: bool) -> Iterator[MoveListener | None]:
    """A line that tells how far it is, over and over in its place; nothing where nobody watches."""

    def tell(report: MoveReport) -> None:
        print(f"\r{_line(report)} ", end="", file=sys.stderr)

    yield tell if shown else None
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr)


def _line(report: MoveReport) -> str:
    done = report.moved + report.compared
    rate = done / report.seconds if report.seconds else 0.0
    remaining = report.remaining_s
    left = "" if remaining is None else f", about {remaining:,.0f} s left"
    return f"{report.moved:,} of {report.documents:,} moved, {report.compared:,} compared, {rate:,.0f} a second{left}"
