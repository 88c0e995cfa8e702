"""The parser's own findings as problems that an analyst or a model can repair: place, reason, nearest names, columns.

Microsoft's sentence for an unknown name says neither what was meant nor what there is; this adds both, and tells the
two time columns apart (`TimeGenerated` in Sentinel, `Timestamp` in Defender XDR's own hunting).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sentinel_rag.sentinel.kql_guard.allowed_names import AGGREGATES, FUNCTIONS
from sentinel_rag.sentinel.kql_guard.analysis import Analysis, Diagnostic
from sentinel_rag.sentinel.kql_guard.names import nearest_names, said_nearest, words
from sentinel_rag.sentinel.kql_guard.places import TextPlaces
from sentinel_rag.sentinel.kql_guard.report import KqlProblem, Severity

UNKNOWN_NAME, UNKNOWN_TABLE, UNKNOWN_FUNCTION = "KS142", "KS204", "KS211"
SYNTAX, UNCHECKED = "KS001", "unchecked"
"""Codes of Microsoft's parser, and of the fallback for what it cannot read for certain."""

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
    code = "syntax" if _is_syntax(found.code) else "binding"
    return KqlProblem(code, severity, told, line, column, length, _STEPS.get(found.code, ""))


def name_in(found: Diagnostic) -> str:
    """The name that a finding is about, empty for none."""
    quoted = _QUOTED.search(found.message)
    return quoted.group(1) if quoted else ""


def _is_syntax(code: str) -> bool:
    digits = code.removeprefix("KS")
    return digits.isdigit() and int(digits) < 100


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
