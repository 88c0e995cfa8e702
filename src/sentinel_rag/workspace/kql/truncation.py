"""`set truncationmaxrecords=N;` and its kin: where a query asks to be cut, taken out of its text and into its limits.

Kusto cuts such a result and says so; the translator below knows no limits, so it never sees the statement. Only
statements in front of the query count, as in Kusto. Pure.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sentinel_rag.workspace.kql.errors import KqlError
from sentinel_rag.workspace.kql.execution import Limits

_BLANK = re.compile(r"(?:\s+|//[^\n]*(?:\n|$)|;)+")
_SET = re.compile(r"set\s+([A-Za-z_]\w*)\s*(?:=\s*([^;\n]*?)\s*)?(?:;|$)", re.IGNORECASE)
_FIELDS = {"truncationmaxrecords": "max_rows", "truncationmaxsize": "max_bytes"}


def without_truncation(kql: str, limits: Limits) -> tuple[str, Limits]:
    """The query with blanks in the place of such statements, and the narrower limits. Raises KqlError for a bad value.

    `set notruncation` changes nothing: the service's own limits hold for everybody.
    """
    place = 0
    while True:
        blank = _BLANK.match(kql, place)
        place = blank.end() if blank else place
        statement = _SET.match(kql, place)
        if statement is None:
            return kql, limits
        name, value = statement[1].lower(), statement[2]
        if name in _FIELDS:
            field = _FIELDS[name]
            limits = replace(limits, **{field: min(getattr(limits, field), _number(name, value))})
        if name in _FIELDS or name == "notruncation":
            gone = re.sub(r"[^\n]", " ", statement[0])
            kql = kql[: statement.start()] + gone + kql[statement.end() :]
        place = statement.end()


def _number(name: str, value: str | None) -> int:
    text = re.sub(r"^(?:int|long)\(\s*(\d+)\s*\)$", r"\1", value or "")
    if not (text.isascii() and text.isdecimal()):
        raise KqlError(
            f"set {name} needs a whole number, not {value!r}.", kql_code="SEM0040", next_step=f"Write set {name}=5000;"
        )
    return int(text[:12])
