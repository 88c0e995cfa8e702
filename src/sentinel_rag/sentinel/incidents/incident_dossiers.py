"""What belongs to incidents beside their own properties (alerts, entities, comments, tactics), for many at once.

The log has all of it without a request limit, but follows a change by minutes; REST has it at once, a hundred incidents
in five minutes. Whoever reads many incidents asks the log first and REST for what the log has not caught up with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel_rag.sentinel.alerts import newest_alerts
from sentinel_rag.sentinel.alerts.alerts import Alert, clean_name, techniques_of
from sentinel_rag.sentinel.entities.entities import Entity, EntityTally, entity_name, kind_of
from sentinel_rag.sentinel.incidents import incidents
from sentinel_rag.sentinel.incidents.incident_resolution import Merge, merges_of
from sentinel_rag.sentinel.logs.kql_literals import MOST_IDS_IN_A_QUERY, list_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsWorkspace, in_utc, parse_dynamic
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.rest import Incident, IncidentComment, SentinelRest

_REST_NAMES = {
    "upnSuffix": "UPNSuffix",
    "ntDomain": "NTDomain",
    "azureID": "AzureID",
    "omsAgentID": "OMSAgentID",
    "puid": "PUID",
}
"""Properties of an entity that SecurityAlert does not write as REST does with a capital first letter."""
_INCIDENT_COLUMNS = (
    "IncidentNumber, IncidentName, TimeGenerated, LastModifiedTime, ClosedTime, Status, Labels, AlertIds, "
    "AdditionalData, Comments"
)


@dataclass(frozen=True, slots=True)
class IncidentDossier:
    """`entities` are (kind, name) pairs, those of most alerts first; `alerts` are names, each once; `comments` are
    "day author: text", oldest first. `merged_into` is told of one that Defender merged, where the log tells it."""

    entities: tuple[tuple[str, str], ...] = ()
    alerts: tuple[str, ...] = ()
    tactics: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    merged_into: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedDossier:
    """A dossier as of a row of the log. `modified` is the incident's last change that the row knows of;
    `missing_alerts` are alerts that it names and that have no row (yet)."""

    dossier: IncidentDossier
    modified: datetime | None
    missing_alerts: int


async def dossiers_from_log(logs: LogsWorkspace, numbers: Sequence[int]) -> dict[str, LoggedDossier]:
    """By the incident's GUID in lower case; incidents that the log does not have are left out, and one of which it
    cannot tell all. Raises QueryFailedError."""
    versions = await logs.query(_incidents_query(numbers))
    records = list(versions.records())
    ids = list(dict.fromkeys(alert_id for record in records for alert_id in incidents.alert_ids_of(record)))
    parts = [ids[start : start + MOST_IDS_IN_A_QUERY] for start in range(0, len(ids), MOST_IDS_IN_A_QUERY)]
    answers = await logs.query_all([(_alerts_query(part), None) for part in parts])
    if versions.partial_reason or any(answer.partial_reason for answer in answers):
        if len(numbers) == 1:
            return {}
        middle = len(numbers) // 2
        return await dossiers_from_log(logs, numbers[:middle]) | await dossiers_from_log(logs, numbers[middle:])
    alerts = [Alert.from_record(record) for answer in answers for record in answer.records()]
    alerts.sort(key=lambda alert: (alert.record["StartTime"] or alert.record["TimeGenerated"], alert.alert_id))
    by_id = {alert.alert_id: alert for alert in alerts}
    merges, _ = await merges_of(logs, records)
    found: dict[str, LoggedDossier] = {}
    for record in records:
        own = incidents.alert_ids_of(record)
        named = [by_id[alert_id] for alert_id in own if alert_id in by_id]
        moment = record["LastModifiedTime"] or record["TimeGenerated"]
        found[str(record["IncidentName"] or "").lower()] = LoggedDossier(
            _of_rows(record, named, merges.get(record["IncidentNumber"])),
            None if moment is None else in_utc(moment),
            len(own) - len(named),
        )
    return found


async def dossier_from_rest(rest: SentinelRest, incident: Incident) -> IncidentDossier:
    """Two requests, three with comments. Raises QueryFailedError, THROTTLED at the limit."""
    additional = incident.properties.get("additionalData")
    additional = additional if isinstance(additional, Mapping) else {}
    counted = additional.get("commentsCount")

    async def no_comments() -> tuple[IncidentComment, ...]:
        return ()

    alerts, entities, comments = await together(
        lambda: rest.alerts(incident),
        lambda: rest.entities(incident),
        (lambda: rest.comments(incident.name)) if counted != 0 else no_comments,
    )
    properties = [each.get("properties") for each in alerts]
    told = [each for each in properties if isinstance(each, Mapping)]
    names = [clean_name(each.get("alertDisplayName") or each.get("friendlyName")) for each in told]
    tactics = [str(item) for each in told for item in _list(each.get("tactics")) if item]
    oldest_first = sorted(comments, key=lambda comment: comment.created or "")
    return IncidentDossier(
        entities=_distinct(map(_rest_entity, entities)),
        alerts=_distinct(filter(None, names)),
        tactics=_distinct(tactics),
        comments=tuple(_comment(each.created, each.author, each.message) for each in oldest_first if each.message),
    )


def _incidents_query(numbers: Sequence[int]) -> str:
    """The newest version of each. Filtered first, which a filter on the key may be: a large log is read once a part."""
    return (
        f"{incidents.INCIDENT_TABLE}\n| where IncidentNumber in {list_literal(numbers)}\n"
        f"| summarize arg_max(TimeGenerated, *) by IncidentNumber\n| project {_INCIDENT_COLUMNS}"
    )


def _alerts_query(ids: Sequence[str]) -> str:
    return (
        f"{newest_alerts.ALERT_TABLE}\n| where SystemAlertId in~ {list_literal(ids)}\n"
        f"| summarize arg_max(TimeGenerated, *), {newest_alerts.FIRST_ROW} = min(TimeGenerated) by SystemAlertId\n"
        f"| project {newest_alerts.PROJECTED}"
    )


def _of_rows(record: Mapping[str, Any], alerts: Sequence[Alert], merge: Merge | None) -> IncidentDossier:
    tally = EntityTally()
    for alert in alerts:
        tally.add(alert.entities.entities, alert.alert_id)
    additional = parse_dynamic(record["AdditionalData"])
    additional = additional if isinstance(additional, Mapping) else {}
    entries = [each for each in _list(parse_dynamic(record["Comments"])) if isinstance(each, Mapping)]
    entries.sort(key=lambda entry: str(entry.get("createdTimeUtc") or ""))
    return IncidentDossier(
        entities=tuple((kind, entity.name) for kind in tally.kinds() for entity in tally.ranked(kind)),
        alerts=_distinct(alert.name for alert in alerts),
        tactics=_distinct(tactic for alert in alerts for tactic in alert.tactics),
        techniques=_distinct(
            (
                *(str(item) for item in _list(additional.get("techniques")) if item),
                *(technique for alert in alerts for technique in techniques_of(alert.record)),
            )
        ),
        comments=tuple(
            _comment(entry.get("createdTimeUtc"), _author(entry.get("author")), str(entry["message"]))
            for entry in entries
            if entry.get("message")
        ),
        merged_into=None if merge is None else merge.into,
    )


def _rest_entity(resource: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of an entity of REST, which writes the properties of SecurityAlert with a small first letter."""
    given = resource.get("properties")
    given = given if isinstance(given, Mapping) else {}
    named = {_REST_NAMES.get(key, f"{key[:1].upper()}{key[1:]}"): value for key, value in given.items()}
    kind = kind_of({"Type": resource.get("kind")})
    return kind, entity_name(Entity(kind, named))


def _author(author: Any) -> str | None:
    if not isinstance(author, Mapping):
        return None
    return author.get("name") or author.get("userPrincipalName") or author.get("email")


def _comment(created: Any, author: Any, message: str) -> str:
    head = " ".join(str(part) for part in (str(created or "")[:10], author) if part)
    return f"{head}: {message}" if head else message


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
