"""What a parser found in a query, in one form for both parsers.

Facts without judgement: diagnostics, the kinds of syntax, functions, and each tabular expression as a tree of sources
and operators. `official_parser` and `fallback_parser` make it; `rules` judges it. A place is (start,
length) in UTF-16 code units, as Microsoft's parser counts; `report` turns it into lines and columns.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal

import msgspec

from sentinel_rag.sentinel.kql_guard.report import ParserName

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
