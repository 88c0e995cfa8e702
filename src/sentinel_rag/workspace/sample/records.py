"""Rows of SecurityIncident and SecurityAlert from a case, version by version, with their entities."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.workspace.sample.company import (
    DOMAIN,
    NETBIOS,
    SUBSCRIPTION_ID,
    TENANT_ID,
    WORKSPACE_RESOURCE,
    Employee,
    device_id,
    host_address,
    host_name,
)


# A host that a process runs on stands in full at its first mention and as a reference later, at any depth.
class EntityList:
    """Builds the array of one alert."""

    def __init__(self) -> None:
        self._entities: list[dict[str, Any]] = []
        self._next = 2
        self._hosts: dict[str, int] = {}
        self._host = self._image = 0
        """The machine and the file that were named last: where a file stands, and what a process runs."""

    def _add(self, entity: dict[str, Any]) -> int:
        number = self._next
        self._next += 1
        self._entities.append({"$id": str(number), **entity})
        return number

    def host(self, host: str) -> None:
        known = self._hosts.get(host)
        if known is not None:
            self._entities.append({"$ref": str(known)})
            self._host = known
            return
        self._host = self._hosts[host] = self._add(
            {
                "DnsDomain": DOMAIN,
                "HostName": host,
                "FQDN": host_name(host),
                "OSFamily": "Windows",
                "MdatpDeviceId": device_id(host),
                "LastIpAddress": {"Address": host_address(host), "Type": "ip"},
                "Type": "host",
            }
        )

    def account(self, person: Employee) -> None:
        self._add(
            {
                "Name": person.account,
                "UPNSuffix": DOMAIN,
                "NTDomain": NETBIOS,
                "Sid": person.sid,
                "AadUserId": person.object_id,
                "DisplayName": person.display_name,
                "IsDomainJoined": True,
                "Type": "account",
            }
        )

    def ip(self, address: str, country: str = "") -> None:
        location = {"Location": {"CountryCode": country}} if country else {}
        self._add({"Address": address, **location, "Type": "ip"})

    def url(self, url: str) -> None:
        self._add({"Url": url, "Type": "url"})

    def file(self, directory: str, name: str, sha256: str) -> None:
        hash_number = self._next + 1
        self._image = self._add(
            {
                "Directory": directory,
                "Name": name,
                "FileHashes": [{"$id": str(hash_number), "Algorithm": "SHA256", "Value": sha256, "Type": "filehash"}],
                "Host": {"$ref": str(self._host)},
                "Type": "file",
            }
        )
        self._next = hash_number + 1
        self._entities.append({"$ref": str(hash_number)})

    def process(self, command_line: str, process_id: str) -> None:
        self._add(
            {
                "ProcessId": process_id,
                "CommandLine": command_line,
                "ImageFile": {"$ref": str(self._image)},
                "Host": {"$ref": str(self._host)},
                "Type": "process",
            }
        )

    def mailbox(self, person: Employee) -> None:
        self._add(
            {
                "MailboxPrimaryAddress": person.upn,
                "DisplayName": person.display_name,
                "Upn": person.upn,
                "AadId": person.object_id,
                "Type": "mailbox",
            }
        )

    def mail(self, sender: str, recipient: str, subject: str, network_message_id: str) -> None:
        self._add(
            {
                "Recipient": recipient,
                "P1Sender": sender,
                "P2Sender": sender,
                "Subject": subject,
                "NetworkMessageId": network_message_id,
                "Type": "mailmessage",
            }
        )

    def cloud_application(self, name: str, app_id: int) -> None:
        self._add({"AppId": app_id, "Name": name, "InstanceName": name, "Type": "cloud-application"})

    def json(self) -> str:
        return json.dumps(self._entities, ensure_ascii=False)


# An incident is written again at each change, an alert when its product updates it; the newest row is the truth.
# Everything that is random comes from the caller's generator or from names, so the same options give the same rows.
Row = dict[str, Any]

_NAMESPACE = uuid.UUID("9d2f3b8e-5c1a-4f0e-8a77-3f0f5c1b7a10")


def stable_guid(*parts: object) -> str:
    """A GUID that depends only on `parts`."""
    return str(uuid.uuid5(_NAMESPACE, "/".join(map(str, parts))))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertCase:
    """One alert. `resolved_after` adds a second version that closes it."""

    key: str
    name: str
    severity: str
    at: datetime
    product: str
    description: str
    entities: str
    tactics: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    compromised: str = ""
    resolved_after: timedelta | None = None
    extended: Mapping[str, str] = field(default_factory=dict)
    remediation: tuple[str, ...] = ("Isolate the device.", "Reset the user’s password and revoke sessions.")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentVersion:
    """What a version of an incident changes, `after` its creation."""

    after: timedelta
    by: str
    status: str | None = None
    severity: str | None = None
    title: str | None = None
    owner: Employee | None = None
    classification: tuple[str, str, str] | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentCase:
    """An incident with its alerts. `extra_alert_ids` have no row in SecurityAlert, as happens in real workspaces."""

    number: int
    defender_id: int
    title: str
    severity: str
    created: datetime
    alerts: tuple[AlertCase, ...]
    changes: tuple[IncidentVersion, ...] = ()
    labels: tuple[str, ...] = ()
    extra_alert_ids: int = 0


@dataclass(frozen=True, slots=True)
class NewestState:
    """What is true of an incident after its last version."""

    title: str
    severity: str
    status: str


PRODUCTS: Mapping[str, tuple[str, str, str]] = {
    "MDE": ("MDATP", "Microsoft Defender Advanced Threat Protection", "Microsoft"),
    "MDO": ("OATP", "Office 365 Advanced Threat Protection", "Microsoft"),
    "MCAS": ("MCAS", "Microsoft Cloud App Security", "Microsoft"),
    "AADIP": ("IPC", "Azure Active Directory Identity Protection", "Microsoft"),
    "SENTINEL": ("ASI Scheduled Alerts", "Azure Sentinel", "Microsoft"),
}


def alert_rows(case: AlertCase, *, seed: int, defender_id: int) -> list[Row]:
    """The versions of one alert, oldest first."""
    provider, product, vendor = PRODUCTS[case.product]
    alert_id = stable_guid(seed, "alert", case.key)
    extended = {"IncidentId": str(defender_id), "AlertGenerationStatus": "Full Alert created", **case.extended}
    started, ended = case.at - timedelta(minutes=4), case.at - timedelta(minutes=1)
    first = {
        "TimeGenerated": case.at,
        "TenantId": TENANT_ID,
        "DisplayName": case.name,
        "AlertName": case.name,
        "AlertSeverity": case.severity,
        "Description": case.description,
        "ProviderName": provider,
        "VendorName": vendor,
        "VendorOriginalId": stable_guid(seed, "vendor", case.key),
        "SystemAlertId": alert_id,
        "AlertType": case.key.upper().replace("-", "_"),
        "IsIncident": False,
        "StartTime": started,
        "EndTime": ended,
        "ProcessingEndTime": case.at,
        "RemediationSteps": json.dumps(case.remediation, ensure_ascii=False),
        "ExtendedProperties": json.dumps(extended, ensure_ascii=False),
        "Entities": case.entities,
        "SourceSystem": "Detection",
        "WorkspaceSubscriptionId": SUBSCRIPTION_ID,
        "WorkspaceResourceGroup": "soc",
        "ProductName": product,
        "AlertLink": f"https://security.example/alerts/{alert_id}",
        "Status": "New",
        "CompromisedEntity": case.compromised,
        "Tactics": ", ".join(case.tactics),
        "Techniques": json.dumps(case.techniques),
        "Type": "SecurityAlert",
    }
    if case.resolved_after is None:
        return [first]
    at = case.at + case.resolved_after
    return [first, {**first, "TimeGenerated": at, "ProcessingEndTime": at, "Status": "Resolved"}]


def incident_rows(case: IncidentCase, *, seed: int) -> list[Row]:
    """The versions of one incident, oldest first."""
    name = stable_guid(seed, "incident", case.number)
    alert_ids = _alert_ids(case, case.created, seed)
    activity = [alert.at for alert in case.alerts] or [case.created]
    tactics = sorted({tactic for alert in case.alerts for tactic in alert.tactics})
    techniques = sorted({technique for alert in case.alerts for technique in alert.techniques})
    row: Row = {
        "TimeGenerated": case.created,
        "TenantId": TENANT_ID,
        "IncidentName": name,
        "Title": case.title,
        "Description": "",
        "Severity": case.severity,
        "Status": "New",
        "Classification": "",
        "ClassificationComment": "",
        "ClassificationReason": "",
        "Owner": json.dumps(_owner(None)),
        "ProviderName": "Microsoft XDR",
        "ProviderIncidentId": str(case.defender_id),
        "FirstActivityTime": min(activity) - timedelta(minutes=4),
        "LastActivityTime": max(activity) - timedelta(minutes=1),
        "LastModifiedTime": case.created,
        "CreatedTime": case.created,
        "IncidentNumber": case.number,
        "RelatedAnalyticRuleIds": json.dumps(
            [stable_guid("rule", alert.name) for alert in case.alerts if alert.product == "SENTINEL"]
        ),
        "AlertIds": json.dumps(alert_ids),
        "BookmarkIds": "[]",
        "Comments": "[]",
        "Tasks": "[]",
        "Labels": json.dumps([{"labelName": label, "labelType": "User"} for label in case.labels]),
        "IncidentUrl": f"https://portal.azure.example/#asset/Microsoft_Azure_Security_Insights/Incident{WORKSPACE_RESOURCE}"
        f"/providers/Microsoft.SecurityInsights/Incidents/{name}",
        "AdditionalData": json.dumps(
            {
                "alertsCount": len(alert_ids),
                "bookmarksCount": 0,
                "commentsCount": 0,
                "alertProductNames": sorted({PRODUCTS[alert.product][1] for alert in case.alerts}),
                "tactics": tactics,
                "techniques": techniques,
                "providerIncidentUrl": f"https://security.example/incidents/{case.defender_id}",
            }
        ),
        "ModifiedBy": "Incident created from alert",
        "SourceSystem": "Azure",
        "Type": "SecurityIncident",
    }
    rows = [row]
    comments: list[dict[str, Any]] = []
    for change in case.changes:
        at = case.created + change.after
        alert_ids = _alert_ids(case, at, seed)
        additional = {**json.loads(row["AdditionalData"]), "alertsCount": len(alert_ids)}
        row = {**row, **_changed(change, at), "AlertIds": json.dumps(alert_ids)}
        if change.comment is not None:
            comments.append(
                {
                    "message": change.comment,
                    "createdTimeUtc": at.isoformat() + "Z",
                    "author": {"objectId": None, "email": None, "name": change.by, "userPrincipalName": change.by},
                }
            )
            additional["commentsCount"] = len(comments)
        row["AdditionalData"] = json.dumps(additional)
        row["Comments"] = json.dumps(comments, ensure_ascii=False)
        rows.append(row)
    return rows


def _alert_ids(case: IncidentCase, at: datetime, seed: int) -> list[str]:
    """The alerts that were attached by `at`: the list grows while an attack goes on."""
    ids = [stable_guid(seed, "alert", alert.key) for alert in case.alerts if alert.at <= at]
    return ids + [stable_guid(seed, "lost alert", case.number, index) for index in range(case.extra_alert_ids)]


def newest_state(case: IncidentCase) -> NewestState:
    """The state that the last version shows."""
    title, severity, status = case.title, case.severity, "New"
    for change in case.changes:
        title, severity, status = change.title or title, change.severity or severity, change.status or status
    return NewestState(title, severity, status)


def _changed(change: IncidentVersion, at: datetime) -> Row:
    """A reopened incident keeps its ClosedTime, as real ones do."""
    row: Row = {"TimeGenerated": at, "LastModifiedTime": at, "ModifiedBy": change.by}
    if change.status is not None:
        row["Status"] = change.status
        if change.status == "Closed":
            row["ClosedTime"] = at
    if change.severity is not None:
        row["Severity"] = change.severity
    if change.title is not None:
        row["Title"] = change.title
    if change.owner is not None:
        row["Owner"] = json.dumps(_owner(change.owner), ensure_ascii=False)
    if change.classification is not None:
        row["Classification"], row["ClassificationReason"], row["ClassificationComment"] = change.classification
    return row


def _owner(person: Employee | None) -> dict[str, str | None]:
    if person is None:
        return {"objectId": None, "email": None, "assignedTo": None, "userPrincipalName": None}
    return {
        "objectId": person.object_id,
        "email": person.upn,
        "assignedTo": person.display_name,
        "userPrincipalName": person.upn,
    }
