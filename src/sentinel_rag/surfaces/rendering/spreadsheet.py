"""Tables as CSV that a spreadsheet opens as text: no cell is a formula, a command or a link, whatever stands in it.

A cell that a spreadsheet could take for a formula gets a single quote before it, also where spaces or quotes stand in
front of the sign; see OWASP, "CSV Injection". The quote is part of the file: a program that reads it takes it off.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from sentinel_rag.surfaces.rendering.visible import safe

_FORMULA = re.compile(r"[\s\"'`\ufeff\u00a0\u3000]*(?:[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212]|\\x0[9d])")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def csv_cell(value: object) -> str:
    """The value as the text of a cell; numbers stay numbers."""
    text = "" if value is None else safe(str(value))
    if _NUMBER.fullmatch(text):
        return text
    return "'" + text if text[:1] in ("\t", "\n") or _FORMULA.match(text) else text


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A whole file (RFC 4180, every cell quoted)."""
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow([csv_cell(name) for name in columns])
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return written.getvalue()
