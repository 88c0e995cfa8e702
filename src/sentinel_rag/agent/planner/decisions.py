"""What a plan is: decisions as values, the views of their answers, the rows of the decision table, and questions back
that stand in place of a call.

A `Decision` says what becomes of a question, a `Plan` how its answer is made. `View` names a way of showing results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec

from sentinel_rag.agent.planner.knowledge import KnowledgeWish
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ALERT, ENTITY, INCIDENT, OWNER, ListItem, shown_words
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames import Frame, WorkspaceNames
from sentinel_rag.language.frames.orders import Order
from sentinel_rag.language.text import toml_beside


class View(StrEnum):
    """How results are shown."""

    INCIDENTS = "incidents"
    INCIDENT_COUNT = "incident_count"
    INCIDENT = "incident"
    ALERTS = "alerts"
    ALERT_COUNT = "alert_count"
    ALERT = "alert"
    ATTRIBUTE = "attribute"
    PROPERTY = "property"
    PROFILE = "profile"
    KEYWORD = "keyword"
    TREND = "trend"
    TOP = "top"
    SUMMARY = "summary"
    KQL = "kql"
    TEMPLATES = "templates"
    TABLES = "tables"
    SEARCH = "search"
    WORKSPACES = "workspaces"
    COLUMNS = "columns"
    ANALYSIS = "analysis"
    COMPARISON = "comparison"
    EVENTS = "events"
    NEIGHBOUR = "neighbour"
    COMPUTED = "computed"
    WEB = "web"
    FILE = "file"
    FILES = "files"


def listed(view: View) -> View:
    """The view that shows the rows behind a count; every other view is its own."""
    return {View.ALERT_COUNT: View.ALERTS, View.INCIDENT_COUNT: View.INCIDENTS}.get(view, view)


def counted(view: View) -> View:
    """The view that counts the rows of a list; every other view is its own."""
    return {View.ALERTS: View.ALERT_COUNT, View.INCIDENTS: View.INCIDENT_COUNT}.get(view, view)


WITHOUT = "without:"
"""Begins an aspect of a ranking that names a row to leave out."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a tool. Calls of one plan do not depend on each other."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON values. Stored conversations hold calls, and what reads them takes no recursive type."""


OF_TOTALS = ("ratio", "difference", "change")
"""Calculations over how many rows there are, for which no row is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Calls and their view. `aspects` are the fields asked for; `opening` are fixed sentences that come first;
    `first` rows were on the screen already (a "next page");
    `told` are the sentences before the question;
    `section` if this is shown as one of several workspaces, where an empty one offers nothing."""

    view: View
    calls: tuple[PlannedCall, ...]
    frame: Frame = field(default_factory=lambda: Frame(""))
    """The question as it was read."""
    aspects: tuple[str, ...] = ()
    opening: tuple[str, ...] = ()
    first: int = 0
    alert_id: str = ""
    told: tuple[str, ...] = ()
    story: Frame = field(default_factory=lambda: Frame(""))
    """The sentences before the question, as they were read together."""
    section: bool = False
    unknown: tuple[str, ...] = ()
    """Words that are searched for as a name or a title only because nothing else knew them."""

    then: tuple[Mapping[str, Any], ...] = ()
    """Calculations over the rows of the calls, as in `Decision`."""

    @property
    def chooses_rows(self) -> bool:
        """True if rows of every page are looked at to choose among them."""
        return any(step["op"] not in OF_TOTALS for step in self.then)


Call = PlannedCall


class DecisionKind(StrEnum):
    """What becomes of a question."""

    CALL = "call"
    ASK = "ask"
    CHANGE = "change"
    HELP = "help"
    SMALL_TALK = "small_talk"
    SAMPLE = "sample_data"
    EXPORT = "export"
    OUT_OF_SCOPE = "out_of_scope"


class Unclear(StrEnum):
    """Why a question is asked back. The values beside it fill the sentence."""

    UNREAD = "unread"
    TIME = "time"
    FUTURE = "future"
    NEAR_NAME = "near_name"
    UNKNOWN_NAME = "unknown_name"
    AMBIGUOUS_NAME = "ambiguous_name"
    ONE_NAME = "one_name"
    NOT_TAKEN = "not_taken"
    NOT_EXPRESSIBLE = "not_expressible"
    ONE_SEVERITY = "one_severity"
    NUMBER_OF_WHAT = "number_of_what"
    NO_TREND_OF_INCIDENTS = "no_trend_of_incidents"
    WHICH_THING = "which_thing"
    COMPARED_WITH_WHAT = "compared_with_what"
    ONE_TIME = "one_time"
    WHICH_TABLE = "which_table"
    NO_COLUMN = "no_column"
    NO_WATCHLIST = "no_watchlist"
    CANNOT_LEAVE_OUT = "cannot_leave_out"
    TITLE_OR_LOGS = "title_or_logs"
    MOST_OF_WHAT = "most_of_what"
    OWNER_OR_INVOLVED = "owner_or_involved"
    WHO_ARE_YOU = "who_are_you"
    NO_STORED_QUERY = "no_stored_query"
    NO_SUCH_QUERY = "no_such_query"
    WHICH_NAME = "which_name"
    OWN_QUERY = "own_query"
    NO_SUCH_ROW = "no_such_row"
    HOW_LONG = "how_long"
    INCIDENTS_OR_ALERTS = "incidents_or_alerts"
    WHICH_OF_THESE = "which_of_these"
    NOTHING_SHOWN = "nothing_shown"
    NO_MORE = "no_more"
    WHICH_MOMENT = "which_moment"
    NOTHING_BEFORE = "nothing_before"
    SAME_OR_ALL = "same_or_all"
    NOTHING_NEW = "nothing_new"


def _sentences() -> Mapping[str, str]:
    return toml_beside(__package__, "questions_back.toml")


@dataclass(frozen=True, slots=True)
class Option:
    """One way to go on, as it is offered under its number. Picking it parses nothing."""

    text: str
    frame: Frame
    number: int = 0
    """Under which it stands on the screen; 0 where it has none."""
    calls: tuple[Call, ...] = ()
    """Empty where the planner still decides what answers the frame."""
    view: View | None = None
    aspects: tuple[str, ...] = ()
    item: ListItem | None = None
    """The thing that it is about, so that it can be picked by its words."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a frame, by which row of the table."""

    kind: DecisionKind
    frame: Frame
    calls: tuple[Call, ...] = ()
    reason: Unclear | None = None
    values: tuple[str, ...] = ()
    row: str = ""
    view: View | None = None
    """How the answer is told; None where no call is made."""
    aspects: tuple[str, ...] = ()
    """What is asked of the thing, as `Plan.aspects`."""
    then: tuple[Mapping[str, Any], ...] = ()
    """Calculations over the rows of the calls: arguments of `compute`, where $1 stands for the rows of the first."""
    opening: tuple[str, ...] = ()
    """Fixed sentences that come first."""
    wish: KnowledgeWish | None = None
    """What is looked for in the knowledge base, where the call is a search of it."""
    order: Order | None = None
    """What is to be changed, for CHANGE."""
    options: tuple[Option, ...] = ()
    """Ways to answer a question back."""

    @property
    def sentence(self) -> str:
        """The question back, with its values."""
        if self.reason is None:
            return ""
        quoted = [f"“{value}”" for value in self.values] or [""]
        first = self.values[0] if self.reason is Unclear.TIME else quoted[0]
        return _sentences()[self.reason].format(value=first, values=", ".join(quoted), rest=" or ".join(quoted[1:]))


def ask(frame: Frame, reason: Unclear, *values: str) -> Decision:
    """A question back."""
    return Decision(DecisionKind.ASK, frame, reason=reason, values=values)


def call(frame: Frame, tool: str, arguments: Mapping[str, JsonValue]) -> Decision:
    """One call that answers the frame."""
    return Decision(DecisionKind.CALL, frame, calls=(Call(tool, arguments),))


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One kind of question. `needs` all hold, `never` none; `stored` looks among the stored queries."""

    kind: str
    needs: tuple[tuple[str, ...], ...]
    score: float
    never: tuple[str, ...] = ()
    tool: str = ""
    fixed: Mapping[str, Any] | None = None
    reason: Unclear | None = None
    stored: bool = False
    compute: str = ""
    """The calculation of `computing` that answers it."""
    view: View | None = None
    """How the answer is told where it is not told as the tool's answers are."""

    def fits(self, told: frozenset[str]) -> bool:
        """True if features, each as type and as type:value, are of this kind of question."""
        return all(not told.isdisjoint(one) for one in self.needs) and told.isdisjoint(self.never)


def _data() -> Mapping[str, Any]:
    return toml_beside(__package__, "rows.toml")


@cache
def told_of(table: str) -> Mapping[str, Sequence[str]]:
    """A table of `rows.toml`: what each tool `takes`, what it `carries` beside that (`every` for all), `parameters`."""
    return {name: tuple(values) for name, values in _data()[table].items()}


@cache
def rows() -> tuple[DecisionRow, ...]:
    """All rows, the best first."""
    told = _data()["row"]
    return tuple(sorted(map(_row, told), key=lambda row: -row.score))


def _row(told: Mapping[str, Any]) -> DecisionRow:
    needs = tuple(tuple(one.split("|")) for one in told.get("needs", ()))
    exact = sum(1 for one in needs if all(":" in each for each in one))
    score = 10 * len(needs) + 3 * exact + told.get("weight", 0)
    return msgspec.convert({**told, "needs": needs, "score": score, "reason": told.get("ask")}, DecisionRow)


@dataclass(frozen=True, slots=True)
class Settling:
    """What words mean beside others: where all of `needs` hold, none of `never`, and `only` these values of a type,
    what is to `clear` goes, `unsay` with the words that say it, values `move` to another type, `tell` is added."""

    kind: str
    needs: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    clear: tuple[str, ...] = ()
    unsay: tuple[str, ...] = ()
    move: Mapping[str, str] = field(default_factory=dict)
    tell: tuple[str, ...] = ()

    def settle(self, frame: Frame, shape: frozenset[str]) -> None:
        """Settle a frame of that kind; `shape` holds what it says beside its features."""

        def says(senses: str) -> bool:
            return any(one in shape or frame.has(one) for one in senses.split("|"))

        others = any({*frame.all(type_)} - values for type_, values in self.only.items())
        if others or any(map(says, self.never)) or not all(map(says, self.needs)):
            return
        for type_, _, value in _parted((*self.clear, *self.unsay)):
            frame.features[type_] = [one for one in frame.all(type_) if value and one != value]
        for taken, place in self.move.items():
            moved = dict.fromkeys((*frame.all(place), *frame.features.pop(taken, ())))
            frame.features[place] = sorted(moved, key=frame.text.find)
        gone = [(type_, frozenset({value}) if value else None) for type_, _, value in _parted(self.unsay)]
        frame.items = tuple(item for item in frame.items if not any(item.sense(*sense) for sense in gone))
        for type_, _, value in _parted(self.tell):
            frame.tell(type_, value)


def _parted(senses: Sequence[str]) -> list[tuple[str, str, str]]:
    return [sense.partition(":") for sense in senses]


@cache
def settlings() -> tuple[Settling, ...]:
    """All rows that settle a frame, in their order."""
    return msgspec.convert(_data()["settle"], tuple[Settling, ...])


MOST_OPTIONS = 9
_OF_AN_OWNER = {OWNER: ("kind:incident", "status"), "account": ()}
"""What makes a person the owner of incidents, and not one of those that they name."""


def with_options(decision: Decision, names: WorkspaceNames) -> Decision:
    """The decision with what it offers, if it is a question back that has a few answers."""
    offers = None if decision.reason is None else _OFFERS.get(decision.reason)
    if decision.kind is not DecisionKind.ASK or decision.options or offers is None:
        return decision
    found = offers(decision, names)
    numbered = [replace(option, number=place) for place, option in enumerate(found, start=1)]
    return replace(decision, options=tuple(numbered)) if len(numbered) <= MOST_OPTIONS else decision


def about(frame: Frame, item: ListItem) -> Frame:
    """The frame with `item` as what it is about."""
    told = frame.copy()
    if item.kind == INCIDENT:
        told.tell("incident", item.value)
    elif item.kind == ALERT:
        if told.around is not None:
            told.features["alert_time"] = [item.time]
        of_it = item.incident if told.has("kind:incident") and item.incident else item.value
        told.tell("alert_id" if told.has("attr:events") else "incident", of_it)
    elif item.of_kind in (OWNER, "account") and told.has("rel:owned_by", *_OF_AN_OWNER[item.of_kind]):
        told.features["owner"] = [item.value]
    elif item.kind == ENTITY:
        told.tell("name", item.value)
        kind = "account" if item.entity_kind == OWNER else item.entity_kind
        if kind:
            told.features["of_kind"] = [kind]
            told.kinds[item.value] = (kind,)
        told.whole[item.value] = item.value
    return told


def things(frame: Frame, items: Sequence[ListItem], numbers: Sequence[int] = ()) -> tuple[Option, ...]:
    """One option for each thing, under its number on the screen where it has one."""
    places = numbers or range(1, len(items) + 1)
    return tuple(
        Option(shown_words(item), about(frame, item), number, item=item)
        for number, item in zip(places, items, strict=True)
    )


def _other_name(decision: Decision, names: WorkspaceNames) -> list[Option]:
    """The names that the one may have meant."""
    said, *others = decision.values
    offered: list[Option] = []
    for name in others:
        known = names.exact(name)
        kind = known[0].kind if len(known) == 1 else ""
        frame = decision.frame.copy()
        frame.features["name"] = [name if each == said else each for each in frame.all("name")]
        frame.whole[name], frame.kinds[name] = name, (kind,) if kind else ()
        offered.append(Option(f"{kind} {plain(name)}".strip(), frame, item=ListItem(ENTITY, name, entity_kind=kind)))
    return offered


def _one_of(type_: str) -> Callable[[Decision, WorkspaceNames], list[Option]]:
    def offered(decision: Decision, _names: WorkspaceNames) -> list[Option]:
        return [
            Option(plain(value), _told(decision.frame, {type_: [value]}))
            for value in dict.fromkeys(decision.frame.all(type_))
        ]

    return offered


def _told(frame: Frame, features: Mapping[str, list[str]]) -> Frame:
    told = frame.copy()
    told.features.update({type_: list(values) for type_, values in features.items()})
    return told


def _incidents_or_alerts(decision: Decision, _names: WorkspaceNames) -> list[Option]:
    return [Option(f"{kind}s", _told(decision.frame, {"kind": [kind]})) for kind in (INCIDENT, ALERT)]


def _incidents_with_owners(decision: Decision, _names: WorkspaceNames) -> list[Option]:
    """Incidents in the place of alerts, which have no owner."""
    if not decision.frame.has("owner") or not decision.frame.has("kind:alert"):
        return []
    told = _told(decision.frame, {"kind": [INCIDENT]})
    told.items = tuple(item for item in told.items if item.sense("kind", frozenset({ALERT})) is None)
    return [Option("incidents", told)]


def _alerts(decision: Decision, _names: WorkspaceNames) -> list[Option]:
    return [Option("alerts", _told(decision.frame, {"kind": [ALERT]}))]


def _owner_or_involved(decision: Decision, _names: WorkspaceNames) -> list[Option]:
    name = decision.frame.one("name") or ""
    owned = _told(decision.frame, {"owner": [name], "name": [], "of_kind": []})
    involved = _told(decision.frame, {"rel": ["involve"]})
    words = plain(name)
    return [Option(f"incidents that {words} owns", owned), Option(f"incidents that involve {words}", involved)]


def _alerts_of_the_name(decision: Decision, _names: WorkspaceNames) -> list[Option]:
    """The alerts that name what no stored query can be narrowed by."""
    asked = decision.frame
    offered = []
    for name in asked.all("name"):
        call = Call("query_alerts", {"entity": name, **asked.window})
        frame = Frame("", window=dict(asked.window), kinds=dict(asked.kinds), whole=dict(asked.whole))
        frame.tell("kind", ALERT)
        frame.tell("name", name)
        offered.append(Option(f"alerts that name {plain(name)}", frame, calls=(call,), view=View.ALERTS))
    return offered


def _number_of_what(decision: Decision, _names: WorkspaceNames) -> list[Option]:
    value = decision.values[0] if decision.values else ""
    if not value.isdecimal() or value == "0":
        return []
    kept: dict[str, list[str]] = {"num": [], "digits": [], "limit": [], "counted": []}
    return [Option(f"incident {value}", _told(decision.frame, {**kept, "incident": [value]}))]


_OFFERS: Mapping[Unclear, Callable[[Decision, WorkspaceNames], list[Option]]] = {
    Unclear.NEAR_NAME: _other_name,
    Unclear.AMBIGUOUS_NAME: _other_name,
    Unclear.ONE_NAME: _one_of("name"),
    Unclear.ONE_SEVERITY: _one_of("severity"),
    Unclear.INCIDENTS_OR_ALERTS: _incidents_or_alerts,
    Unclear.NOT_TAKEN: _incidents_with_owners,
    Unclear.NO_TREND_OF_INCIDENTS: _alerts,
    Unclear.OWNER_OR_INVOLVED: _owner_or_involved,
    Unclear.NO_STORED_QUERY: _alerts_of_the_name,
    Unclear.NUMBER_OF_WHAT: _number_of_what,
}
