"""Files in the shapes that Microsoft's services export, put into plain rows."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from sentinel_rag.workspace.importing.raw_rows import detect, write_json_lines
from sentinel_rag.workspace.importing.source_files import SAMPLE_BYTES, Format, SourceFile

# Sentinel's REST API nests a row under `properties` (some programs flatten that to `properties.title`), Microsoft Graph
# has names of its own, and the Defender portal's queues are CSV with words as headers. Each shape is recognised by what
# its first row holds.
Row = Mapping[str, Any]

INCIDENTS, ALERTS = "SecurityIncident", "SecurityAlert"
_STATUS = {"active": "New", "new": "New", "inprogress": "Active", "in progress": "Active", "resolved": "Closed"}
_ALERT_STATUS = {"new": "New", "inprogress": "InProgress", "in progress": "InProgress", "resolved": "Resolved"}
_CLASSIFICATION = {
    "truepositive": "TruePositive",
    "true positive": "TruePositive",
    "falsepositive": "FalsePositive",
    "false positive": "FalsePositive",
    "informationalexpectedactivity": "BenignPositive",
    "informational, expected activity": "BenignPositive",
}
"""Words of Microsoft Graph and the Defender portal, in lower case, and what the tables say."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`marks` are names that a row of it has; `rows` turns one into rows of tables."""

    name: str
    marks: frozenset[str]
    rows: Callable[[Row], Iterator[dict[str, Any]]]


def shape_of(row: Row) -> Shape | None:
    """The shape that a row has; None for a row of a table, and for what nothing here knows."""
    names = frozenset(_nested(row)) | {f"properties.{name}" for name in _inner(_nested(row))}
    return next((shape for shape in SHAPES if shape.marks <= names), None)


def queue_of(headers: Iterable[str]) -> Shape | None:
    """The queue of the Defender portal whose export has these headers."""
    names = frozenset(header.strip().lower() for header in headers)
    return next((shape for shape in QUEUES if shape.marks <= names), None)


def _nested(row: Row) -> dict[str, Any]:
    """`{"properties.owner.email": "x"}` as the objects that it was flattened from."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        parts = name.split(".") if name.startswith("properties.") else [name]
        place = made
        for part in parts[:-1]:
            inner = place.setdefault(part, {})
            place = inner if isinstance(inner, dict) else place
        place[parts[-1]] = value
    return made


def _inner(row: Row) -> Row:
    inner = row.get("properties")
    return inner if isinstance(inner, Mapping) else {}


def _taken(values: Row, names: Mapping[str, str]) -> dict[str, Any]:
    """The columns of a table out of what a service calls otherwise; what is not there is left out."""
    return {column: values[name] for name, column in names.items() if values.get(name) not in (None, "")}


# --- Sentinel's REST API


def _alike(names: str) -> dict[str, str]:
    """Names that differ from the table's in their first letter, and in the `Utc` behind a time."""
    return {name: f"{name[0].upper()}{name[1:]}".removesuffix("Utc") for name in names.split()}


_REST_INCIDENT = _alike(
    "incidentNumber title description severity status classification classificationComment classificationReason "
    "owner labels createdTimeUtc lastModifiedTimeUtc firstActivityTimeUtc lastActivityTimeUtc incidentUrl "
    "providerName providerIncidentId additionalData relatedAnalyticRuleIds"
)
_REST_ALERT = _alike(
    "systemAlertId description status productName vendorName alertType alertLink compromisedEntity "
    "confidenceLevel startTimeUtc endTimeUtc timeGenerated processingEndTime remediationSteps"
) | {
    "alertDisplayName": "DisplayName",
    "friendlyName": "AlertName",
    "severity": "AlertSeverity",
    "providerAlertId": "VendorOriginalId",
}


def _rest_incident(row: Row) -> Iterator[dict[str, Any]]:
    nested = _nested(row)
    told = _inner(nested)
    made = _taken(told, _REST_INCIDENT)
    alerts = [each for each in nested.get("Alerts") or () if isinstance(each, Mapping)]
    made["IncidentName"] = nested.get("name", "")
    made["AlertIds"] = [str(each.get("ID") or each.get("id") or "") for each in alerts]
    made.setdefault("ProviderName", "Azure Sentinel")
    made.setdefault("ProviderIncidentId", str(told.get("incidentNumber", "")))
    if made.get("Status") == "Closed":
        made["ClosedTime"] = made.get("LastModifiedTime")
    made["TimeGenerated"] = made.get("LastModifiedTime") or made.get("CreatedTime")
    yield {**made, "Type": INCIDENTS}


def _rest_alert(row: Row) -> Iterator[dict[str, Any]]:
    told = _inner(_nested(row))
    made = _taken(told, _REST_ALERT)
    made["Tactics"] = ", ".join(map(str, told.get("tactics") or ()))
    made.setdefault("AlertName", made.get("DisplayName", ""))
    made.setdefault("TimeGenerated", made.get("EndTime") or made.get("StartTime"))
    yield {**made, "Type": ALERTS}


# --- Microsoft Graph

_GRAPH_INCIDENT = {
    "displayName": "Title",
    "description": "Description",
    "createdDateTime": "CreatedTime",
    "lastUpdateDateTime": "LastModifiedTime",
    "incidentWebUrl": "IncidentUrl",
    "resolvingComment": "ClassificationComment",
}
_GRAPH_ALERT = {
    "id": "SystemAlertId",
    "title": "AlertName",
    "description": "Description",
    "providerAlertId": "VendorOriginalId",
    "alertWebUrl": "AlertLink",
    "productName": "ProductName",
    "firstActivityDateTime": "StartTime",
    "lastActivityDateTime": "EndTime",
    "lastUpdateDateTime": "ProcessingEndTime",
    "createdDateTime": "TimeGenerated",
    "category": "Tactics",
    "recommendedActions": "RemediationSteps",
}


def _graph_incident(row: Row) -> Iterator[dict[str, Any]]:
    alerts = [each for each in row.get("alerts") or () if isinstance(each, Mapping)]
    made = _taken(row, _GRAPH_INCIDENT)
    made |= _incident_of_defender(row.get("id"), row.get("severity"), row.get("status"), row.get("classification"))
    made["Owner"] = _owner(row.get("assignedTo"))
    made["Labels"] = [{"labelName": str(each), "labelType": "User"} for each in row.get("customTags") or ()]
    made["AlertIds"] = [str(each.get("id", "")) for each in alerts]
    made["AdditionalData"] = {"alertsCount": len(alerts)}
    if made["Status"] == "Closed":
        made["ClosedTime"] = made.get("LastModifiedTime")
    made["TimeGenerated"] = made.get("LastModifiedTime") or made.get("CreatedTime")
    yield {**made, "Type": INCIDENTS}
    for alert in alerts:
        yield from _graph_alert(alert)


def _graph_alert(row: Row) -> Iterator[dict[str, Any]]:
    made = _taken(row, _GRAPH_ALERT)
    made["DisplayName"] = made.get("AlertName", "")
    made["AlertSeverity"] = _severity(row.get("severity"))
    made["Status"] = _word(row.get("status"), _ALERT_STATUS)
    made["ProviderName"] = str(row.get("serviceSource") or "")
    made.setdefault("ProductName", made["ProviderName"])
    made["Techniques"] = list(row.get("mitreTechniques") or ())
    entities = [entity for each in row.get("evidence") or () if (entity := _graph_entity(each))]
    made["Entities"] = entities
    made["CompromisedEntity"] = next((str(each.get("HostName") or each.get("Name") or "") for each in entities), "")
    yield {**made, "Type": ALERTS}


def _graph_sign_in(row: Row) -> Iterator[dict[str, Any]]:
    status = row["status"] if isinstance(row.get("status"), Mapping) else {}
    place = row["location"] if isinstance(row.get("location"), Mapping) else {}
    made = {f"{name[:1].upper()}{name[1:]}": value for name, value in row.items()}
    made |= {"IPAddress": made.pop("IpAddress", ""), "Location": place.get("countryOrRegion") or ""}
    made |= {"ResultType": str(status.get("errorCode", "")), "ResultDescription": status.get("failureReason") or ""}
    yield {**made, "LocationDetails": place, "TimeGenerated": row.get("createdDateTime"), "Type": "SigninLogs"}


def _graph_entity(evidence: Any) -> dict[str, Any]:
    """An entity as SecurityAlert has it, from an evidence of Graph; empty for a kind that the table has none of."""
    if not isinstance(evidence, Mapping):
        return {}
    kind = str(evidence.get("@odata.type", "")).rpartition(".")[2]
    account, file = evidence.get("userAccount") or {}, evidence.get("fileDetails") or evidence.get("imageFile") or {}
    match kind:
        case "userEvidence" | "mailboxEvidence":
            name, _, suffix = str(account.get("userPrincipalName") or account.get("accountName") or "").partition("@")
            return {"Type": "account", "Name": name, "UPNSuffix": suffix, "NTDomain": account.get("domainName") or ""}
        case "deviceEvidence":
            name, _, domain = str(evidence.get("deviceDnsName") or evidence.get("hostName") or "").partition(".")
            return {"Type": "host", "HostName": name, "DnsDomain": domain}
        case "ipEvidence":
            return {"Type": "ip", "Address": evidence.get("ipAddress")}
        case "urlEvidence":
            return {"Type": "url", "Url": evidence.get("url")}
        case "fileEvidence":
            return {"Type": "file", "Name": file.get("fileName"), "Directory": file.get("filePath")}
        case "processEvidence":
            return {"Type": "process", "CommandLine": evidence.get("processCommandLine")}
        case _:
            return {}


# --- queues of the Defender portal, by their headers in lower case


def _incident_queue(row: Row) -> Iterator[dict[str, Any]]:
    told = {str(name).strip().lower(): value for name, value in row.items()}
    made = _incident_of_defender(
        told.get("incident id"), told.get("severity"), told.get("status"), told.get("classification")
    )
    made["Title"] = told.get("incident name", "")
    made["Owner"] = _owner(told.get("assigned to"))
    made["FirstActivityTime"] = told.get("first activity")
    made["LastActivityTime"] = told.get("last activity")
    made["CreatedTime"] = told.get("creation time") or told.get("first activity")
    made["LastModifiedTime"] = told.get("last update time") or told.get("last activity")
    made["TimeGenerated"] = made["LastModifiedTime"]
    if made["Status"] == "Closed":
        made["ClosedTime"] = made["LastModifiedTime"]
    made["Labels"] = _labels(told.get("tags"))
    made["AdditionalData"] = {"alertsCount": _first_number(told.get("active alerts"))}
    yield {**made, "Type": INCIDENTS}


def _alert_queue(row: Row) -> Iterator[dict[str, Any]]:
    told = {str(name).strip().lower(): value for name, value in row.items()}
    written = json.dumps(told, sort_keys=True, default=str)
    status = _word(told.get("status"), _ALERT_STATUS)
    yield {
        "SystemAlertId": told.get("alert id") or hashlib.sha256(written.encode()).hexdigest()[:32],
        "AlertName": told.get("alert name", ""),
        "DisplayName": told.get("alert name", ""),
        "AlertSeverity": _severity(told.get("severity")),
        "Status": status,
        "Tactics": told.get("category", ""),
        "ProviderName": told.get("service source") or told.get("detection source", ""),
        "ProductName": told.get("product name") or told.get("service source") or told.get("detection source", ""),
        "CompromisedEntity": told.get("impacted assets", ""),
        "StartTime": told.get("first activity"),
        "EndTime": told.get("last activity"),
        "TimeGenerated": told.get("last activity") or told.get("first activity"),
        "Type": ALERTS,
    }


def _incident_of_defender(number: Any, severity: Any, status: Any, classification: Any) -> dict[str, Any]:
    """What Graph and the portal have in common. Their number is a Defender id; it stands for the Sentinel number too,
    which they do not tell."""
    made: dict[str, Any] = {
        "IncidentNumber": str(number or ""),
        "ProviderIncidentId": str(number or ""),
        "IncidentName": str(number or ""),
        "ProviderName": "Microsoft XDR",
        "Severity": _severity(severity),
        "Status": _word(status, _STATUS),
    }
    if known := _CLASSIFICATION.get(str(classification or "").strip().lower()):
        made["Classification"] = known
    return made


def _word(value: Any, words: Mapping[str, str]) -> str:
    said = str(value or "").strip()
    return words.get(said.lower(), said)


def _severity(value: Any) -> str:
    """Graph says `unknownFutureValue` for what a caller is too old for; that is none."""
    said = str(value or "").strip().capitalize()
    return said if said != "Unknownfuturevalue" else ""


def _owner(name: Any) -> dict[str, str]:
    said = str(name or "").strip()
    if said.lower() in ("", "unassigned"):
        return {}
    address = said if "@" in said else ""
    return {"assignedTo": said, "email": address, "userPrincipalName": address, "objectId": ""}


def _labels(text: Any) -> list[dict[str, str]]:
    return [{"labelName": each.strip(), "labelType": "User"} for each in str(text or "").split(",") if each.strip()]


def _first_number(text: Any) -> int:
    head = str(text or "").split("/")[0].strip()
    return int(head) if head.isascii() and head.isdigit() else 0


SHAPES = (
    Shape("incidents of Sentinel's API", frozenset({"properties.incidentNumber", "properties.title"}), _rest_incident),
    Shape("alerts of Sentinel's API", frozenset({"properties.systemAlertId"}), _rest_alert),
    Shape(
        "incidents of Microsoft Graph",
        frozenset({"id", "displayName", "createdDateTime", "incidentWebUrl"}),
        _graph_incident,
    ),
    Shape(
        "sign-ins of Microsoft Graph",
        frozenset({"createdDateTime", "appDisplayName", "ipAddress", "status"}),
        _graph_sign_in,
    ),
    Shape("alerts of Microsoft Graph", frozenset({"id", "title", "createdDateTime", "alertWebUrl"}), _graph_alert),
)
QUEUES = (
    Shape("Defender's queue of incidents", frozenset({"incident name", "incident id", "severity"}), _incident_queue),
    Shape(
        "Defender's queue of alerts", frozenset({"alert name", "severity", "status", "first activity"}), _alert_queue
    ),
)


_LOOKED_AT = 5
"""Lines that are looked at for the shape of the rows."""


def reshaped(source: SourceFile, target: Path, folder: Path) -> tuple[SourceFile, Path, tuple[str, ...]]:
    """The file with notes, or the file as it was and none. Raises UnreadableFileError for JSON that is none."""
    if source.format is Format.DELIMITED:
        return _queue(source, target, folder)
    if source.format is Format.PARQUET or not _may_be_a_service(source.sample):
        return source, target, ()
    lines = target
    missing: tuple[str, ...] = ()
    if source.format is Format.JSON:
        lines = folder / "lines.txt"
        _, missing = write_json_lines(target, lines, name=str(source.path))
    with lines.open(encoding="utf-8-sig", errors="replace") as text:
        first = (_object(line) for line in islice(text, _LOOKED_AT))
        shape = next((found for row in first if row is not None and (found := shape_of(row))), None)
    if shape is None:
        return source, target, ()
    with lines.open(encoding="utf-8-sig", errors="replace") as text:
        read, made, notes = _written(source, folder, shape, text)
    return read, made, (*notes, *missing)


def _may_be_a_service(sample: str) -> bool:
    return any(word in sample for word in ('"properties', '"incidentWebUrl"', '"alertWebUrl"', '"appDisplayName"'))


def _object(line: str) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _queue(source: SourceFile, target: Path, folder: Path) -> tuple[SourceFile, Path, tuple[str, ...]]:
    dialect = detect(source.sample, complete=source.size < SAMPLE_BYTES)
    shape = queue_of(dialect.columns) if dialect.has_header else None
    if shape is None:
        return source, target, ()
    with target.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        rows = csv.DictReader(text, delimiter=dialect.separator)
        return _written(source, folder, shape, (json.dumps(row) for row in rows))


def _written(
    source: SourceFile, folder: Path, shape: Shape, lines: Iterable[str]
) -> tuple[SourceFile, Path, tuple[str, ...]]:
    """Every row that has the shape as rows of tables; a line that is none as it stands, to be told as a reject."""
    made = folder / "rows.txt"
    with made.open("w", encoding="utf-8") as out:
        for line in lines:
            row = _object(line)
            if row is None:
                out.write(line.rstrip("\n") + "\n")
                continue
            for told in shape.rows(row):
                out.write(json.dumps(told, ensure_ascii=False) + "\n")
    with made.open(encoding="utf-8") as text:
        sample = text.read(len(source.sample) + 4_096)
    read = replace(source, format=Format.JSON_LINES, encoding="utf-8", sample=sample, says_null=False)
    return read, made, (f"Read as {shape.name}.",)
