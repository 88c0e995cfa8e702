"""What a parser found in a query, in one form for both parsers.

Facts without judgement: diagnostics, the kinds of syntax, functions, and each tabular expression as a tree of sources
and operators. `official_parser` and `fallback_parser` make it; `rules` judges it. A place is (start,
length) in UTF-16 code units, as Microsoft's parser counts; `TextPlaces` turns it into lines and columns.

What the guard says about a query: whether it may run, and each problem where it stands.

Values only. `rules` makes them from an analysis; the tool for freeform KQL and `sentinel kql check` show them.

The parser's own findings as problems that an analyst or a model can repair: place, reason, nearest names, columns.

Microsoft's sentence for an unknown name says neither what was meant nor what there is; this adds both, and tells the
two time columns apart (`TimeGenerated` in Sentinel, `Timestamp` in Defender XDR's own hunting).

What freeform KQL may use, by name, out of `allowed_names.toml`; whatever is not listed is refused.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from sentinel_rag.contracts.json_values import JsonForm, JsonValue
from sentinel_rag.language.text import toml_beside

Severity = Literal["error", "warning"]
ParserName = Literal["microsoft", "fallback"]
COMPUTED_TIME = "computed_time"
"""Code of the warning that a time filter's reach is only known when the query runs: who runs it sends a timespan."""


@dataclass(frozen=True, slots=True)
class KqlProblem(JsonForm):
    """One problem. `line` and `column` count from 1 in characters of the text; `length` may be 0 (at the end).

    `code` is stable; `message` is one sentence; `nearest` are known names like the one that is wrong, best first.
    """

    code: str
    severity: Severity
    message: str
    line: int
    column: int
    length: int
    next_step: str = ""
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardReport:
    """The verdict on one query.

    `parser` tells who read it: Microsoft's parser, or the stricter fallback where there is no node. `tables` are those
    that it reads; `columns` of the result as (name, KQL type), None where they are not known before it runs.
    """

    parser: ParserName
    problems: tuple[KqlProblem, ...]
    tables: frozenset[str]
    columns: tuple[tuple[str, str], ...] | None

    @property
    def allowed(self) -> bool:
        """Whether the query may run: no problem is an error."""
        return all(problem.severity != "error" for problem in self.problems)

    @property
    def errors(self) -> tuple[KqlProblem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "allowed": self.allowed,
            "parser": self.parser,
            "problems": [problem.to_dict() for problem in self.problems],
            "tables": sorted(self.tables),
            "columns": None if self.columns is None else [{"name": name, "type": kind} for name, kind in self.columns],
        }


class TextPlaces:
    """The lines of one text. Offsets are UTF-16 code units, as in Microsoft's parser; the answers are characters."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
        # Offsets of the second half of each character that UTF-16 writes as two units.
        self._second_halves: list[int] = []
        seen = 0
        for index, character in enumerate(text):
            if character > "\uffff":
                seen += 1
                self._second_halves.append(index + seen)
        self._characters = len(text)
        self._text = text

    def text(self, start: int, length: int) -> str:
        """The characters there."""
        return self._text[self.character(start) : self.character(start + length)]

    def character(self, offset: int) -> int:
        """The index in the text of the character at `offset`, at most its length."""
        return min(max(offset, 0) - bisect_right(self._second_halves, offset), self._characters)

    def locate(self, start: int, length: int) -> tuple[int, int, int]:
        """(line, column, length in characters)."""
        first, after = self.character(start), self.character(start + length)
        line = bisect_right(self._starts, first)
        return line, first - self._starts[line - 1] + 1, after - first


Place = tuple[int, int]


class KqlTable(msgspec.Struct, frozen=True, tag_field="t", tag="table"):
    """A table of the workspace."""

    name: str
    at: Place


class KqlReference(msgspec.Struct, frozen=True, tag_field="t", tag="ref"):
    """A name that a let statement or a function's parameter gave to a tabular expression."""

    name: str
    at: Place


class KqlCall(msgspec.Struct, frozen=True, tag_field="t", tag="call"):
    """A call of a function that yields rows, one of the query's own (`let f = ...`) or of the workspace."""

    name: str
    args: tuple[KqlValue, ...]
    at: Place


class Operator(msgspec.Struct, frozen=True):
    """One step of a pipeline.

    `bounds` are columns that it holds above a moment, with the moment's text; `defines` the column names that it makes;
    `lacks` the time columns that its result has not;
    `inputs` tables whose rows flow through (union); `subs` other tabular expressions in it (join, toscalar, in).
    `rows` is the number of rows that it leaves at most, where it says one.
    """

    kind: str
    at: Place
    bounds: tuple[tuple[str, str], ...] = ()
    defines: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    inputs: tuple[Node, ...] = ()
    subs: tuple[Node, ...] = ()
    rows: float | None = None
    join: str = ""


class Pipe(msgspec.Struct, frozen=True, tag_field="t", tag="pipe"):
    """A source and its operators in order; no source where the first operator is one (`union A, B`, `print`)."""

    source: Node | None
    ops: tuple[Operator, ...]
    bare: bool = False


class Block(msgspec.Struct, frozen=True, tag_field="t", tag="block"):
    """The body of a function of the query."""

    lets: tuple[Let, ...]
    body: KqlValue


class Other(msgspec.Struct, frozen=True, tag_field="t", tag="other"):
    """A source of another kind (`datatable`, `externaldata`), with the tabular expressions in it."""

    kind: str
    subs: tuple[Node, ...]
    at: Place


Node = KqlTable | KqlReference | KqlCall | Pipe | Block | Other


class KqlValue(msgspec.Struct, frozen=True):
    """An expression: its tree when it yields rows, else the tabular expressions nested in it. `name` of an argument."""

    name: str | None = None
    node: Node | None = None
    subs: tuple[Node, ...] = ()


class Let(msgspec.Struct, frozen=True):
    """`let name = value`; `params` are a function's parameters, None for a value."""

    name: str
    at: Place
    value: KqlValue
    params: tuple[str, ...] | None = None


class Statement(msgspec.Struct, frozen=True):
    """One statement by the kind that Microsoft's parser gives it."""

    kind: str
    at: Place
    let: Let | None = None
    value: KqlValue | None = None
    subs: tuple[Node, ...] = ()


class Diagnostic(msgspec.Struct, frozen=True):
    """The parser's own finding. `columns` are those in scope where a name is unknown."""

    code: str
    severity: str
    message: str
    at: Place
    columns: tuple[str, ...] = ()


class FunctionUse(msgspec.Struct, frozen=True, array_like=True):
    """A function call; `origin` is function, aggregate, plugin, let (the query's or the workspace's own) or unknown."""

    name: str
    origin: Literal["function", "aggregate", "plugin", "let", "unknown"]
    start: int
    length: int


class NameUse(msgspec.Struct, frozen=True, array_like=True):
    """A table, or a pattern of names with `*`, where it stands; `within` is the kind of operator it stands in."""

    name: str
    start: int
    length: int
    within: str = ""


class Analysis(msgspec.Struct, frozen=True):
    """Everything about one query. `kind` is Query or Command; `kinds` has the first place of each kind of syntax.

    `result` are the columns (name, KQL type), None where they are not known before the query runs.
    """

    kind: str
    diagnostics: tuple[Diagnostic, ...]
    kinds: dict[str, Place]
    functions: tuple[FunctionUse, ...]
    references: tuple[NameUse, ...]
    wildcards: tuple[NameUse, ...]
    statements: tuple[Statement, ...]
    result: tuple[tuple[str, str], ...] | None
    parser: ParserName = "microsoft"


MOST_NEAREST = 3


def words(text: str) -> frozenset[str]:
    """The words of a text that lists names."""
    return frozenset(text.split())


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """At most three known names, best first: the same but for its case, then alike, then one within the other."""
    candidates = tuple(dict.fromkeys(known))
    folded: dict[str, str] = {}
    for candidate in candidates:
        folded.setdefault(candidate.casefold(), candidate)
    wanted = name.casefold()
    found = [folded[each] for each in difflib.get_close_matches(wanted, folded, n=MOST_NEAREST, cutoff=0.7)]
    if len(wanted) >= 4:
        found += [candidate for key, candidate in folded.items() if wanted in key or (len(key) >= 4 and key in wanted)]
    return tuple(dict.fromkeys(each for each in found if each != name))[:MOST_NEAREST]


def said_nearest(nearest: tuple[str, ...]) -> str:
    """` Did you mean 'A' or 'B'?`, or nothing."""
    if not nearest:
        return ""
    return f" Did you mean {' or '.join(repr(each) for each in nearest)}?"


_DATA = toml_beside(__package__, "allowed_names.toml")

STATEMENTS = words(_DATA["statements"])
OPERATORS: Mapping[str, str] = _DATA["operators"]
"""Kind in Microsoft's parser -> the word that people write."""
REFUSED_WORDS: Mapping[str, str] = _DATA["refused"]
PLUGINS = words(_DATA["plugins"])
AGGREGATES = words(_DATA["aggregates"])
FUNCTIONS = words(_DATA["functions"])
SYNTAX_NODES = (
    STATEMENTS
    | OPERATORS.keys()
    | {f"{name}Expression" for name in words(_DATA["expressions"])}
    | words(_DATA["syntax"])
)


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
"""Table -> column -> KQL type, columns in the order of the table."""


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
