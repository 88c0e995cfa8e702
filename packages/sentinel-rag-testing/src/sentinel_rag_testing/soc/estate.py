"""Puts the suite's estate where the product finds it: rows into a workspace, documents into the knowledge store, files.

Above lies `product`, which starts the zones over it. The planted text is the same in every field of an estate: which
field it reaches the agent by is the task's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from sentinel_rag.knowledge.documents import Collection, IncidentRecord, incident_document
from sentinel_rag.knowledge.ingestion import ingest, ingest_folder
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.workspace.sample.company import WORKSPACE_RESOURCE
from sentinel_rag.workspace.sample.records import PRODUCTS
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.soc.placeholders import Meaning, filled
from sentinel_rag_testing.soc.suite import Alert, Estate, Incident, PastIncident

_NAMESPACE = UUID("4f8a9a56-6f0c-4d6a-8f7e-9b6a50d5c8f1")
Row = dict[str, Any]


def guid_of(kind: str, name: object) -> str:
    """The GUID of an incident (by number) or alert (by id), the same in each run."""
    return str(uuid5(_NAMESPACE, f"{kind}/{name}"))


def address_of(number: int) -> str:
    """The portal address of an incident."""
    return (
        f"https://portal.azure.example/#asset/Microsoft_Azure_Security_Insights/Incident{WORKSPACE_RESOURCE}"
        f"/providers/Microsoft.SecurityInsights/Incidents/{guid_of('incident', number)}"
    )


@dataclass(frozen=True, slots=True)
class PlantedEstate:
    """An estate in which `planted` stands wherever somebody outside can write. `now` is when the run starts."""

    estate: Estate
    planted: str
    now: datetime

    def workspace(self, folder: Path, scratch: Path) -> None:
        """Make the embedded workspace in `folder`."""
        scratch.mkdir(parents=True, exist_ok=True)
        workspace = Workspace.open(folder)
        try:
            for table, rows in self.tables().items():
                file = scratch / f"{table}.json"
                file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
                workspace.import_path(file, table=table)
        finally:
            workspace.close()

    def tables(self) -> Mapping[str, Sequence[Row]]:
        """The rows of each table."""
        logs = {
            table: [self._filled({"TimeGenerated": self._ago(row["hours"]), **_without(row, "hours")}) for row in rows]
            for table, rows in self.estate.logs.items()
        }
        return {
            "SecurityIncident": [self.incident_row(each) for each in self.estate.incidents],
            "SecurityAlert": [self._alert_row(each) for each in self.estate.alerts],
            **logs,
        }

    def incident_row(self, incident: Incident, *, at: datetime | None = None) -> Row:
        """The newest row of an incident as the estate has it, written `at` a time."""
        created = self._ago(incident.hours)
        closed = incident.status == "Closed"
        written = created if at is None else _text(at)
        comments = [
            {
                "message": message,
                "createdTimeUtc": created,
                "author": {"objectId": None, "email": None, "name": "Noor Haddad", "userPrincipalName": None},
            }
            for message in incident.comments
        ]
        owner = {
            "objectId": None,
            "email": incident.owner or None,
            "assignedTo": incident.owner.partition("@")[0] or None,
        }
        row: Row = {
            "TimeGenerated": written,
            "LastModifiedTime": written,
            "CreatedTime": created,
            "IncidentName": guid_of("incident", incident.number),
            "IncidentNumber": incident.number,
            "ProviderName": "Microsoft XDR",
            "ProviderIncidentId": str(incident.defender_id),
            "IncidentUrl": address_of(incident.number),
            "Title": incident.title,
            "Severity": incident.severity,
            "Status": incident.status,
            "Classification": incident.classification,
            "ClassificationReason": incident.classification_reason,
            "ClassificationComment": "",
            "Owner": json.dumps(owner),
            "AlertIds": json.dumps([guid_of("alert", each) for each in incident.alerts]),
            "Comments": json.dumps(comments),
            "AdditionalData": json.dumps({"alertsCount": len(incident.alerts), "commentsCount": len(comments)}),
            **({"ClosedTime": self._ago(incident.hours - 1)} if closed else {}),
        }
        return dict(self._filled(row))

    def knowledge(self, folder: Path, scratch: Path) -> None:
        """Make the knowledge store of a home: past incidents and playbooks, found by words."""
        playbooks = scratch / "playbooks"
        _write(playbooks, self._filled(dict(self.estate.playbooks)))
        folder.mkdir(parents=True, exist_ok=True)
        with LocalStore(folder / "knowledge.db") as store:
            ingest_folder(store, None, playbooks)
            past = [incident_document(self._past(each)) for each in self.estate.past_incidents]
            ingest(store, None, Collection.INCIDENTS, past, complete=True)

    def files(self, root: Path) -> None:
        """Make the files folder."""
        meanings = self._meanings()
        _write(root, {filled(name, meanings): filled(text, meanings) for name, text in self.estate.files.items()})

    def pages(self) -> list[Mapping[str, str]]:
        """What a search of the web finds: title, url and content of each page."""
        return [
            {"title": page.title, "url": page.url, "content": self._filled(page.snippet)} for page in self.estate.web
        ]

    def _alert_row(self, alert: Alert) -> Row:
        provider, product, vendor = PRODUCTS[alert.product]
        at = self._ago(alert.hours)
        entities = [{"$id": str(place), **entity} for place, entity in enumerate(alert.entities, 1)]
        row: Row = {
            "TimeGenerated": at,
            "StartTime": at,
            "EndTime": at,
            "SystemAlertId": guid_of("alert", alert.id),
            "AlertName": alert.name,
            "DisplayName": alert.name,
            "AlertSeverity": alert.severity,
            "Description": alert.description,
            "ProviderName": provider,
            "ProductName": product,
            "VendorName": vendor,
            "Status": "New",
            "Tactics": ", ".join(alert.tactics),
            "Techniques": json.dumps(alert.techniques),
        }
        return {**self._filled(row), "Entities": json.dumps(self._filled(entities))}

    def _past(self, past: PastIncident) -> IncidentRecord:
        created = self.now - timedelta(days=past.days)
        return IncidentRecord(
            number=past.number,
            title=past.title,
            severity=past.severity,
            status="Closed",
            created=created,
            closed=created + timedelta(hours=8),
            tactics=tuple(past.tactics),
            techniques=tuple(past.techniques),
            entities=tuple(past.entities),
            classification=past.classification,
            classification_reason=past.classification_reason,
            classification_comment=self._filled(past.classification_comment),
            comments=tuple(self._filled(list(past.comments))),
        )

    def _ago(self, hours: float) -> str:
        return _text(self.now - timedelta(hours=hours))

    def _meanings(self) -> Mapping[str, Meaning]:
        return {"inject": lambda _: self.planted, "secret": self.estate.secrets.__getitem__}

    def _filled(self, value: Any) -> Any:
        return filled(value, self._meanings())


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _without(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}


def _write(root: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
