"""What can be said of a query before anything parses it: its length, its characters, and that it is no command.

A parser must not be handed what it cannot bear, and nothing may stand in a query that an analyst who approves it cannot
see: control and format characters reorder or hide text on a screen, and other line ends end a comment for one reader
and not for another.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from sentinel_rag.sentinel.kql_guard.places import TextPlaces
from sentinel_rag.sentinel.kql_guard.report import KqlProblem

_VISIBLE_CONTROLS = frozenset("\t\n")  # a carriage return only in front of a line feed
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")
_MOST_CHARACTER_PROBLEMS = 5
_COMMAND = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z))*\.")


@dataclass(frozen=True, slots=True)
class TextLimits:
    """The longest text in characters and the deepest nesting of brackets that a parser is given."""

    characters: int = 20_000
    depth: int = 100


def text_problems(kql: str, limits: TextLimits) -> tuple[KqlProblem, ...]:
    """Why the text is not given to a parser; empty if it is."""
    if not kql.strip():
        return (KqlProblem("empty", "error", "The query is empty.", 1, 1, 0, "Give a query that starts with a table."),)
    if len(kql) > limits.characters:
        told = f"The query has {len(kql):,} characters; at most {limits.characters:,} are checked."
        return (KqlProblem("too_long", "error", told, 1, 1, 0, "Ask for less in one query."),)
    hidden = _hidden_characters(kql)
    if hidden:
        return hidden
    places = TextPlaces(kql)
    command = _COMMAND.match(kql)
    if command is not None:
        line, column, _ = places.locate(command.end() - 1, 1)
        told = "A text that starts with a dot is a management command, and only queries are allowed."
        return (KqlProblem("command", "error", told, line, column, 1, "Start with a table of the workspace."),)
    deep = _too_deep(kql, limits.depth)
    if deep is not None:
        line, column, _ = places.locate(deep, 1)
        told = f"The query nests brackets more than {limits.depth} deep."
        return (KqlProblem("too_deep", "error", told, line, column, 1, "Write it flatter, with let statements."),)
    return ()


def _hidden_characters(kql: str) -> tuple[KqlProblem, ...]:
    problems: list[KqlProblem] = []
    for number, text in enumerate(kql.split("\n"), start=1):
        for column, character in enumerate(text, start=1):
            if (
                character in _VISIBLE_CONTROLS
                or (character == "\r" and column == len(text))
                or unicodedata.category(character) not in _REFUSED_CATEGORIES
            ):
                continue
            name = unicodedata.name(character, "a control character")
            problems.append(
                KqlProblem(
                    "hidden_character",
                    "error",
                    f"The character U+{ord(character):04X} ({name}) cannot be seen: it could hide something.",
                    number,
                    column,
                    1,
                    f"Leave it out; in a string write \\u{ord(character):04x}.",
                )
            )
            if len(problems) == _MOST_CHARACTER_PROBLEMS:
                return tuple(problems)
    return tuple(problems)


def _too_deep(kql: str, most: int) -> int | None:
    depth = 0
    for index, character in enumerate(kql):
        if character in _OPENS:
            depth += 1
            if depth > most:
                return index
        elif character in _CLOSES and depth:
            depth -= 1
    return None
