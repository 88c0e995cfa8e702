"""KQL text in which the library's grammar finds the same query: `table("X")`, columns called `kind`, bare `serialize`.

The grammar takes some names for keywords that Kusto reads by their place. Works on tokens, before the parser, so that
strings and comments stay as they are. A place in an error behind a rewritten name is a few characters off.
"""

from __future__ import annotations

import re
from typing import Any

from antlr4 import InputStream  # type: ignore[import-untyped]  # comes with duckdb-kql, without types
from duckdb_kql._antlr.KqlLexer import KqlLexer  # noqa: TID253 - this module writes for that library's grammar

from sentinel_rag.workspace.kql.tabular_names import TABLE_OF_PARAMETER

ORDER_AS_IT_IS = "sort by 1"
"""What a bare `serialize`, which the library's grammar does not know, is read as; it keeps the order and is as long."""


def as_the_grammar_reads(kql: str) -> str:
    """`kql`, or the text with the same meaning that the library's grammar knows."""
    if not re.search(r"\btable\s*[(=]|\b(?:kind|type)\b|\bserialize\s*(?:[|);]|//|$)", kql):
        return kql
    lexer = KqlLexer(InputStream(kql))
    lexer.removeErrorListeners()
    tokens = [token for token in lexer.getAllTokens() if token.channel == 0]
    return _with_plain_words(_with_plain_tables(kql, tokens), tokens)


def _with_plain_tables(kql: str, tokens: list[Any]) -> str:
    """`table("X")` written as `["X"]`, padded to the same length, so that places in errors stay right.

    `table(name)` becomes a name that `tabular_names` reads; anything else in the brackets is left and refused.
    """
    for call, opening, name, closing in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if (call.text, opening.text, closing.text) != ("table", "(", ")"):
            continue
        length = closing.stop + 1 - call.start
        if name.text[:1] in ("'", '"'):
            written = f"[{name.text}]"
        elif re.fullmatch(r"[A-Za-z_]\w*", name.text):
            written = f'["{TABLE_OF_PARAMETER}{name.text}"]'
        else:
            continue
        kql = kql[: call.start] + written.ljust(length) + kql[closing.stop + 1 :]
    return kql


def _with_plain_words(kql: str, tokens: list[Any]) -> str:
    """Columns called `table`, `kind` and `type` in brackets, a bare `serialize` as a sort by nothing."""
    ends = next((place for place, token in enumerate(tokens) if token.text == "render"), len(tokens))
    tokens = tokens[:ends]  # `kind=` of `render` is an option too
    for before, name, after in reversed(list(zip([None, *tokens], tokens, [*tokens[1:], None], strict=False))):
        following = after.text if after else ""
        if name.text == "serialize" and following in ("", "|", ")", ";"):
            kql = kql[: name.start] + ORDER_AS_IT_IS + kql[name.stop + 1 :]
        elif name.text in ("kind", "type") and before is not None and before.text == ".":
            kql = kql[: before.start] + f'["{name.text}"]' + kql[name.stop + 1 :]
        elif (name.text, following) == ("table", "=") or _is_column(name, before, following):
            kql = kql[: name.start] + f'["{name.text}"]' + kql[name.stop + 1 :]
    return kql


def _is_column(name: Any, before: Any, following: str) -> bool:
    """Whether `kind` or `type` is a column, where the grammar takes it for an option as in `join kind=inner`."""
    listed = before is not None and before.text in _BEFORE_COLUMNS
    return name.text in ("kind", "type") and listed and following in ("=", ",", "|", ")", ";", "", "asc", "desc")


_BEFORE_COLUMNS = frozenset(
    (",", "extend", "project", "project-away", "project-keep", "summarize", "by", "distinct", "print")
)
