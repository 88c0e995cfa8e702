"""Where in a query's text an error belongs, for errors whose own place was lost on the way.

Looks for the word among the tokens of the query, so that comments and texts do not count. Used by `translation`.
"""

from __future__ import annotations

import re

from antlr4 import InputStream  # type: ignore[import-untyped]  # comes with duckdb-kql, without types
from duckdb_kql._antlr.KqlLexer import KqlLexer  # noqa: TID253 - its lexer is what is used here
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS  # noqa: TID253

from sentinel_rag.workspace.kql.errors import KqlError, nearest_names, not_supported

_OUTSIDE_GRAMMAR = re.compile(r"\|\s*(parse-kv|partition)\b")


def with_place(kql: str, error: KqlError) -> KqlError:
    """`error`, with the place of its word if it has none."""
    if error.line is None and error.token:
        error.line, error.position = place_of(kql, error.token)
    return error


def place_of(kql: str, word: str) -> tuple[int | None, int | None]:
    """Line (from 1) and position (from 0) of the first token that is `word`, None if there is none."""
    if word not in kql:
        return None, None
    lexer = KqlLexer(InputStream(kql))
    lexer.removeErrorListeners()
    for token in lexer.getAllTokens():
        if token.channel == 0 and token.text == word:
            return token.line, token.column
    return None, None


def unknown_function(kql: str, name: str, hint: str) -> KqlError:
    """A function that is not run: unknown, not supported, or written wrongly, with the nearest names that run."""
    known = [one for one in (*SCALAR_FUNCTIONS, *AGGREGATE_FUNCTIONS) if one.isidentifier()]
    nearest = () if name in known else nearest_names(name, known)
    why = f"did you mean {' or '.join(nearest)}?" if nearest else hint
    line, position = place_of(kql, name)
    error = not_supported(name, line=line, position=position, hint=why)
    error.suggestions = nearest
    return error


def outside_grammar(kql: str) -> KqlError | None:
    """The refusal of an operator that the library's grammar does not have, if the query has one."""
    found = _OUTSIDE_GRAMMAR.search(kql)
    if found is None:
        return None
    before = kql[: found.start(1)]
    line = before.count("\n") + 1
    return not_supported(found[1], line=line, position=len(before) - (before.rfind("\n") + 1))
