"""The incidents of one workspace for ingestion: the list over REST, details from the log, and from REST where it lags.

`SentinelIncidents` speaks to the service; `FromThread` lets the ingestion, which blocks in a thread of its own, ask it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio.from_thread

from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError
from sentinel_rag.knowledge.documents import IncidentRecord, incident_from_rest
from sentinel_rag.knowledge.incident_ingestion import IncidentListing, ListedIncident, ReadIncident, StoredIncident
from sentinel_rag.sentinel.incidents.incident_dossiers import (
    IncidentDossier,
    LoggedDossier,
    dossier_from_rest,
    dossiers_from_log,
)
from sentinel_rag.sentinel.logs.log_analytics import LogsWorkspace
from sentinel_rag.sentinel.rest import Incident, SentinelRest

_FOR_NOW = frozenset({QueryErrorCode.THROTTLED, QueryErrorCode.TIMEOUT, QueryErrorCode.UNAVAILABLE})
"""Failures of the log that another time may not have."""
_LOG_FOLLOWS_WITHIN = timedelta(hours=1)
"""What the log lacks so long after an incident's last change is taken for lost, and not waited for any more."""


class SentinelIncidents:
    """The workspace behind `rest`, whose log is `logs`."""

    def __init__(self, rest: SentinelRest, logs: LogsWorkspace) -> None:
        self.workspace = rest.name
        self.workspace_id = logs.workspace_id.lower()
        self._rest = rest
        self._logs = logs
        self._listed: dict[str, Incident] = {}
        self._throttled = False

    async def listing(self, since: datetime) -> IncidentListing:
        """Over all pages; an incident without a number has no place in a knowledge base and is left out."""
        moment = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = await self._rest.read_incidents(
            odata_filter=f"properties/createdTimeUtc ge {moment}", order_by="properties/createdTimeUtc desc"
        )
        self._listed = {incident.name: incident for incident in found}
        self._throttled = False
        listed = [self._as_listed(incident) for incident in self._listed.values()]
        return IncidentListing(tuple(each for each in listed if each is not None), found.complete)

    async def details(self, incidents: Sequence[ListedIncident]) -> list[ReadIncident]:
        """From the log for all at once; over REST for those that have changed since the log was written."""
        logged: Mapping[str, LoggedDossier] = {}
        awaited = closed = False
        try:
            logged = await dossiers_from_log(self._logs, [each.record.number for each in incidents])
        except QueryFailedError as failure:
            awaited = failure.error.code in _FOR_NOW
            # A log that is closed to this identity stays so: then REST is all there is, and what it tells is whole.
            closed = not awaited
        read: list[ReadIncident] = []
        for each in incidents:
            found = logged.get(each.version.name.lower())
            if found is not None and _is_current(found, each):
                read.append(ReadIncident(_with_dossier(each, found.dossier), True))
            else:
                whole = closed or (not awaited and _is_settled(each))
                read.append(await self._over_rest(each, found, whole=whole))
        return read

    async def _over_rest(self, incident: ListedIncident, found: LoggedDossier | None, *, whole: bool) -> ReadIncident:
        """At a request limit what the log has is taken, and the incident is read again by the next run."""
        older = IncidentDossier() if found is None else found.dossier
        if not self._throttled:
            try:
                dossier = await dossier_from_rest(self._rest, self._listed[incident.version.name])
            except QueryFailedError as failure:
                if failure.error.code is not QueryErrorCode.THROTTLED:
                    raise
                self._throttled = True
            else:
                # REST tells no techniques of alerts, and not what an incident was merged into.
                dossier = replace(dossier, techniques=older.techniques, merged_into=older.merged_into)
                return ReadIncident(_with_dossier(incident, dossier), whole)
        return ReadIncident(_with_dossier(incident, older), False)

    async def gone(self, names: Sequence[str]) -> frozenset[str]:
        """Asked for one by one: only the service's own 404 counts."""
        lost: set[str] = set()
        for name in names:
            try:
                await self._rest.get_incident(name)
            except QueryFailedError as failure:
                if failure.error.code is not QueryErrorCode.INVALID_ARGUMENT:
                    raise
                lost.add(name)
        return frozenset(lost)

    def _as_listed(self, incident: Incident) -> ListedIncident | None:
        record = incident_from_rest({"etag": incident.etag, "properties": incident.properties})
        if record is None:
            return None
        additional = incident.properties.get("additionalData")
        additional = additional if isinstance(additional, Mapping) else {}
        version = StoredIncident(
            workspace=self.workspace,
            name=incident.name,
            etag=incident.etag,
            modified=incident.text("lastModifiedTimeUtc") or "",
            created=incident.text("createdTimeUtc") or "",
            comments=_count(additional, "commentsCount"),
            alerts=_count(additional, "alertsCount"),
        )
        return ListedIncident(version, record)


class FromThread:
    """The same for a thread that `anyio.to_thread` started: each call waits in the event loop it came from."""

    def __init__(self, incidents: SentinelIncidents) -> None:
        self._incidents = incidents

    @property
    def workspace(self) -> str:
        return self._incidents.workspace

    @property
    def workspace_id(self) -> str:
        return self._incidents.workspace_id

    def listing(self, since: datetime) -> IncidentListing:
        return anyio.from_thread.run(self._incidents.listing, since)

    def details(self, incidents: Sequence[ListedIncident]) -> Sequence[ReadIncident]:
        return anyio.from_thread.run(self._incidents.details, incidents)

    def gone(self, names: Sequence[str]) -> frozenset[str]:
        return anyio.from_thread.run(self._incidents.gone, names)


def _is_current(found: LoggedDossier, incident: ListedIncident) -> bool:
    """Whether the log's row is as new as the incident, and each alert that it names has a row or never will."""
    modified = _moment(incident.version.modified)
    if modified is not None and (found.modified is None or found.modified < modified):
        return False
    return not found.missing_alerts or _is_settled(incident)


def _is_settled(incident: ListedIncident) -> bool:
    """Whether the log had the time to follow the incident's last change."""
    modified = _moment(incident.version.modified)
    return modified is None or datetime.now(UTC) - modified > _LOG_FOLLOWS_WITHIN


def _with_dossier(incident: ListedIncident, dossier: IncidentDossier) -> IncidentRecord:
    """The record with what belongs to it; what the list told itself comes first."""
    record = incident.record
    return replace(
        record,
        entities=dossier.entities,
        alerts=dossier.alerts or record.alerts,
        tactics=tuple(dict.fromkeys((*record.tactics, *dossier.tactics))),
        techniques=tuple(dict.fromkeys((*record.techniques, *dossier.techniques))),
        comments=dossier.comments,
        merged_into=dossier.merged_into,
    )


def _count(additional: Mapping[str, Any], name: str) -> int:
    value = additional.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
