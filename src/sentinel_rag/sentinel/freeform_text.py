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
_RENDER = re.compile(r"\|\s*render\b[^|]*\Z")


def code_of(kql: str) -> str:
    """The query with its comments and quoted texts blanked out, each place where it was."""
    return _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), kql)


def bounded(kql: str, most_rows: int) -> str:
    """The query with one row more than `most_rows` as its cap. A `render` at its end, which draws nothing here, and a
    semicolon are left out, because nothing may follow them."""
    code = code_of(kql).rstrip()
    end = len(code.rstrip("; \t\r\n"))
    render = _RENDER.search(code[:end])
    if render is not None:
        end = len(code[: render.start()].rstrip())
    kept = kql if end == len(code) else kql[:end]
    return f"{kept}\n| take {most_rows + 1}"
