"""Which alerts and incidents name an entity, however it was written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts import newest_alerts
from sentinel_rag.sentinel.alerts.alerts import Alert
from sentinel_rag.sentinel.alerts.newest_alerts import ALERT_TABLE
from sentinel_rag.sentinel.entities.entities import (
    entity_name,
    folded_value,
    identifying_values,
    identity_of,
    merge_identities,
)
from sentinel_rag.sentinel.incidents.incidents import incident_links
from sentinel_rag.sentinel.logs.kql_literals import (
    NameCode,
    NameReading,
    holding,
    is_whole,
    list_literal,
    read_name,
    string_literal,
)
from sentinel_rag.sentinel.logs.log_analytics import LogsTable
from sentinel_rag.sentinel.workspace_view import WorkspaceView

# The net must catch every spelling of the JSON in `Entities` (doubled backslashes, \u escapes, a UPN split into Name
# and UPNSuffix), so it asks only for plain pieces of the value; which alerts really name the entity is then decided on
# the parsed objects.
MOST_CANDIDATES = 2000
_PLAIN_PIECE = re.compile(r"[A-Za-z0-9_-]+")
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_IPV6 = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*")
_MOST_PIECES = 4
_UPN = re.compile(r"[^@\s\\]+@[^@\s\\]+")
_DOTTED_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){2,}")
_PRINCIPALS = ("account", "host")
_TEXTS = frozenset({"mailmessage", "mailcluster", "url", "process", "registry-key", "registry-value"})
"""Kinds whose names are sentences, commands or addresses that an attacker writes: no such name is proposed."""
_MOST_KEYS = 20


def net_condition(value: str) -> str:
    """A KQL predicate that holds for every alert naming `value`, and for some others; `true` if nothing is plain."""
    address = folded_value(value)
    if _IPV4.fullmatch(address):
        return _holding([address])
    return pieces_condition(address if _IPV6.fullmatch(address) else _distinctive_part(value))


def pieces_condition(text: str) -> str:
    """A KQL predicate that holds for every alert with `text` in whatever JSON, and for some others."""
    return _holding(sorted({piece for piece in _PLAIN_PIECE.findall(text) if len(piece) > 1}, key=len, reverse=True))


def _holding(pieces: Sequence[str]) -> str:
    if not pieces:
        return "true"
    tests = [
        f"(Entities contains {string_literal(piece)} or CompromisedEntity contains {string_literal(piece)})"
        for piece in pieces[:_MOST_PIECES]
    ]
    return " and ".join(tests)


def wider_net(value: str) -> str:
    """A KQL predicate for alerts that may name something like `value`, letters and digits alone compared."""
    tests = [net_condition(value)]
    if not is_whole(value):
        tests += [holding("tostring(Entities)", value), holding("CompromisedEntity", value)]
    return " or ".join(f"({test})" for test in tests)


def _distinctive_part(value: str) -> str:
    """The user of a UPN, the first label of a host name, all of anything else.

    The rest may be spelled otherwise in another alert that means the same account or host.
    """
    if _UPN.fullmatch(value):
        return value.partition("@")[0]
    if _DOTTED_NAME.fullmatch(value):
        return value.partition(".")[0]
    return value


def alerts_naming(candidates: Sequence[Alert], value: str, kind: str | None) -> list[Alert]:
    """The candidates that name the entity, also under another spelling that `entities` merges with it."""
    found = {alert.alert_id for alert in candidates if names_entity(alert, value, kind)}
    wanted = folded_value(value)
    for merged_kind in _PRINCIPALS:
        if kind not in (None, merged_kind):
            continue
        sightings = [
            (identity_of(entity), wanted in identifying_values(entity), alert.alert_id)
            for alert in candidates
            for entity in alert.entities.entities
            if entity.kind == merged_kind
        ]
        groups = merge_identities([identity for identity, _, _ in sightings])
        named = {group for group, (_, direct, _) in zip(groups, sightings, strict=True) if direct}
        found.update(alert_id for group, (_, _, alert_id) in zip(groups, sightings, strict=True) if group in named)
    return [alert for alert in candidates if alert.alert_id in found]


def other_keys(found: Iterable[Alert], value: str, kind: str | None) -> tuple[str, ...]:
    """The ids and addresses of the accounts and hosts that `value` names in these alerts: what other alerts may tell of
    them instead of it."""
    wanted = folded_value(value)
    identities = [
        identity_of(entity)
        for alert in found
        for entity in alert.entities.entities
        if entity.kind in _PRINCIPALS and kind in (None, entity.kind) and wanted in identifying_values(entity)
    ]
    keys = {key.partition(":")[2] for identity in identities for key in identity.strong}
    return tuple(sorted(key for key in keys if key != wanted))[:_MOST_KEYS]


def names_entity(alert: Alert, value: str, kind: str | None) -> bool:
    """True if an entity of the alert (of `kind`, if given) is identified by `value`, in any case.

    CompromisedEntity counts as well, unless a kind is asked for that it cannot be.
    """
    wanted = folded_value(value)
    entities = (entity for entity in alert.entities.entities if kind is None or entity.kind == kind)
    if any(wanted in identifying_values(entity) for entity in entities):
        return True
    compromised = str(alert.record["CompromisedEntity"] or "").casefold()
    if kind not in (None, "host", "account") or not compromised:
        return False
    return compromised == wanted or (kind != "account" and compromised.partition(".")[0] == wanted)


def read_entity(alerts: Iterable[Alert], value: str, kind: str | None) -> tuple[NameReading, str | None]:
    """What a value that names no entity exactly stands for, and the kind of what is used: the one account or host that
    is like it, or where there is no such one the one entity of another kind."""
    names: dict[str, dict[str, None]] = {}
    for alert in alerts:
        for entity in alert.entities.entities:
            if kind in (None, entity.kind) and entity.kind not in _TEXTS:
                names.setdefault(entity.kind, {})[entity_name(entity)] = None
    first = [name for each in _PRINCIPALS for name in names.get(each, ())]
    for among in (first, [name for each, found in names.items() if each not in _PRINCIPALS for name in found]):
        reading = read_name("entity", value, among)
        if reading.code is not NameCode.UNKNOWN:
            return reading, next((each for each, found in names.items() if reading.used in found), None)
    return NameReading("entity", value, NameCode.UNKNOWN), None


@dataclass(frozen=True, slots=True)
class EntityAlerts:
    """All alerts found, in the order asked for. `whole` is False if more may name the entity than were looked at;
    `answer` is partial then. `notes` are for the reader, `net` is the KQL predicate that found the candidates, `value`
    what they name: the name as it was given, or the one that `reading` used in its place."""

    alerts: tuple[Alert, ...]
    answer: LogsTable
    time_column: str
    notes: tuple[CodedNote, ...]
    whole: bool
    net: str
    value: str
    reading: NameReading | None = None


async def find_entity_alerts(
    view: WorkspaceView,
    value: str,
    kind: str | None,
    *,
    window: TimeWindow,
    order: str,
    conditions: tuple[str, ...] = (),
    advice: str = "narrow the window",
) -> EntityAlerts:
    """Alerts of `window` that meet `conditions` and name `value`; at most MOST_CANDIDATES are looked at, and `advice`
    ends the sentence that says so."""
    found = await _alerts_naming(view, value, kind, window, order, conditions, advice)
    if found.alerts or not found.whole:
        return found
    answer = await view.logs.query(
        newest_alerts.listed(
            newest_alerts.newest_alerts((wider_net(value),)),
            TimeWindow(),
            newest_alerts.FIRST_ROW,
            "newest",
            MOST_CANDIDATES,
        ),
        TimeWindow(),
    )
    alerts = [Alert.from_record(record) for record in answer.records()]
    if answer.partial or len(alerts) >= MOST_CANDIDATES:
        return found
    if alerts_naming(alerts, value, kind):
        reading, used = NameReading("entity", value, NameCode.KNOWN), None
    else:
        reading, used = read_entity(alerts, value, kind)
    if reading.used is not None:
        found = await _alerts_naming(view, reading.used, used, window, order, conditions, advice)
    return replace(found, reading=reading, notes=(*found.notes, reading.note("SecurityAlert")))


async def _alerts_naming(
    view: WorkspaceView,
    value: str,
    kind: str | None,
    window: TimeWindow,
    order: str,
    conditions: tuple[str, ...],
    advice: str,
) -> EntityAlerts:
    span = newest_alerts.alert_span(window)

    async def caught(net: str) -> tuple[LogsTable, str, tuple[CodedNote, ...]]:
        base = newest_alerts.newest_alerts((*conditions, net))
        return await newest_alerts.placed(
            lambda column: view.logs.query(newest_alerts.listed(base, window, column, order, MOST_CANDIDATES), span),
            window,
        )

    net = net_condition(value)
    answer, column, told = await caught(net)
    candidates = [Alert.from_record(record) for record in answer.records()]
    found = alerts_naming(candidates, value, kind)
    nets = {net, *map(pieces_condition, other_keys(found, value, kind))}
    if len(nets) > 1 and "true" not in nets:  # other alerts may tell of the same account by its id alone
        net, first = " or ".join(f"({each})" for each in sorted(nets)), answer
        answer, column, told = await caught(net)
        answer = answer.cut(first.partial_reason) if first.partial else answer
        candidates = [Alert.from_record(record) for record in answer.records()]
        found = alerts_naming(candidates, value, kind)
    notes = list(told)
    whole = len(candidates) < MOST_CANDIDATES and not answer.partial
    if len(candidates) >= MOST_CANDIDATES:
        answer = answer.cut(f"Only {MOST_CANDIDATES} alerts that may name it were looked at; {advice}.")
    unread = sum(not alert.entities.readable for alert in candidates)
    if unread:
        notes.append(note("candidates_unreadable", count=unread))
    return EntityAlerts(tuple(found), answer, column, tuple(notes), whole, net, value)


@dataclass(frozen=True, slots=True)
class EntityIncidents:
    """KQL conditions on incidents, and what was read to know them; empty where no entity is asked for.

    `whole` is False if an incident may be missing, because more alerts may name the entity than were looked at.
    """

    conditions: tuple[str, ...] = ()
    answers: tuple[LogsTable, ...] = ()
    tables: tuple[str, ...] = ()
    notes: tuple[CodedNote, ...] = ()
    whole: bool = True
    reading: NameReading | None = None


async def incidents_naming(view: WorkspaceView, arguments: Mapping[str, Any]) -> EntityIncidents:
    """From `entity` and `entity_kind`. Alerts of all times are looked at: those of an incident may be older than it."""
    found = await find_entity_alerts(
        view,
        arguments["entity"],
        arguments.get("entity_kind"),
        window=TimeWindow(),
        order="newest",
        advice="incidents of older alerts may be missing",
    )
    value = found.value
    links = await incident_links(view, [alert.alert_id for alert in found.alerts])
    numbers = sorted({number for known in links.numbers.values() for number in known})
    notes = list(found.notes)
    if found.alerts and not numbers:
        notes.append(note("named_by_no_incident", count=len(found.alerts), entity=value))
    return EntityIncidents(
        (f"IncidentNumber in {list_literal(numbers)}",),
        (found.answer,) if links.answer is None else (found.answer, links.answer),
        (ALERT_TABLE,),
        tuple(notes),
        found.whole and (links.answer is None or not links.answer.partial),
        found.reading,
    )
