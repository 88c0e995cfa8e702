"""The text of a caller's query as it is sent: with a cap of rows at its end, and without what cannot stand before one.

Works on text and knows just enough of KQL to tell code from comments and quoted text. It decides nothing about safety:
what it cuts off, `freeform_query` has checked again.
"""

from __future__ import annotations

import re

_NOT_CODE = re.compile(
    r"""
    //[^\n]*
    | ```.*?(?:```|\Z) | ~~~.*?(?:~~~|\Z)
    | @"(?:[^"]|"")*(?:"|\Z) | @'(?:[^']|'')*(?:'|\Z)
    | "(?:[^"\\\n]|\\.)*(?:"|$) | '(?:[^'\\\n]|\\.)*(?:'|$)
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_BLANKS = " \t\r\n"
_RENDER = re.compile(r"\|\s*render\b[^|]*\Z")


def _kept_place(match: re.Match[str]) -> str:
    """A comment as blanks, which may be cut off; a quoted text as dots, which end a query as any value does."""
    return re.sub(r"[^\n]", " " if match[0].startswith("//") else ".", match[0])


def bounded(kql: str, most_rows: int) -> str:
    """The query with one row more than `most_rows` as its cap, behind what may stand before one."""
    return f"{without_chart(kql)}\n| take {most_rows + 1}"


def without_chart(kql: str) -> str:
    """The query without a `render` at its end, which draws nothing here, and without semicolons: nothing may follow
    them."""
    code = _NOT_CODE.sub(_kept_place, kql).rstrip(_BLANKS)
    end = len(code.rstrip(f";{_BLANKS}"))
    render = _RENDER.search(code[:end])
    if render is not None:
        end = len(code[: render.start()].rstrip(_BLANKS))
    return kql if end == len(code) else kql[:end]
