"""What a question back offers to choose from: for each reason the frames that would answer it. Picking one parses
nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Option, Unclear
from sentinel_rag.agent.planner.plan import View
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ALERT, ENTITY, INCIDENT, OWNER, ListItem, shown_words
from sentinel_rag.language.frames import Frame, WorkspaceNames

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
