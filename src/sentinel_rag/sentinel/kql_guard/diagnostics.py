"""The parser's own findings as problems that an analyst or a model can repair: place, reason, nearest names, columns.

Microsoft's sentence for an unknown name says neither what was meant nor what there is; this adds both, and tells the
two time columns apart (`TimeGenerated` in Sentinel, `Timestamp` in Defender XDR's own hunting).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from sentinel_rag.sentinel.kql_guard.allowed_names import AGGREGATES, FUNCTIONS, OPERATORS
from sentinel_rag.sentinel.kql_guard.analysis import Analysis, Diagnostic, nearest_names, said_nearest, words
from sentinel_rag.sentinel.kql_guard.report import KqlProblem, Severity, TextPlaces

UNKNOWN_NAME, UNKNOWN_TABLE, UNKNOWN_FUNCTION = "KS142", "KS204", "KS211"
SYNTAX, UNCHECKED = "KS001", "unchecked"
"""Codes of Microsoft's parser, and of the fallback for what it cannot read for certain."""
NO_FIRST, NO_OPERATOR = "KS174", "KS176"
"""What cannot begin a query, and what cannot stand behind a pipe; numbered otherwise, they break the syntax too."""

_SEVERITIES: dict[str, Severity] = {"Error": "error", "Warning": "warning"}
_MOST_COLUMNS_TOLD = 120
_STEPS = {"KS198": "Look for a missing pipe or an unclosed quote before it; a query starts with a table."}
_SIGN = re.compile(r"^(Expected|Unexpected|Missing): (.+)$", re.DOTALL)
_QUOTED = re.compile(r"'([^']+)'")
OTHER_RESOURCES = words("workspace app resource adx arg")
"""Functions of Log Analytics that Microsoft's parser does not know, since Kusto itself has none of them."""

TIME_COLUMNS = ("TimeGenerated", "Timestamp")
_TIME_ADVICE = {
    "Timestamp": "Timestamp is the time column of Defender XDR's own hunting; a Sentinel workspace has TimeGenerated.",
    "TimeGenerated": "TimeGenerated is the time column of a Sentinel workspace; this table has Timestamp.",
}

Schema = Mapping[str, Mapping[str, str]]


def diagnostic_problems(analysis: Analysis, places: TextPlaces, schema: Schema) -> tuple[KqlProblem, ...]:
    """Every error and warning of the parser, in its order; one about the same name at several places stays several."""
    read = tuple(dict.fromkeys(use.name for use in analysis.references if use.name in schema))
    return tuple(_problem(each, places, schema, read) for each in analysis.diagnostics if each.severity in _SEVERITIES)


def _problem(found: Diagnostic, places: TextPlaces, schema: Schema, read: tuple[str, ...]) -> KqlProblem:
    line, column, length = places.locate(*found.at)
    severity = _SEVERITIES[found.severity]
    name = name_in(found)
    if name and found.code == UNKNOWN_TABLE:
        nearest = nearest_names(name, schema)
        told = f"There is no table {name!r} in the workspace.{said_nearest(nearest)}"
        step = "Use a table that the workspace has; list_tables lists them."
        return KqlProblem("unknown_table", severity, told, line, column, length, step, nearest)
    if name in OTHER_RESOURCES and found.code == UNKNOWN_FUNCTION:
        told = f"The function `{name}` reads another resource than the workspace, which is not allowed."
        step = "Ask the other workspace itself."
        return KqlProblem("function_not_allowed", severity, told, line, column, length, step)
    if name and found.code == UNKNOWN_FUNCTION:
        nearest = nearest_names(name, FUNCTIONS | AGGREGATES)
        told = f"There is no function {name!r}.{said_nearest(nearest)}"
        step = "Use a function of KQL; functions that a workspace has saved are not known here."
        return KqlProblem("unknown_function", severity, told, line, column, length, step, nearest)
    if name and found.code == UNKNOWN_NAME:
        return _unknown_column(name, found, severity, (line, column, length), schema, read)
    if found.code == UNCHECKED:
        step = (
            "Install Microsoft's parser (sentinel kql install), or ask with where, summarize, join, project and take."
        )
        return KqlProblem("not_checkable", severity, found.message, line, column, length, step)
    told = _SIGN.sub(r"\1 `\2`.", found.message)
    told = told if told.endswith(".") else f"{told}."
    nearest = nearest_names(places.text(*found.at), OPERATORS.values()) if found.code == NO_OPERATOR else ()
    code = "syntax" if _is_syntax(found.code) else "binding"
    step = _STEPS.get(found.code, "")
    return KqlProblem(code, severity, f"{told}{said_nearest(nearest)}", line, column, length, step, nearest)


def name_in(found: Diagnostic) -> str:
    """The name that a finding is about, empty for none."""
    quoted = _QUOTED.search(found.message)
    return quoted.group(1) if quoted else ""


def _is_syntax(code: str) -> bool:
    digits = code.removeprefix("KS")
    return code in (NO_FIRST, NO_OPERATOR) or (digits.isdigit() and int(digits) < 100)


def _unknown_column(
    name: str,
    found: Diagnostic,
    severity: Severity,
    place: tuple[int, int, int],
    schema: Schema,
    read: tuple[str, ...],
) -> KqlProblem:
    of_tables = dict.fromkeys(column for table in read for column in schema[table])
    in_scope = found.columns or tuple(of_tables)
    nearest = nearest_names(name, in_scope)
    where = f" in {read[0]}" if len(read) == 1 else ""
    owners = [table for table in read if name in schema[table]]
    told = f"There is no column {name!r}{where} here."
    if owners and len(read) > 1:
        told = f"There is no column {name!r} here; {owners[0]} has one, which does not come through to this place."
    elif owners and found.columns:
        told = f"{owners[0]} has a column {name!r}, but an operator before this place dropped it."
    elif name in TIME_COLUMNS and any(other in in_scope for other in TIME_COLUMNS if other != name):
        other = next(each for each in TIME_COLUMNS if each != name)
        nearest = (other,)
        told = f"There is no column {name!r}{where} here. {_TIME_ADVICE[name]}"
    elif any(each.casefold() == name.casefold() for each in nearest):
        told = f"There is no column {name!r}{where} here; names are told apart by case.{said_nearest(nearest[:1])}"
    else:
        told += said_nearest(nearest)
    shown = ", ".join(sorted(in_scope, key=lambda each: (each.startswith("_"), each.casefold()))[:_MOST_COLUMNS_TOLD])
    more = len(in_scope) - _MOST_COLUMNS_TOLD
    step = f"Columns here: {shown}{f' and {more} more' if more > 0 else ''}." if in_scope else ""
    return KqlProblem("unknown_column", severity, told, *place, step, nearest)


# A parser must not be handed what it cannot bear, and nothing may stand in a query that an analyst who approves it
# cannot see: control and format characters reorder or hide text on a screen, and other line ends end a comment for one
# reader and not for another.
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
