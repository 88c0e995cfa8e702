"""A staged file of incidents or alerts in a service's own shape, written anew as rows of tables, one JSON a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from sentinel_rag.workspace.importing.csv_dialect import detect
from sentinel_rag.workspace.importing.json_documents import write_json_lines
from sentinel_rag.workspace.importing.service_shapes import Shape, queue_of, shape_of
from sentinel_rag.workspace.importing.source_files import SAMPLE_BYTES, Format, SourceFile

_LOOKED_AT = 5
"""Lines that are looked at for the shape of the rows."""


def reshaped(source: SourceFile, target: Path, folder: Path) -> tuple[SourceFile, Path, tuple[str, ...]]:
    """The file with notes, or the file as it was and none. Raises UnreadableFileError for JSON that is none."""
    if source.format is Format.DELIMITED:
        return _queue(source, target, folder)
    if source.format is Format.PARQUET or not _may_be_a_service(source.sample):
        return source, target, ()
    lines = target
    missing: tuple[str, ...] = ()
    if source.format is Format.JSON:
        lines = folder / "lines.txt"
        _, missing = write_json_lines(target, lines, name=str(source.path))
    with lines.open(encoding="utf-8-sig", errors="replace") as text:
        first = (_object(line) for line in islice(text, _LOOKED_AT))
        shape = next((found for row in first if row is not None and (found := shape_of(row))), None)
    if shape is None:
        return source, target, ()
    with lines.open(encoding="utf-8-sig", errors="replace") as text:
        read, made, notes = _written(source, folder, shape, text)
    return read, made, (*notes, *missing)


def _may_be_a_service(sample: str) -> bool:
    return any(word in sample for word in ('"properties', '"incidentWebUrl"', '"alertWebUrl"', '"appDisplayName"'))


def _object(line: str) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _queue(source: SourceFile, target: Path, folder: Path) -> tuple[SourceFile, Path, tuple[str, ...]]:
    dialect = detect(source.sample, complete=source.size < SAMPLE_BYTES)
    shape = queue_of(dialect.columns) if dialect.has_header else None
    if shape is None:
        return source, target, ()
    with target.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        rows = csv.DictReader(text, delimiter=dialect.separator)
        return _written(source, folder, shape, (json.dumps(row) for row in rows))


def _written(
    source: SourceFile, folder: Path, shape: Shape, lines: Iterable[str]
) -> tuple[SourceFile, Path, tuple[str, ...]]:
    """Every row that has the shape as rows of tables; a line that is none as it stands, to be told as a reject."""
    made = folder / "rows.txt"
    with made.open("w", encoding="utf-8") as out:
        for line in lines:
            row = _object(line)
            if row is None:
                out.write(line.rstrip("\n") + "\n")
                continue
            for told in shape.rows(row):
                out.write(json.dumps(told, ensure_ascii=False) + "\n")
    with made.open(encoding="utf-8") as text:
        sample = text.read(len(source.sample) + 4_096)
    read = replace(source, format=Format.JSON_LINES, encoding="utf-8", sample=sample, says_null=False)
    return read, made, (f"Read as {shape.name}.",)
