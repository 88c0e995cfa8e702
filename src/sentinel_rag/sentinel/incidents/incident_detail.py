"""The tool get_incident_detail: one incident with its alerts, entities, comments, bookmarks, and what happened when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow, format_time
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts import alerts, newest_alerts
from sentinel_rag.sentinel.alerts.alerts import Alert
from sentinel_rag.sentinel.entities.entities import LONGEST_TEXT, EntityTally, merged_properties
from sentinel_rag.sentinel.incidents import incidents
from sentinel_rag.sentinel.incidents.incident_live import (
    COMPACT_BYTES,
    FULL,
    FULL_BYTES,
    WHOLE_ALERT,
    FormedRow,
    RowForm,
    bookmark_row,
    left_out_note,
    live_incident,
    richest,
)
from sentinel_rag.sentinel.incidents.incident_resolution import resolve_incident
from sentinel_rag.sentinel.incidents.incidents import IncidentLinks, is_merged, owner_name, reader_notes
from sentinel_rag.sentinel.logs.kql_literals import MOST_IDS_IN_A_QUERY, list_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, parse_datetime, parse_dynamic
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.workspace_view import WHOLE_DESCRIPTION, WorkspaceView, build_result, one_line, shortened

_WATCHED = (("Status", "Status"), ("Severity", "Severity"), ("Title", "Title"))


def incident_timeline(
    record: Mapping[str, Any],
    versions: Sequence[Mapping[str, Any]],
    alerts: Sequence[Alert],
    comments: Sequence[JsonValue],
) -> list[JsonValue]:
    """`{time, event}` in order of time; alerts of one name and one minute are one event."""
    events: list[tuple[datetime, str]] = []

    def add(moment: Any, event: str) -> None:
        if isinstance(moment, str):
            try:
                moment = parse_datetime(moment)
            except ValueError:
                return
        if isinstance(moment, datetime):
            events.append((moment, event))

    add(record["FirstActivityTime"], "First activity")
    add(record["LastActivityTime"], "Last activity")
    add(record["CreatedTime"], "Incident created")
    starts: Counter[tuple[datetime, str]] = Counter()
    for alert in alerts:
        start = alert.record["StartTime"] or alert.record["TimeGenerated"]
        if isinstance(start, datetime):
            starts[(start.replace(second=0, microsecond=0), alert.name)] += 1
    for (minute, name), count in starts.items():
        add(minute, f"Alert: {name}" + (f" ({count} times)" if count > 1 else ""))
    for before, after in pairwise(versions):
        for change in _changes(before, after):
            add(after["TimeGenerated"], change)
    for comment in comments:
        if isinstance(comment, Mapping):
            add(comment["time"], f"Comment by {comment['author'] or 'an unnamed author'}")
    closed = "Merged into another incident by Microsoft Defender" if is_merged(record) else "Closed"
    add(record["ClosedTime"], closed if record["Status"] == "Closed" else "Closed (and open again later)")
    events.sort(key=lambda event: event[0])
    return [{"time": format_time(moment), "event": event} for moment, event in events]


def incident_durations(record: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Seconds from creation to closing (null while open, whatever closing time is left over, and for a merged one), and
    to the first change (null where the workspace keeps no FirstModifiedTime)."""
    closed = record["ClosedTime"] if record["Status"] == "Closed" and not is_merged(record) else None
    return {
        "open_duration_s": _seconds_between(record["CreatedTime"], closed),
        "first_response_s": _seconds_between(record["CreatedTime"], record.get("FirstModifiedTime")),
    }


def _seconds_between(start: Any, end: Any) -> float | None:
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        return None
    return round((end - start).total_seconds(), 3)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Sentences for what differs between two versions that follow each other."""
    by = f" by {after['ModifiedBy']}" if after["ModifiedBy"] else ""
    changes = [
        f"{label} changed from {_shown(before[column])} to {_shown(after[column])}{by}"
        for column, label in _WATCHED
        if before[column] != after[column]
    ]
    owners = owner_name(before["Owner"]), owner_name(after["Owner"])
    if owners[0] != owners[1]:
        changes.append(f"Owner changed from {owners[0] or 'none'} to {owners[1] or 'none'}{by}")
    return changes


def _shown(value: Any) -> str:
    return shortened(value, 120) or "none"


UNREAD = "(not readable as JSON)"
_LISTS = ("alert_ids_without_row", "tactics", "techniques", "labels")


@dataclass(frozen=True, slots=True)
class IncidentParts:
    """One incident's newest version with its alerts (newest row of each, by start) and what belongs to them."""

    record: Mapping[str, Any]
    alert_ids: tuple[str, ...]
    alerts: tuple[Alert, ...]
    entities: Mapping[str, JsonValue]
    entity_counts: Mapping[str, JsonValue]
    comments: tuple[Mapping[str, JsonValue], ...]
    timeline: tuple[JsonValue, ...]
    bookmarks: tuple[Mapping[str, Any], ...] = ()
    merged_into: int | None = None
    alerts_whole: bool = True
    """False where the service cut the rows of the alerts: then one without a row may have one."""

    @classmethod
    def of(
        cls,
        record: Mapping[str, Any],
        versions: LogsTable,
        found: Mapping[str, Alert],
        bookmarks: tuple[Mapping[str, Any], ...] = (),
        *,
        merged_into: int | None = None,
        alerts_whole: bool = True,
    ) -> IncidentParts:
        """From all versions and all alerts that were read; those of other incidents are left aside."""
        ids = incidents.alert_ids_of(record)
        with_row = tuple(alert for alert_id, alert in found.items() if alert_id in ids)
        own = [version for version in versions.records() if version["IncidentNumber"] == record["IncidentNumber"]]
        comments = tuple(_comments(record["Comments"]))
        entities, counts = incident_entities(with_row)
        timeline = tuple(incident_timeline(record, own, with_row, comments))
        return cls(record, ids, with_row, entities, counts, comments, timeline, bookmarks, merged_into, alerts_whole)

    def told(self, form: RowForm) -> FormedRow:
        """The row in `form`."""
        left_out: Counter[str] = Counter()
        shown = _weightiest(self.alerts, form.alerts)
        left_out["alerts"] = len(self.alerts) - len(shown)
        alert_rows = [self._alert_row(alert, form, left_out) for alert in shown]
        entities = self._entities(form, left_out)
        comments = self._comments(form, left_out)
        left_out["timeline"] = max(0, len(self.timeline) - form.events)
        row = incidents.incident_row(self.record, description=min(form.description, WHOLE_DESCRIPTION))
        row["merged_into"] = self.merged_into
        row["defender_url"] = incidents.defender_url(self.record)
        row |= incident_durations(self.record)
        left_out["cut_texts"] += _cut((row["description"], row["classification_comment"]))
        row["classification_reason"] = self.record.get("ClassificationReason") or None
        bookmarks: list[JsonValue] = []
        for each in self.bookmarks[: form.bookmarks]:
            shown_bookmark = bookmark_row(each, form.bookmark_text)
            left_out["cut_texts"] += _cut(shown_bookmark.values())
            bookmarks.append(shown_bookmark)
        row |= {
            "alerts": alert_rows,
            "alert_ids_without_row": self._without_row(),
            "entities": entities,
            "entity_counts": dict(self.entity_counts),
            "comments": comments,
            "tactics": self._distinct("tactics", lambda alert: alert.tactics),
            "techniques": self._distinct("techniques", lambda alert: alerts.techniques_of(alert.record)),
            "custom_details": self._custom_details(form, left_out),
            "labels": [label["labelName"] for label in _mappings(self.record["Labels"]) if label.get("labelName")],
            "timeline": list(_spread(self.timeline, form.events)),
            "bookmarks": bookmarks,
        }
        left_out["bookmarks"] = max(0, len(self.bookmarks) - form.bookmarks)
        for name in _LISTS:
            values = row[name]
            assert isinstance(values, list)
            left_out["values"] += max(0, len(values) - form.values)
            row[name] = values[: form.values]
        return FormedRow(row, {name: count for name, count in left_out.items() if count}, form is FULL)

    def notes(self) -> list[CodedNote]:
        """The sentences that a reader needs about it."""
        number = self.record["IncidentNumber"]
        links = IncidentLinks(dict.fromkeys(self.alert_ids, (number,)), {number: self.record["Status"]})
        notes = reader_notes(self.alerts, links)
        count = len(self._without_row())
        if count:
            where = "alert_ids_without_row"
            notes.append(
                note("alerts_without_row", subject=f"Incident {number}", count=count, missing=None, listed=where)
            )
        if not self.alerts_whole:
            notes.append(note("alerts_partly_told", incident=number, count=len(self.alert_ids)))
        if not self.alert_ids and not incidents.is_merged(self.record):
            notes.append(note("no_alert_ids", incident=number))
        return notes

    def _without_row(self) -> list[JsonValue]:
        if not self.alerts_whole:
            return []
        known = {alert.alert_id for alert in self.alerts}
        return [alert_id for alert_id in self.alert_ids if alert_id not in known]

    def _alert_row(self, alert: Alert, form: RowForm, left_out: Counter[str]) -> JsonValue:
        budget = form.alert_budget(len(self.alerts))
        row = alert.row(self.record["IncidentNumber"], budget)
        entities, count = row.get("entities", []), row["entity_count"]
        assert isinstance(entities, list)
        assert isinstance(count, int)
        left_out["alert_entities"] += count - len(entities)
        left_out["cut_texts"] += _cut((row.get("description"),)) + sum(_cut(each.values()) for each in entities)
        steps = row.get("remediation_steps")
        if isinstance(steps, list):
            left_out["remediation_steps"] += len(alerts.all_steps(alert.record["RemediationSteps"])) - len(steps)
            left_out["cut_texts"] += _cut(steps)
        if budget != WHOLE_ALERT:
            left_out["alert_fields"] += _fields_lost(row, alert.row(self.record["IncidentNumber"], WHOLE_ALERT))
        return row

    def _entities(self, form: RowForm, left_out: Counter[str]) -> dict[str, JsonValue]:
        told: dict[str, JsonValue] = {}
        for kind, listed in self.entities.items():
            assert isinstance(listed, list)
            kept: list[JsonValue] = []
            for entity in listed[: form.entities]:
                assert isinstance(entity, dict)
                if not form.properties:
                    left_out["entity_properties"] += len(entity) - 2
                    entity = {
                        "name": one_line(str(entity["name"]), alerts.LONGEST_SPARSE_NAME),
                        "alerts": entity["alerts"],
                    }
                left_out["cut_texts"] += _cut(entity.values())
                kept.append(entity)
            left_out["entities"] += len(listed) - len(kept)
            told[kind] = kept
        return told

    def _comments(self, form: RowForm, left_out: Counter[str]) -> list[JsonValue]:
        """The newest comments that fit, in their order."""
        left_out["comments"] = max(0, len(self.comments) - form.comments)
        kept: list[JsonValue] = []
        for comment in self.comments[left_out["comments"] :]:
            message = comment["message"]
            if isinstance(message, str) and len(message) > form.comment:
                left_out["cut_texts"] += 1
                message = message[: form.comment - 1] + "…"
            kept.append({**comment, "message": message})
        return kept

    def _custom_details(self, form: RowForm, left_out: Counter[str]) -> dict[str, JsonValue]:
        """`{name -> [value]}` over all alerts, each value once; text that does not parse as JSON under UNREAD."""
        found: dict[str, dict[str, None]] = {}
        for alert in self.alerts:
            details = alerts.custom_details(alerts.extended_properties(alert.record["ExtendedProperties"]))
            pairs = details.items() if isinstance(details, dict) else () if details is None else ((UNREAD, details),)
            for name, value in pairs:
                for each in value if isinstance(value, list) else [value]:
                    found.setdefault(name, {})[each if isinstance(each, str) else json.dumps(each)] = None
        told: dict[str, JsonValue] = {}
        for name, values in found.items():
            kept = [one_line(value, LONGEST_TEXT) for value in list(values)[: form.entities]]
            left_out["cut_texts"] += _cut(kept)
            left_out["values"] += len(values) - len(kept)
            told[name] = list[JsonValue](kept)
        return told

    def _distinct(self, name: str, of_alert: Any) -> list[JsonValue]:
        additional = parse_dynamic(self.record["AdditionalData"])
        own = _texts(additional.get(name)) if isinstance(additional, Mapping) else []
        lists: Iterable[Sequence[str]] = (own, *(of_alert(alert) for alert in self.alerts))
        return list(dict.fromkeys(item for items in lists for item in items))


def _fields_lost(row: Mapping[str, JsonValue], whole: Mapping[str, JsonValue]) -> int:
    """How many fields of an alert hold something and are not in its row; a description that only repeats the name is
    no loss, and entities are counted for themselves."""
    lost = {name for name, value in whole.items() if value not in (None, [], "") and not row.get(name)}
    if whole["description"] == whole["name"]:
        lost.discard("description")
    return len(lost - {"entities", "incident_number"})


def _cut(values: Iterable[JsonValue]) -> int:
    """How many texts among the values were cut."""
    return sum(isinstance(value, str) and value.endswith("…") for value in values)


def _weightiest(found: Sequence[Alert], most: int) -> Sequence[Alert]:
    """At most `most` alerts in their order: one of each name before a second, the severe before the others."""
    if len(found) <= most:
        return found
    severities = {severity: rank for rank, severity in enumerate(reversed(SEVERITIES))}
    seen: Counter[str] = Counter()
    weights: list[tuple[int, int, int]] = []
    for place, alert in enumerate(found):
        weights.append((seen[alert.name], severities.get(alert.record["AlertSeverity"], len(severities)), place))
        seen[alert.name] += 1
    kept = sorted(place for _, _, place in sorted(weights)[:most])
    return [found[place] for place in kept]


def _spread(events: Sequence[JsonValue], most: int) -> Sequence[JsonValue]:
    """At most `most` events: the beginning and the end of what happened, since the middle says least."""
    if len(events) <= most:
        return events
    first = (most + 1) // 2
    return (*events[:first], *events[len(events) - (most - first) :])


def _comments(cell: Any) -> list[Mapping[str, JsonValue]]:
    """Comments with their author; `author` is null where the service does not name one."""
    comments: list[Mapping[str, JsonValue]] = []
    for comment in _mappings(cell):
        author = comment.get("author")
        author = author if isinstance(author, Mapping) else {}
        comments.append(
            {
                "time": comment.get("createdTimeUtc"),
                "author": author.get("name") or author.get("userPrincipalName") or author.get("email"),
                "message": comment.get("message"),
            }
        )
    return comments


def _mappings(cell: Any) -> list[Mapping[str, Any]]:
    value = parse_dynamic(cell)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value if item] if isinstance(value, list) else []


# The entities of all alerts of an incident, each once under its best name, and how many there are of each kind.


def incident_entities(alerts: Iterable[Alert]) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """`{kind -> [{name, alerts, ...}]}`, most alerts first, and `{kind -> count}` of all there are.

    `alerts` of an item counts distinct alerts; its other keys are those of `alert_entities.merged_properties`.
    """
    tally = EntityTally()
    for alert in alerts:
        tally.add(alert.entities.entities, alert.alert_id)
    ranked = {kind: tally.ranked(kind) for kind in tally.kinds()}
    listed: dict[str, JsonValue] = {
        kind: [
            {
                "name": one_line(entity.name, LONGEST_TEXT),
                "alerts": len(entity.alerts),
                **merged_properties(entity.sightings),
            }
            for entity in entities
        ]
        for kind, entities in ranked.items()
    }
    return listed, {kind: len(entities) for kind, entities in ranked.items()}


_DETAIL_COLUMNS = (
    *incidents.INCIDENT_COLUMNS,
    Column("merged_into", "long"),
    Column("defender_url", "string"),
    Column("open_duration_s", "real"),
    Column("first_response_s", "real"),
    Column("classification_reason", "string"),
    *(
        Column(name, "dynamic")
        for name in (
            "alerts",
            "alert_ids_without_row",
            "entities",
            "entity_counts",
            "comments",
            "tactics",
            "techniques",
            "custom_details",
            "labels",
            "timeline",
            "bookmarks",
        )
    ),
)


async def get_incident_detail(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """A row for each incident that the reference may mean; none and several are results, not errors."""
    resolution, statistics = await together(
        lambda: resolve_incident(view, arguments["incident"]),
        lambda: view.statistics.read(incidents.INCIDENT_TABLE, incidents.INCIDENT_TIME),
    )
    resolution = resolution.of_sentinel()
    answers = list(resolution.answers)
    rows: list[dict[str, JsonValue]] = []
    notes = [*resolution.notes, *resolution.merge_notes()]
    left_out: Counter[str] = Counter()
    whole = True
    if resolution.records:
        queries = [_versions_of(resolution.records), *_alerts_of(resolution.records)]
        (versions, *alert_rows), live = await together(
            lambda: view.logs.query_all([(kql, None) for kql in queries]),
            lambda: together(*(partial(live_incident, view, record) for record in resolution.records)),
        )
        answers += [versions, *alert_rows]
        read = sorted(
            (Alert.from_record(record) for answer in alert_rows for record in answer.records()), key=_by_start
        )
        found = {alert.alert_id: alert for alert in read}
        alerts_whole = not any(answer.partial for answer in alert_rows)
        room = COMPACT_BYTES if arguments["detail"] == "compact" else FULL_BYTES
        for each in live:
            record = each.record
            merge = resolution.merges.get(record["IncidentNumber"])
            into = merge.into if merge is not None else None
            parts = IncidentParts.of(
                record, versions, found, each.bookmarks, merged_into=into, alerts_whole=alerts_whole
            )
            notes += each.notes
            told = richest(parts.told, share=room // len(resolution.records))
            rows.append(told.row)
            left_out.update(told.left_out)
            notes += parts.notes()
            if not told.full:
                whole = False
                notes.append(left_out_note(record["IncidentNumber"], told.left_out, detail=arguments["detail"]))
    notes += incidents.reopened_note(rows)
    return build_result(
        _DETAIL_COLUMNS,
        rows,
        tables=(incidents.INCIDENT_TABLE, newest_alerts.ALERT_TABLE),
        window=TimeWindow(),
        time_column=incidents.INCIDENT_TIME,
        rows_total=len(rows) if resolution.whole else None,
        answers=answers,
        statistics=statistics,
        summary={
            "matched_by": resolution.matched_by or None,
            "reference": arguments["incident"],
            "alert_count": rows[0]["alert_count"] if len(rows) == 1 else None,
            "ambiguous": len(rows) > 1,
            "detail": "full" if whole else "compact",
            "left_out": dict(left_out),
        },
        notes=notes,
        shown_query=_newest_of(resolution.records),
    )


def _newest_of(records: Iterable[Mapping[str, Any]]) -> str:
    """KQL for these incidents alone: a number is looked for as Sentinel's and as Defender's, and one may win."""
    numbers = [record["IncidentNumber"] for record in records]
    if not numbers or None in numbers:
        return ""
    return incidents.newest_versions(TimeWindow(), (f"IncidentNumber in {list_literal(numbers)}",))


def _versions_of(records: Iterable[Mapping[str, Any]]) -> str:
    numbers = list_literal(record["IncidentNumber"] for record in records if record["IncidentNumber"] is not None)
    return (
        f"{incidents.INCIDENT_TABLE}\n| where IncidentNumber in {numbers}\n"
        "| project IncidentNumber, TimeGenerated, Status, Severity, Title, Owner, ModifiedBy\n"
        "| order by IncidentNumber asc, TimeGenerated asc"
    )


def _alerts_of(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """One query for each MOST_IDS_IN_A_QUERY alerts that the incidents name; the text of a query is bounded."""
    ids = list(dict.fromkeys(alert_id for record in records for alert_id in incidents.alert_ids_of(record)))
    return [
        newest_alerts.newest_alerts((f"SystemAlertId in~ {list_literal(ids[start : start + MOST_IDS_IN_A_QUERY])}",))
        + f"\n| project {newest_alerts.PROJECTED}"
        for start in range(0, max(len(ids), 1), MOST_IDS_IN_A_QUERY)
    ]


def _by_start(alert: Alert) -> tuple[datetime, str]:
    return alert.record["StartTime"] or alert.record["TimeGenerated"], alert.alert_id
