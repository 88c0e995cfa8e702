"""The numbers that a count may be: read from results where they tell it, counted again from their rows where not.

Each comes with the value that it rests on and the way it was computed. An answer's number must be one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Kind
from sentinel_rag.agent.grounding.counted_things import Counted
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, RunEvidence
from sentinel_rag.agent.grounding.records import Leaf, Record, Speaks
from sentinel_rag.agent.grounding.state_atoms import State
from sentinel_rag.agent.grounding.state_verdicts import KEYS, fits
from sentinel_rag.agent.grounding.subjects import Subject, Topic

States = Sequence[tuple[Kind, State]]

_TOOL_NOUNS = {
    "query_incidents": "incident",
    "get_threat_summary": "incident",
    "get_incident_detail": "incident",
    "query_alerts": "alert",
    "get_alert_trend": "alert",
    "get_alert_events": "row",
    "run_kql_query": "row",
    "run_freeform_kql": "row",
    "list_tables": "table",
    "list_workspaces": "workspace",
    "list_kql_templates": "template",
    "describe_table": "column",
}
_LISTS = {
    "comment": ("comments",), "tactic": ("tactics",), "technique": ("techniques",), "label": ("labels",),
    "bookmark": ("bookmarks",), "row": ("timeline",), "alert": ("alerts",), "table": ("tables",),
}  # fmt: skip
_NOT_LISTS = ("get_threat_summary", "get_alert_trend", "get_incident_detail")
"""Tools whose rows are not all that match."""
_ALERT_TOTALS = {"alert": ("alerts_considered",)}
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A number that results support."""

    value: float
    leaf: Leaf | None
    formula: str = ""


def candidates(counted: Counted, index: EvidenceIndex) -> list[Candidate]:
    """Every number that the count may be; those of its subject where it has one."""
    found: list[Candidate] = list(_of_key(counted.name, index)) if counted.name else []
    if found:
        return found
    for subject in counted.subjects:
        if subject.topic is Topic.INCIDENT:
            found += _of_incident(subject, counted, index)
        elif subject.topic is Topic.ALERT:
            found += _of_alert(subject, counted)
        else:
            found += _of_row(subject, counted)
    if counted.subjects and not counted.loosely and (found or _bound(counted)):
        return found
    return [*found, *_of_lists(counted, index)]


def _of_key(name: str, index: EvidenceIndex) -> Iterator[Candidate]:
    """The number that a group of a summary has under a name, or an element of a ranking beside it."""
    keys = {name.lower(), name.lower().replace(" ", "")}
    for run in index.results:
        for record in run.records:
            if not record.pointer.startswith("/summary"):
                continue
            for key in keys & record.leaves.keys():
                leaf = record.leaves[key][0]
                if _is_number(leaf.value):
                    yield Candidate(float(str(leaf.value)), leaf)
            named = record.first("name")
            if named is not None and str(named.value).lower() in keys:
                for key in ("count", "alerts"):
                    if (leaf_of := record.first(key)) is not None and _is_number(leaf_of.value):
                        yield Candidate(float(str(leaf_of.value)), leaf_of)


def single_counts(counted: Counted, index: EvidenceIndex) -> list[Candidate]:
    """The counts of single rows of rankings, trends and lists, for "two alerts each"."""
    return [
        each
        for record in index.records(Speaks.ENTITY, Speaks.ROW, Speaks.INCIDENT)
        for each in (
            _in_incident(record, counted) if record.speaks is Speaks.INCIDENT else _own_numbers(record, counted)
        )
    ]


def _bound(counted: Counted) -> bool:
    """True if the subject, once named, must be the one whose things are counted."""
    return counted.noun != "row" and any(
        subject.topic in (Topic.ENTITY, Topic.INCIDENT) for subject in counted.subjects
    )


def _of_incident(subject: Subject, counted: Counted, index: EvidenceIndex) -> Iterator[Candidate]:
    records = [record for record in subject.records if record.speaks is Speaks.INCIDENT]
    if records and len(subject.numbers) == 1:
        newest = max(record.run for record in records)
        full = [record for record in records if record.run == newest]
        records = [*full, *(record for record in records if record.run != newest and record.lists.get("alerts"))]
    found = [each for record in records for each in _in_incident(record, counted)]
    if not found and counted.noun == "alert":
        alerts = {
            str(leaf.value): record
            for number in sorted(subject.numbers)
            for record in index.alerts(number)
            if (leaf := record.first("alert_id")) is not None
        }
        chosen = [record for record in alerts.values() if _all_fit(record, counted.states)]
        if alerts:
            yield Candidate(len(chosen), _some_leaf(chosen or list(alerts.values())), "alerts of the incident, counted")
    yield from found


def _in_incident(record: Record, counted: Counted) -> Iterator[Candidate]:
    total = record.first("alert_count")
    if counted.noun == "alert":
        alerts = [child for child in record.children if child.speaks is Speaks.ALERT]
        if counted.states:
            whole = total is None or len(alerts) == total.value
            if alerts and whole:
                chosen = [alert for alert in alerts if _all_fit(alert, counted.states)]
                yield Candidate(len(chosen), _some_leaf(chosen or alerts), "alerts of the incident with that state")
        elif total is not None and isinstance(total.value, int | float):
            yield Candidate(float(total.value), total)
        elif alerts:
            yield Candidate(len(alerts), _some_leaf(alerts), "alerts of the incident, counted")
        return
    for inner in record.inside():
        if inner.pointer.endswith("/entity_counts"):
            if counted.noun == "entity":
                numbers = [leaf for leaves in inner.leaves.values() for leaf in leaves]
                yield Candidate(sum(float(str(leaf.value)) for leaf in numbers), _first(numbers), "sum of all kinds")
            for leaf in inner.leaves.get(counted.noun, ()):
                yield Candidate(float(str(leaf.value)), leaf)
            return
    for inner in record.inside():
        if inner.pointer.endswith("/entities") and counted.noun in inner.lists:
            yield Candidate(inner.lists[counted.noun], _some_leaf(inner.children), "entities of this kind, counted")
    for name in _LISTS.get(counted.noun, ()):
        if name in record.lists:
            yield Candidate(record.lists[name], _some_leaf([record]), f"elements of {name}")


def _of_alert(subject: Subject, counted: Counted) -> Iterator[Candidate]:
    for record in subject.records[:8]:
        entities = [child for child in record.children if child.speaks is Speaks.ENTITY]
        told = record.first("entity_count")
        if counted.noun == "entity" and told is not None:
            yield Candidate(float(str(told.value)), told)
        kinds = [child for child in entities if (kind := child.first("kind")) and kind.value == counted.noun]
        if kinds or counted.noun in {"host", "account", "ip", "url", "file", "process"}:
            yield Candidate(len(kinds), _some_leaf(kinds or [record]), "entities of the alert of this kind, counted")
        for name in _LISTS.get(counted.noun, ()):
            if name in record.lists:
                yield Candidate(record.lists[name], _some_leaf([record]), f"elements of {name}")
        yield from _own_numbers(record, counted)


def _of_row(subject: Subject, counted: Counted) -> Iterator[Candidate]:
    """Numbers of a ranking, of a bucket of a trend, of a row of a query; else the alerts that name the entity."""
    records = [record for record in subject.records if not _inner(record) or _inner(record) in counted.within]
    named = [leaf for record in records or subject.records for leaf in _named_by(record, counted.words)]
    if named and counted.noun not in ("alert", "incident"):
        yield from (Candidate(float(str(leaf.value)), leaf) for leaf in named)
        return
    direct = [each for record in records or subject.records for each in _own_numbers(record, counted)]
    if direct:
        yield from direct
        return
    if counted.noun in ("alert", "incident"):
        alerts: dict[str, Record] = {}
        numbers: dict[str, Record] = {}
        for record in subject.records:
            for outer in record.chain():
                if outer.speaks is Speaks.ALERT and (leaf := outer.first("alert_id")) is not None:
                    alerts.setdefault(str(leaf.value), outer)
                for number in outer.numbers():
                    numbers.setdefault(number, outer)
        if counted.noun == "alert" and alerts:
            chosen = [record for record in alerts.values() if _all_fit(record, counted.states)]
            yield Candidate(len(chosen), _some_leaf(list(alerts.values())), "alerts that name it, counted")
        if counted.noun == "incident" and numbers:
            yield Candidate(len(numbers), _some_leaf(list(numbers.values())), "incidents of its alerts, counted")


def _inner(record: Record) -> str:
    """The incident in whose detail a record lies: what it counts there is of that incident only."""
    return next((outer.incident for outer in record.chain() if outer.speaks is Speaks.INCIDENT), "")


def _named_by(record: Record, words: str) -> list[Leaf]:
    """Numbers of a row whose column is named by the words of the answer."""
    wanted = _stems(words)
    return [
        leaves[0]
        for key, leaves in record.leaves.items()
        if record.speaks in (Speaks.ROW, Speaks.ENTITY) and _is_number(leaves[0].value) and wanted & _stems(key)
    ]


def _own_numbers(record: Record, counted: Counted) -> Iterator[Candidate]:
    if counted.noun == "incident" and "incident_numbers" in record.lists:
        yield Candidate(record.lists["incident_numbers"], record.first("incident_numbers"), "incidents, counted")
        return
    numbers = {key: leaves[0] for key, leaves in record.leaves.items() if _is_number(leaves[0].value)}
    severities = [state.word.lower() for kind, state in counted.states if kind is Kind.SEVERITY]
    if severities:
        for word in severities:
            for key in (word, f"{word}_alerts"):
                if key in numbers:
                    yield Candidate(float(str(numbers[key].value)), numbers[key])
        return
    if counted.noun == "alert":
        for key in ("alerts", "count", "peak_count", "alert_count"):
            if key in numbers:
                yield Candidate(float(str(numbers[key].value)), numbers[key])
                return
    if record.speaks not in (Speaks.ROW, Speaks.ENTITY):
        return
    named = _named_by(record, counted.words)
    if not named and len(numbers) > 1:
        named = [
            leaf for key, leaf in numbers.items() if re.search(r"count|total|number|sum|attempt|event|hit|fail", key)
        ]
    if record.speaks is Speaks.ENTITY and "alerts" in numbers and not named:
        named = [numbers["alerts"]]
    for leaf in named or numbers.values():
        yield Candidate(float(str(leaf.value)), leaf)


def _stems(words: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", words).replace("_", " ").replace("-", "").lower()
    return {word.rstrip("s")[:6] for word in _WORD.findall(spaced)} - {"the", "and", "for", "count", "number", "total"}


def _of_lists(counted: Counted, index: EvidenceIndex) -> Iterator[Candidate]:
    """Totals, groups and rows of whole results."""
    for run in index.results:
        noun = _noun_of(run)
        same = noun == counted.noun or not counted.noun
        if same:
            yield from _of_run(run, counted.states)
        yield from _of_summary(run, counted, noun)
        if counted.noun == "row":
            yield from _row_numbers(run)
        if not counted.noun or counted.noun == "row":
            yield from _named_numbers(run, counted.words)
        if counted.noun == "incident" and run.hits:
            yield from _past_incidents(run, counted.states)
    yield from _across(counted, index)


def _row_numbers(run: RunEvidence) -> Iterator[Candidate]:
    """What a result says of its own rows and of those of its tables."""
    keys = ("rows_total", "rows_returned", "table_rows", "rows")
    leaves = (leaf for record in run.records for key in keys for leaf in record.leaves.get(key, ()))
    return (Candidate(float(str(leaf.value)), leaf) for leaf in leaves if _is_number(leaf.value))


def _past_incidents(run: RunEvidence, states: States) -> Iterator[Candidate]:
    """The past incidents that a search found, each once however many hits it has; with the states, where there are."""
    found = {record.incident: record for record in run.records if record.of_knowledge and record.incident}
    chosen = [record for record in found.values() if _all_fit(record, states)]
    if found:
        yield Candidate(len(chosen), _some_leaf(chosen or list(found.values())), "past incidents found, counted")


def _noun_of(run: RunEvidence) -> str:
    if run.tool == "get_top_entities":
        return str(run.run.call.arguments.get("kind", "entity"))
    return _TOOL_NOUNS.get(run.tool, "row")


def _of_run(run: RunEvidence, states: States) -> Iterator[Candidate]:
    """The total of a call, as far as its filters agree with the states, and its rows counted."""
    if not run.run.worked or run.run.result is None or run.tool in _NOT_LISTS:
        return
    coverage = next((record for record in run.records if record.pointer == "/coverage"), None)
    total = coverage.first("rows_total") if coverage is not None else None
    asked = {str(value).lower() for value in run.run.call.arguments.values()}
    if total is not None and _is_number(total.value) and all(state.word.lower() in asked for _, state in states):
        yield Candidate(float(str(total.value)), total)
        if not states:
            yield Candidate(len(run.rows), coverage.first("rows_returned") if coverage else None, "rows of the result")
    if states and total is not None and total.value == len(run.rows) and run.rows:
        chosen = [row for row in run.rows if _all_fit(row, states)]
        yield Candidate(len(chosen), _some_leaf(chosen or run.rows), "rows of the result with that state, counted")


def _of_summary(run: RunEvidence, counted: Counted, noun: str) -> Iterator[Candidate]:
    for record in run.records:
        if not record.pointer.startswith("/summary"):
            continue
        if record.pointer == "/summary/previous":
            yield from _previous(record, counted)
            continue
        considered = record.first("alerts_considered")
        if counted.noun == "alert" and considered is not None and not counted.states and _is_number(considered.value):
            yield Candidate(float(str(considered.value)), considered)
        about = "incident" if "/incidents" in record.pointer else "alert" if "/alerts" in record.pointer else noun
        if counted.noun and about != counted.noun:
            continue
        if record.pointer.endswith(("/by_severity", "/by_status")):
            kind = Kind.SEVERITY if record.pointer.endswith("severity") else Kind.STATUS
            yield from _of_group(record, kind, counted.states)
        elif not counted.states:
            for key in ("total", *(("distinct_entities",) if about == noun else ()), *_ALERT_TOTALS.get(about, ())):
                leaf = record.first(key)
                if leaf is not None and _is_number(leaf.value):
                    yield Candidate(float(str(leaf.value)), leaf)
        elif [state.word for _, state in counted.states] == ["Open"]:
            leaf = record.first("open")
            if leaf is not None and _is_number(leaf.value):
                yield Candidate(float(str(leaf.value)), leaf)


def _previous(record: Record, counted: Counted) -> Iterator[Candidate]:
    leaf = record.first(f"{counted.noun}s")
    if leaf is not None and not counted.states and _is_number(leaf.value):
        yield Candidate(float(str(leaf.value)), leaf)


def _of_group(record: Record, kind: Kind, states: States) -> Iterator[Candidate]:
    """A group of a summary, such as by_severity: the sum of the names in it that the states mean."""
    if not states or any(each is not kind for each, _ in states):
        return
    numbers = [leaf for leaves in record.leaves.values() for leaf in leaves if _is_number(leaf.value)]
    chosen = [leaf for leaf in numbers if any(fits(kind, state, leaf.key) for _, state in states)]
    if numbers:
        yield Candidate(sum(float(str(leaf.value)) for leaf in chosen), _first(chosen or numbers), "sum of the group")


def _named_numbers(run: RunEvidence, words: str) -> Iterator[Candidate]:
    """Numbers of rows and totals whose column is named by the words of the answer."""
    wanted = _stems(words)
    if not wanted:
        return
    sums: dict[str, list[Leaf]] = {}
    for leaf in run.leaves:
        if _is_number(leaf.value) and wanted & _stems(leaf.key):
            yield Candidate(float(str(leaf.value)), leaf)
            sums.setdefault(leaf.key, []).append(leaf)
    for key, leaves in sums.items():
        if len(leaves) > 1:
            yield Candidate(sum(float(str(leaf.value)) for leaf in leaves), leaves[0], f"sum of {key}")


def _across(counted: Counted, index: EvidenceIndex) -> Iterator[Candidate]:
    """Things counted over all rows that were seen, where no result tells their number."""
    if counted.noun == "alert" and not counted.states:
        for run in index.results:
            leaves = [leaf for row in run.rows if (leaf := row.first("alert_count")) is not None]
            if len(leaves) > 1:
                yield Candidate(sum(float(str(leaf.value or 0)) for leaf in leaves), leaves[0], "sum of alert_count")
    if (
        counted.noun == "incident"
        and not counted.states
        and not any(run.tool == "query_incidents" for run in index.results)
    ):
        for run in index.results:
            if run.tool == "query_alerts":
                numbers = {row.incident for row in run.rows} - {""}
                if numbers:
                    yield Candidate(len(numbers), run.rows[0].first("incident_number"), "incidents of the alerts")
    for run in index.results:
        if run.tool in ("run_kql_query", "run_freeform_kql") and counted.noun:
            for key in run.rows[0].leaves if run.rows else ():
                values = {str(leaf.value): leaf for row in run.rows for leaf in row.leaves.get(key, ())}
                if counted.noun[:6] in _stems(key) and not any(_is_number(leaf.value) for leaf in values.values()):
                    yield Candidate(len(values), next(iter(values.values())), f"distinct values of {key}")
    if counted.noun in ("host", "account", "ip", "url", "file", "process", "mailbox", "filehash"):
        for run in index.results:
            names = {
                str(name.value).lower(): name
                for record in run.records
                if record.speaks is Speaks.ENTITY and _kind(record) == counted.noun and (name := record.first("name"))
            }
            if names:
                yield Candidate(len(names), next(iter(names.values())), "distinct names, counted")


def _kind(record: Record) -> str:
    told = record.first("kind")
    if told is not None:
        return str(told.value)
    match = re.search(r"/entities/([^/]+)/\d+$", record.pointer)
    return match[1] if match else ""


def _all_fit(record: Record, states: States) -> bool:
    return all(
        any(fits(kind, state, leaf.value) for key in KEYS[kind] for leaf in record.leaves.get(key, ()))
        for kind, state in states
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _some_leaf(records: Sequence[Record]) -> Leaf | None:
    return next((leaf for record in records for leaves in record.leaves.values() for leaf in leaves), None)


def _first(leaves: Iterable[Leaf]) -> Leaf | None:
    return next(iter(leaves), None)
