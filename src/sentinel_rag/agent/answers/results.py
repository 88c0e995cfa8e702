"""A tool's result as numbered rows: what a model reads, what a sentence cites, what the check compares.

A result has the id of its call (`c1`), each row a number over all pages (`c1.3`). The parts of a dossier (alerts,
entities, comments, timeline, bookmarks) are rows of their own, so that each can be cited. Totals and coverage belong
to the result as a whole. Nothing is left out here; `view` decides what of it a model is shown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryResult, told_to_people
from sentinel_rag.contracts.tool_calls import Denied, Failed, Succeeded

Cell = str | int | float | bool | tuple["Cell", ...]
"""A cell as text or number, or a tuple of such for a list."""

PARTS = {"alerts": "alert", "comments": "comment", "timeline": "event", "bookmarks": "bookmark"}
"""Lists of an incident's row that become rows, with the kind of each."""
OUTSIDE = frozenset({"web_search", "web_fetch"})
"""Tools whose texts are strangers'. Their results keep the source template's shape, so they carry no mark."""
MOST_CHARACTERS_OF_A_PASSAGE = 1_200
MOST_RESULTS = 400
MOST_ROWS = 20_000
"""Results of one conversation that can be cited, and their rows; the oldest go first."""
_EMPTY: tuple[Any, ...] = (None, "", [], {}, ())


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `kind` is incident, alert, comment, event, bookmark, hit, passage, computed, or the kind of an entity of
    a dossier (account, host, ...); `row` for any other. `pointer` (RFC 6901) is its place in the result's document.

    `quoted` are the columns that hold a text which the gateway's labels call an outsider's: an attacker may have
    written it.
    """

    ref: str
    kind: str
    pointer: str
    cells: Mapping[str, Cell]
    quoted: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    """Columns that the tool gave without a value."""

    @property
    def number(self) -> int:
        """The row's number in its result, from 1."""
        return int(self.ref.partition(".")[2])

    def cell_pointer(self, column: str) -> str:
        """The place of a cell in the result's document."""
        return f"{self.pointer}/{_token(column)}"


@dataclass(frozen=True, slots=True)
class Total:
    """A value that belongs to the result as a whole: `path` names it, such as ("by_severity", "High")."""

    path: tuple[str, ...]
    value: str | int | float
    pointer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One call's result. `complete`: nothing that matched is missing. `writes`: the call changed something.

    `problem` says why there is nothing, for a call that failed or was refused. `operands` are the refs that a computed
    result was computed from.
    """

    ref: str
    tool: str
    arguments: Mapping[str, JsonValue]
    rows: tuple[Row, ...] = ()
    totals: tuple[Total, ...] = ()
    coverage: Mapping[str, JsonValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    complete: bool = True
    writes: bool = False
    problem: str = ""
    read_at: datetime | None = None
    operands: tuple[str, ...] = ()
    unclear: str = ""
    """The name that was asked for, where it may be one of several others: none of their rows was read."""
    left_out: frozenset[str] = frozenset()
    """Lists of which the tool says that a part is missing, such as `comments` or `alert_entities`."""

    @property
    def computed(self) -> bool:
        """True for a result of `compute`."""
        return self.tool == "compute"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its rows, in the order of their first row."""
        return tuple(dict.fromkeys(row.kind for row in self.rows))

    def has_all_of(self, kind: str) -> bool:
        """Whether no row of this kind is missing, even if something else is."""
        name = next((name for name, each in PARTS.items() if each == kind), kind)
        total, returned = self.coverage.get("rows_total"), self.coverage.get("rows_returned")
        whole = not self.coverage.get("partial") and not self.arguments.get("offset") and total == returned
        return self.complete or (bool(self.left_out) and name not in self.left_out and kind in self.kinds and whole)

    def rows_of(self, kind: str = "") -> tuple[Row, ...]:
        """The rows of one kind; without one those that the call was about: of a dossier, the incidents."""
        kinds = self.kinds
        if len(kinds) < 2:
            return self.rows
        wanted = kind if kind in kinds else "incident" if "incident" in kinds else kinds[0]
        return tuple(row for row in self.rows if row.kind == wanted)


class Results:
    """The results of a conversation by their ids, oldest first; bounded."""

    def __init__(self, most: int = MOST_RESULTS) -> None:
        self._most = most
        self._by_ref: OrderedDict[str, Result] = OrderedDict()
        self._rows = 0

    def add(self, result: Result) -> None:
        """Keep a result; the oldest goes where there are too many."""
        self._rows -= len(before.rows) if (before := self._by_ref.pop(result.ref, None)) is not None else 0
        self._by_ref[result.ref] = result
        self._rows += len(result.rows)
        while len(self._by_ref) > max(1, self._most) or (self._rows > MOST_ROWS and len(self._by_ref) > 1):
            self._rows -= len(self._by_ref.popitem(last=False)[1].rows)

    def get(self, ref: str) -> Result | None:
        """The result with this id."""
        return self._by_ref.get(ref)

    def row(self, ref: str) -> Row | None:
        """The row `c1.3`."""
        name, _, number = ref.partition(".")
        result = self._by_ref.get(name)
        if result is None or not number.isdigit() or not 0 < int(number) <= len(result.rows):
            return None
        return result.rows[int(number) - 1]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._by_ref.values())

    def __len__(self) -> int:
        return len(self._by_ref)


def numbered(run: ToolRun, *, writes: bool = False, read_at: datetime | None = None) -> Result:
    """The result of a call. Raises KeyError, TypeError and their like for a result without the agreed shape."""
    made = Result(ref=run.call.call_id, tool=run.call.tool_name, arguments=dict(run.call.arguments), read_at=read_at)
    match run.outcome:
        case Succeeded(result=result, quoted=quoted):
            if isinstance(result, QueryResult):
                unchanged = bool(result.rows) and result.rows[0].get("changes") in ([], ())
                return replace(
                    made,
                    rows=_rows(made.ref, result.rows, frozenset(quoted)),
                    totals=tuple(_totals(result.summary, (), "/summary")),
                    coverage=result.coverage.to_dict(),
                    notes=result.notes,
                    complete=_is_complete(result, made.arguments),
                    left_out=_left_out(result),
                    unclear=_unclear_name(result),
                    writes=writes and not unchanged,
                )
            rows, totals = _document(made.ref, result.value, frozenset(quoted))
            if made.tool in OUTSIDE:
                rows = tuple(replace(row, quoted=frozenset(row.cells) - {"url"}) for row in rows)
            return replace(made, rows=rows, totals=totals, writes=writes)
        case Denied(detail=detail):
            return replace(made, problem=detail, complete=False)
        case Failed(error=error):
            return replace(made, problem=error.message, complete=False)
        case _:
            assert_never(run.outcome)


def _is_complete(result: QueryResult, arguments: Mapping[str, JsonValue]) -> bool:
    coverage = result.coverage
    return (
        not coverage.partial
        and not arguments.get("offset")
        and (coverage.rows_total is None or coverage.rows_returned >= coverage.rows_total)
        and not _left_out(result)
        and not _unclear_name(result)
    )


def _unclear_name(result: QueryResult) -> str:
    names = result.summary.get("names")
    found = [each for each in names.values() if isinstance(each, Mapping)] if isinstance(names, Mapping) else []
    return next((str(each.get("given")) for each in found if each.get("code") == "name_unclear"), "")


def _left_out(result: QueryResult) -> frozenset[str]:
    left_out = result.summary.get("left_out")
    return (
        frozenset(name for name, count in left_out.items() if count) if isinstance(left_out, Mapping) else frozenset()
    )


class _Numbering:
    """Numbers the rows of one result as they are made."""

    def __init__(self, result: str, quoted: frozenset[str]) -> None:
        self.rows: list[Row] = []
        self._result = result
        self._quoted = quoted
        self._holding = set(quoted)
        for pointer in quoted:
            while pointer := pointer.rpartition("/")[0]:
                if pointer in self._holding:
                    break
                self._holding.add(pointer)

    def add(self, kind: str, pointer: str, raw: Mapping[str, Any], extra: Mapping[str, Cell] | None = None) -> None:
        """A row of the cells of `raw` that are not empty, and those of `extra` that it lacks."""
        cells = {name: _cell(value) for name, value in raw.items() if value not in _EMPTY}
        quoted: frozenset[str] = frozenset()
        if pointer in self._quoted:  # the passages of one text
            quoted = frozenset(cells)
        elif pointer in self._holding or (self._quoted and not pointer):
            quoted = frozenset(name for name in cells if f"{pointer}/{_token(name)}" in self._holding)
        for name, value in (extra or {}).items():
            cells.setdefault(name, value)
        ref = f"{self._result}.{len(self.rows) + 1}"
        self.rows.append(Row(ref, kind, pointer, cells, quoted, frozenset(raw.keys() - cells.keys())))


def _rows(result: str, raws: Sequence[Mapping[str, Any]], quoted: frozenset[str]) -> tuple[Row, ...]:
    numbering = _Numbering(result, quoted)
    for place, raw in enumerate(raws):
        pointer = f"/rows/{place}"
        dossier = isinstance(raw.get("timeline"), list)
        parts = {name for name in PARTS if raw.get(name) and isinstance(raw[name], list)} if dossier else set()
        groups = raw.get("entities") if dossier and isinstance(raw.get("entities"), Mapping) else None
        own = {
            name: value
            for name, value in raw.items()
            if name not in parts and not (groups is not None and name == "entities")
        }
        numbering.add(_kind(raw), pointer, own)
        mine: dict[str, Cell] = {"incident_number": raw["number"]} if dossier and raw.get("number") is not None else {}
        for name in PARTS:
            for at, item in enumerate(raw[name] if name in parts else ()):
                numbering.add(PARTS[name], f"{pointer}/{name}/{at}", item, mine)
        for kind, items in (groups or {}).items():
            for at, item in enumerate(items):
                numbering.add(str(kind), f"{pointer}/entities/{_token(kind)}/{at}", item, mine)
    return tuple(numbering.rows)


def _kind(raw: Mapping[str, Any]) -> str:
    if "alert_id" in raw:
        return "alert"
    return "incident" if "title" in raw and "number" in raw else "row"


def _document(result: str, value: Any, quoted: frozenset[str]) -> tuple[tuple[Row, ...], tuple[Total, ...]]:
    """Rows of a result that is no table: its one list of objects, the passages of its one long text, or itself."""
    numbering = _Numbering(result, quoted)
    if isinstance(value, Mapping):
        value = told_to_people(value)
        lists = [name for name, part in value.items() if _is_list_of_objects(part)]
        texts = [
            name for name, part in value.items() if isinstance(part, str) and len(part) > MOST_CHARACTERS_OF_A_PASSAGE
        ]
        listed = lists[0] if len(lists) == 1 else None
        passages = texts[0] if listed is None and len(texts) == 1 else None
        for at, item in enumerate(value[listed] if listed is not None else ()):
            numbering.add("hit" if listed == "hits" else "row", f"/{_token(listed or '')}/{at}", item)
        if passages is not None:
            _add_passages(numbering, f"/{_token(passages)}", value[passages])
        rest = {name: part for name, part in value.items() if name not in (listed, passages)}
        if listed is None and passages is None:
            numbering.add("row", "", rest)
            return tuple(numbering.rows), ()
        return tuple(numbering.rows), tuple(_totals(rest, (), ""))
    if _is_list_of_objects(value):
        for at, item in enumerate(value):
            numbering.add("row", f"/{at}", item)
    elif isinstance(value, str):
        _add_passages(numbering, "", value)
    elif value not in _EMPTY:
        numbering.add("row", "", {"value": value})
    return tuple(numbering.rows), ()


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _add_passages(numbering: _Numbering, pointer: str, text: str) -> None:
    """Paragraphs of a text, short ones together. All of them point at the text, which holds them."""
    held = ""
    for paragraph in text.split("\n\n"):
        if held and len(held) + len(paragraph) > MOST_CHARACTERS_OF_A_PASSAGE:
            numbering.add("passage", pointer, {"text": held})
            held = ""
        held = f"{held}\n\n{paragraph}" if held else paragraph
    if held.strip():
        numbering.add("passage", pointer, {"text": held})


def _cell(value: Any) -> Cell:
    """A value in a form that a reader sees: an entity by its kind and names, a list as a tuple."""
    if isinstance(value, Mapping):
        if "name" in value and "kind" in value:
            return _entity(value)
        return "; ".join(f"{name}: {_text(part)}" for name, part in value.items() if part not in _EMPTY)
    if isinstance(value, list | tuple):
        return tuple(_cell(item) for item in value)
    return value if isinstance(value, str | int | float | bool) else str(value)


def _entity(item: Mapping[str, Any]) -> str:
    """`account:anna@x.example Anna Smith`: its kind, its name, and the properties that a person knows it by."""
    name = str(item["name"])
    keys = ("display_name", "sender", "sha256", "sha1", "md5", "command_line", "directory")
    told = (str(item[key]) for key in keys if item.get(key))
    return " ".join((f"{item['kind']}:{name}", *(each for each in told if each not in name)))


def _text(value: Any) -> str:
    made = _cell(value)
    return ", ".join(map(_text, made)) if isinstance(made, tuple) else str(made)


def _totals(value: Any, path: tuple[str, ...], pointer: str) -> Iterator[Total]:
    """The leaves of a summary. Items of a list of counted names are told by their name."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _totals(part, (*path, str(name)), f"{pointer}/{_token(name)}")
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            named = str(item["name"]) if isinstance(item, Mapping) and "name" in item else None
            if named is None:
                yield from _totals(item, path, f"{pointer}/{at}")
                continue
            for key, part in item.items():
                if key != "name":
                    yield from _totals(part, (*path, named, str(key)), f"{pointer}/{at}/{_token(key)}")
    elif value not in (None, "") and not isinstance(value, bool):
        yield Total(path, value, pointer)


def _token(name: object) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")
