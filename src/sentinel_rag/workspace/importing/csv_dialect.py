"""Separator and header of a delimited file, found in a sample of its text.

Exports come with commas, tabs, semicolons, pipes and with characters nobody expects (❖); none says which. The one
that splits the most records into the same number of fields as the first record wins. Pure.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

_USUAL = ",\t;|"
_NEVER = set("\"' _-.$@()[]{}/\\:+=*#%&!?<>\r\n")
_RECORDS = 200
_VALUE = re.compile(
    r"-?\d+(\.\d+)?"  # a number
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T,].*)?"  # a date
    r"|[0-9a-fA-F]{32,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a hash or GUID
    r"|\d{1,3}(\.\d{1,3}){3}"  # an address
)


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """`columns` are the names of the first record, or made up (`Column1`, ...) where that is a row already."""

    separator: str
    columns: tuple[str, ...]
    has_header: bool


def detect(sample: str, *, complete: bool) -> CsvDialect:
    """The dialect of `sample`, which `complete` says is the whole file and not only its beginning."""
    best, best_score = ",", (0.0, 0)
    for candidate in _candidates(sample):
        records = _records(sample, candidate, complete=complete)
        width = len(records[0]) if records else 0
        if width < 2:
            continue
        same = sum(len(record) == width for record in records) / len(records)
        score = (round(same, 1), width)
        if score > best_score:
            best, best_score = candidate, score
    records = _records(sample, best, complete=complete)
    first = tuple(records[0]) if records else ()
    if _is_header(first):
        return CsvDialect(best, first, has_header=True)
    return CsvDialect(best, tuple(f"Column{number}" for number in range(1, len(first) + 1)), has_header=False)


def _candidates(sample: str) -> list[str]:
    first = sample.lstrip("\r\n").split("\n", 1)[0]
    unusual = {char for char in first if not char.isalnum() and char not in _NEVER and char not in _USUAL}
    return [char for char in _USUAL if char in first] + sorted(unusual, key=first.count, reverse=True)[:8]


def _records(sample: str, separator: str, *, complete: bool) -> list[list[str]]:
    """The first records; the last of an incomplete sample may be cut and is left out."""
    csv.field_size_limit(max(csv.field_size_limit(), len(sample) + 1))
    records: list[list[str]] = []
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
    try:
        for record in reader:
            if record:
                records.append(record)
            if len(records) > _RECORDS:
                break
    except csv.Error:
        pass  # what was read so far decides; the reader of rows reports the fault
    if not complete and len(records) > 1:
        records.pop()
    return records[:_RECORDS]


def _is_header(first: tuple[str, ...]) -> bool:
    """A header names things: no cell but the first (a pandas index) is empty or looks like a value."""
    names = [cell.strip() for cell in first]
    if not any(names):
        return False
    if any(not name for name in names[1:-1]):
        return False
    return not any(_VALUE.fullmatch(name) for name in names)
