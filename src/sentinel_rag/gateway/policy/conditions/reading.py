"""From an author's text to Python's syntax tree, within limits that keep the parser itself out of danger."""

from __future__ import annotations

import ast
import warnings

MAX_LENGTH = 2_000


class ConditionError(ValueError):
    """Why a text is not a condition; `column` counts from 1."""

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


def read_expression(text: str) -> ast.expr:
    """The expression that `text` is. Raises ConditionError."""
    text = text.strip()
    if not text:
        raise ConditionError("the condition is empty; write true to match every call")
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"the condition has {len(text)} characters; at most {MAX_LENGTH} are allowed")
    if any(character < " " for character in text):
        raise ConditionError("the condition must be one line without control characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an invalid escape, or `is` with a literal
            body = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ConditionError(f"syntax: {error.msg}", error.offset or 1) from None
    except (ValueError, RecursionError, MemoryError, Warning) as error:
        raise ConditionError(f"syntax: {error}") from None
    _refuse_foreign_letters(text, body)
    return body


def _refuse_foreign_letters(text: str, body: ast.expr) -> None:
    """Refuse non-ASCII outside strings: Python folds identifiers by NFKC, so a look-alike would name a parameter."""
    strings = [
        (node.col_offset, node.end_col_offset or node.col_offset)
        for node in ast.walk(body)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    position = 0
    for index, character in enumerate(text):
        if ord(character) > 127 and not any(start <= position < end for start, end in strings):
            raise ConditionError(f"the letter {character!r} is allowed inside quotes only", index + 1)
        position += len(character.encode("utf-8", "surrogatepass"))
