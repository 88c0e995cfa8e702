"""Incidents and bookmarks as rows of the workspace and as bodies on the wire.

Entities of an incident as the REST API serves them, and their friendly names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

if TYPE_CHECKING:
    import duckdb


# Times stay without zone, as the store keeps them; the wire's form of a time is made here too, because the store's JSON
# columns hold it.
Row = Mapping[str, Any]
"""Column -> value of one row."""

_NAMESPACE = UUID("3c1f0f4e-0a52-4a53-9b0c-6f0e6a7f2b91")


def fetch_rows(cursor: duckdb.DuckDBPyConnection) -> list[Row]:
    """All rows of the statement that ran last, by column name."""
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def json_value(cell: Any) -> Any:
    """A dynamic cell; None for an empty one and for text that is not JSON."""
    if not isinstance(cell, str):
        return cell
    try:
        value = json.loads(cell, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str) and value[:1] in "[{":  # exports encode some of these columns twice
        return json_value(value)
    return value


def json_list(cell: Any) -> list[Any]:
    """A dynamic cell that should be a list; empty if it is none."""
    value = json_value(cell)
    return value if isinstance(value, list) else []


def json_object(cell: Any) -> dict[str, Any]:
    """A dynamic cell that should be an object; empty if it is none."""
    value = json_value(cell)
    return value if isinstance(value, dict) else {}


def wire_time(moment: datetime | None) -> str | None:
    """`2024-07-02T12:23:42.9500000Z`: seven fraction digits, as the service writes times."""
    return None if moment is None else f"{moment.isoformat(timespec='microseconds')}0Z"


def derived_guid(*parts: object) -> str:
    """A GUID that depends only on `parts`, for what the log keeps without an id."""
    return str(uuid5(_NAMESPACE, "/".join(map(str, parts))))


def etag_of(row: Row) -> str:
    """The quoted etag of a row: another row, another etag; the same row keeps it over restarts."""
    text = json.dumps(row, sort_keys=True, default=str, ensure_ascii=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'"{digest[:8]}-{digest[8:12]}-0100-0000-{digest[12:20]}0000"'


class NotCurrentError(Exception):
    """The etag of the write is not that of the newest row: somebody wrote in between."""


def require_current(newest: Row | None, *etags: str | None) -> None:
    """Raises NotCurrentError if one of the etags that a write names is not that of the newest row; `*` is any, None
    names none."""
    for etag in etags:
        if etag is not None and etag != "*" and (newest is None or etag != etag_of(newest)):
            raise NotCurrentError


class BodyError(Exception):
    """The body is not one that the service takes; the text says what is wrong with which property."""


def properties_of(body: Any) -> Mapping[str, Any]:
    """The object `properties` of a request. Raises BodyError."""
    if not isinstance(body, Mapping) or not isinstance(body.get("properties"), Mapping):
        raise BodyError("The request body needs an object 'properties'.")
    found: Mapping[str, Any] = body["properties"]
    return found


def text_of(given: Mapping[str, Any], key: str, longest: int, *, required: bool = False) -> str:
    """A text of at most `longest` characters, empty if it is missing. Raises BodyError."""
    value = given.get(key)
    if value is None and not required:
        return ""
    if required and (value is None or (isinstance(value, str) and not value.strip())):
        raise BodyError(f"The property '{key}' is required.")
    if not isinstance(value, str):
        raise BodyError(f"The property '{key}' must be text.")
    if len(value) > longest:
        raise BodyError(f"The property '{key}' may be {longest} characters long, not {len(value)}.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise BodyError(f"The property '{key}' holds half of a surrogate pair.")
    return value


def time_of(given: Mapping[str, Any], key: str) -> datetime | None:
    """A moment in UTC without its zone, as the tables hold it; None if it is missing. Raises BodyError."""
    text = text_of(given, key, 40)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise BodyError(f"The property '{key}' is not a time such as 2026-11-01T00:00:00Z.") from None


def choice_of(given: Mapping[str, Any], key: str, allowed: tuple[str, ...], *, required: bool = False) -> str:
    """One of `allowed`, in their spelling whatever its case, empty if it is missing. Raises BodyError."""
    value = given.get(key)
    if value is None or value == "":
        if required:
            raise BodyError(f"The property '{key}' is required.")
        return ""
    for known in allowed:
        if isinstance(value, str) and known.lower() == value.lower():
            return known
    raise BodyError(f"The property '{key}' must be one of {', '.join(allowed)}.")


# Reading is strict where the service is (required properties, allowed values, lengths) and drops unknown or read-only
# properties, as it does. A PUT replaces: a writable property that is left out is lost.
SEVERITIES = ("High", "Medium", "Low", "Informational")
STATUSES = ("New", "Active", "Closed")
CLASSIFICATIONS = ("Undetermined", "TruePositive", "BenignPositive", "FalsePositive")
REASONS = ("SuspiciousActivity", "SuspiciousButExpected", "IncorrectAlertLogic", "InaccurateData")
MAX_DESCRIPTION = 5_000
MAX_TITLE = 500
MAX_MESSAGE = 30_000
OWNER_KEYS = ("objectId", "email", "assignedTo", "userPrincipalName")


@dataclass(frozen=True, slots=True)
class Write:
    """What one PUT asks for: the columns that it sets, and the etag that the row must have, if it names one."""

    columns: Mapping[str, Any]
    etag: str | None


def incident_body(row: Row, workspace_path: str) -> dict[str, Any]:
    """The resource of the incident whose newest row is `row`, below the provider's path `workspace_path`."""
    additional = json_object(row["AdditionalData"])
    owner = json_object(row["Owner"])
    name = str(row["IncidentName"])
    closed = {
        "classification": row["Classification"],
        "classificationReason": row["ClassificationReason"],
        "classificationComment": row["ClassificationComment"],
    }
    properties = {
        "title": row["Title"],
        "description": row["Description"] or "",
        "severity": row["Severity"],
        "status": row["Status"],
        **{key: value for key, value in closed.items() if value},
        "owner": {key: owner.get(key) for key in OWNER_KEYS},
        "labels": [
            {"labelName": label["labelName"], "labelType": label.get("labelType", "User")}
            for label in json_list(row["Labels"])
            if isinstance(label, dict) and label.get("labelName")
        ],
        "firstActivityTimeUtc": wire_time(row["FirstActivityTime"]),
        "lastActivityTimeUtc": wire_time(row["LastActivityTime"]),
        "lastModifiedTimeUtc": wire_time(row["LastModifiedTime"] or row["TimeGenerated"]),
        "createdTimeUtc": wire_time(row["CreatedTime"]),
        "incidentNumber": row["IncidentNumber"],
        "additionalData": {
            "alertsCount": additional.get("alertsCount", len(json_list(row["AlertIds"]))),
            "bookmarksCount": len(json_list(row["BookmarkIds"])),
            "commentsCount": len(json_list(row["Comments"])),
            "alertProductNames": additional.get("alertProductNames", []),
            "tactics": additional.get("tactics", []),
            **({"providerIncidentUrl": url} if (url := additional.get("providerIncidentUrl")) else {}),
        },
        "relatedAnalyticRuleIds": [
            f"{workspace_path}/alertRules/{rule}" for rule in json_list(row["RelatedAnalyticRuleIds"])
        ],
        "incidentUrl": row["IncidentUrl"],
        "providerName": row["ProviderName"],
        "providerIncidentId": row["ProviderIncidentId"],
    }
    return {
        "id": f"{workspace_path}/Incidents/{name}",
        "name": name,
        "etag": etag_of(row),
        "type": "Microsoft.SecurityInsights/Incidents",
        "properties": {key: value for key, value in properties.items() if value is not None},
    }


def read_incident(body: Any) -> Write:
    """The write that a PUT asks for, Owner as an object. Raises BodyError."""
    given = properties_of(body)
    status = choice_of(given, "status", STATUSES, required=True)
    classification = choice_of(given, "classification", CLASSIFICATIONS)
    if status == "Closed" and not classification:
        raise BodyError("The property 'classification' is required when the status is Closed.")
    etag = body.get("etag")
    if etag is not None and not isinstance(etag, str):
        raise BodyError("The property 'etag' must be text.")
    columns = {
        "Title": text_of(given, "title", MAX_TITLE, required=True),
        "Severity": choice_of(given, "severity", SEVERITIES, required=True),
        "Status": status,
        "Description": text_of(given, "description", MAX_DESCRIPTION),
        "Classification": classification,
        "ClassificationReason": choice_of(given, "classificationReason", REASONS),
        "ClassificationComment": text_of(given, "classificationComment", MAX_MESSAGE),
        "Owner": _owner(given.get("owner")),
        "Labels": json.dumps(_labels(given.get("labels")), ensure_ascii=False),
        "FirstActivityTime": time_of(given, "firstActivityTimeUtc"),
        "LastActivityTime": time_of(given, "lastActivityTimeUtc"),
    }
    return Write(columns, etag or None)


def read_comment(body: Any) -> tuple[str, str | None]:
    """Message and etag of a comment's PUT. Raises BodyError."""
    message = text_of(properties_of(body), "message", MAX_MESSAGE, required=True)
    etag = body.get("etag")
    return message, etag if isinstance(etag, str) and etag else None


def _owner(value: Any) -> Mapping[str, str | None]:
    if value is None:
        return dict.fromkeys(OWNER_KEYS)
    if not isinstance(value, dict):
        raise BodyError("The property 'owner' must be an object.")
    return {key: text_of(value, key, 500) or None for key in OWNER_KEYS}


def _labels(value: Any) -> list[Mapping[str, str]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(label, dict) for label in value):
        raise BodyError("The property 'labels' must be a list of objects.")
    labels: list[Mapping[str, str]] = []
    for label in value:
        name = text_of(label, "labelName", 500)
        if not name:
            raise BodyError("Each label needs a 'labelName'.")
        kind = choice_of(label, "labelType", ("User", "AutoAssigned")) or "User"
        labels.append({"labelName": name, "labelType": kind})
    return labels


# HuntingBookmark is a log of versions as SecurityIncident is. Its columns are text where REST has objects and lists;
# what an export holds otherwise than as JSON is shown as it stands.
MAX_NAME = 500
MAX_TEXT = 30_000
MAX_LABELS = 50
_PERSON_KEYS = ("objectId", "email", "name")


def bookmark_body(row: Row, workspace_path: str) -> dict[str, Any]:
    """The resource of the bookmark whose newest row is `row`."""
    name = str(row["BookmarkId"])
    return {
        "id": f"{workspace_path}/Bookmarks/{name}",
        "name": name,
        "etag": etag_of(row),
        "type": "Microsoft.SecurityInsights/Bookmarks",
        "properties": _properties(row),
    }


def bookmark_entity(row: Row, workspace_path: str) -> dict[str, Any]:
    """The bookmark as an incident lists it: an entity of kind Bookmark."""
    name = str(row["BookmarkId"])
    return {
        "id": f"{workspace_path}/Entities/{name}",
        "name": name,
        "type": "Microsoft.SecurityInsights/Entities",
        "kind": "Bookmark",
        "properties": {**_properties(row), "friendlyName": row["BookmarkName"], "additionalData": {}},
    }


def relation_body(incident: str, relation: str, bookmark: str, workspace_path: str) -> dict[str, Any]:
    """The resource of an incident's relation to a bookmark."""
    return {
        "id": f"{workspace_path}/Incidents/{incident}/Relations/{relation}",
        "name": relation,
        "etag": derived_guid("relation etag", incident, relation, bookmark),
        "type": "Microsoft.SecurityInsights/Incidents/Relations",
        "properties": {
            "relatedResourceId": f"{workspace_path}/Bookmarks/{bookmark}",
            "relatedResourceName": bookmark,
            "relatedResourceType": "Microsoft.SecurityInsights/Bookmarks",
        },
    }


def _properties(row: Row) -> dict[str, Any]:
    properties = {
        "displayName": row["BookmarkName"],
        "created": wire_time(row["CreatedTime"]),
        "createdBy": _person(row["CreatedBy"]),
        "updated": wire_time(row["LastUpdatedTime"] or row["TimeGenerated"]),
        "updatedBy": _person(row["UpdatedBy"]),
        "eventTime": wire_time(row["EventTime"]),
        "labels": _labels_of(row["Tags"]),
        "notes": row["Notes"] or None,
        "query": row["QueryText"],
        "queryResult": row["QueryResultRow"] or None,
        "queryStartTime": wire_time(row["QueryStartTime"]),
        "queryEndTime": wire_time(row["QueryEndTime"]),
    }
    return {key: value for key, value in properties.items() if value is not None}


def _person(cell: Any) -> dict[str, Any] | None:
    """Who it was: the log has a JSON object, whose keys differ in case between its writers, or a name alone."""
    if not cell:
        return None
    value = json_value(cell)
    if not isinstance(value, Mapping):
        return {"objectId": None, "email": None, "name": str(cell)}
    by_key = {str(key).lower(): found for key, found in value.items()}
    return {key: by_key.get(key.lower()) for key in _PERSON_KEYS}


def _labels_of(cell: Any) -> list[str]:
    value = json_value(cell)
    parts = value if isinstance(value, list) else str(cell or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]


def read_bookmark(body: Any) -> Write:
    """The write that a PUT asks for. Raises BodyError."""
    given = properties_of(body)
    etag = body.get("etag")
    labels = given.get("labels") or []
    if not isinstance(labels, list) or len(labels) > MAX_LABELS or not all(isinstance(each, str) for each in labels):
        raise BodyError(f"The property 'labels' must be a list of at most {MAX_LABELS} texts.")
    columns = {
        "BookmarkName": text_of(given, "displayName", MAX_NAME, required=True),
        "QueryText": text_of(given, "query", MAX_TEXT, required=True),
        "QueryResultRow": text_of(given, "queryResult", MAX_TEXT),
        "Notes": text_of(given, "notes", MAX_TEXT),
        "Tags": json.dumps(labels, ensure_ascii=False) if labels else "",
        "EventTime": time_of(given, "eventTime"),
        "QueryStartTime": time_of(given, "queryStartTime"),
        "QueryEndTime": time_of(given, "queryEndTime"),
    }
    return Write(columns, etag if isinstance(etag, str) and etag else None)


def related_bookmark(body: Any, workspace_path: str) -> str:
    """The id of the bookmark that a relation's PUT names, in lower case. Raises BodyError."""
    properties = body.get("properties") if isinstance(body, dict) else None
    related = properties.get("relatedResourceId") if isinstance(properties, dict) else None
    if not isinstance(related, str) or not related:
        raise BodyError("The property 'relatedResourceId' is required.")
    prefix = f"{workspace_path}/Bookmarks/".lower()
    if not related.lower().startswith(prefix) or "/" in related[len(prefix) :] or len(related) == len(prefix):
        raise BodyError("The property 'relatedResourceId' must be the id of a bookmark of this workspace.")
    return related[len(prefix) :].lower()


def bookmark_columns(write: Write, author: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """The columns of the row that a write appends."""
    person = json.dumps({key: author.get(key) for key in _PERSON_KEYS}, ensure_ascii=False)
    return {**write.columns, "TimeGenerated": at, "LastUpdatedTime": at, "UpdatedBy": person, "SoftDeleted": False}


KINDS: Mapping[str, str] = {
    "account": "Account",
    "host": "Host",
    "ip": "Ip",
    "url": "Url",
    "file": "File",
    "filehash": "FileHash",
    "process": "Process",
    "dns": "DnsResolution",
    "azure-resource": "AzureResource",
    "cloud-application": "CloudApplication",
    "malware": "Malware",
    "registry-key": "RegistryKey",
    "registry-value": "RegistryValue",
    "security-group": "SecurityGroup",
    "mailbox": "Mailbox",
    "mailmessage": "MailMessage",
    "mailcluster": "MailCluster",
    "submissionmail": "SubmissionMail",
    "iotdevice": "IoTDevice",
}
"""Type in an alert's row -> kind on the wire. A type that is not here keeps its own name."""

_FIRST_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z]|\Z)|[A-Z]")
_PROPERTIES: Mapping[str, str] = {
    "Account": (
        "Name=accountName NTDomain UPNSuffix Sid AadTenantId AadUserId ObjectGuid PUID DnsDomain "
        "IsDomainJoined DisplayName Host=hostEntityId"
    ),
    "Host": "HostName DnsDomain NTDomain NetBiosName OSFamily OSVersion AzureID OMSAgentID IsDomainJoined",
    "Ip": "Address Location ThreatIntelligence",
    "Url": "Url",
    "File": "Directory Name=fileName Host=hostEntityId FileHashes=fileHashEntityIds",
    "FileHash": "Algorithm Value=hashValue",
    "Process": (
        "ProcessId CommandLine CreationTimeUtc ElevationToken Account=accountEntityId Host=hostEntityId "
        "ImageFile=imageFileEntityId ParentProcess=parentProcessEntityId"
    ),
    "DnsResolution": "DomainName IpAddress=ipAddressEntityIds",
    "AzureResource": "ResourceId",
    "CloudApplication": "AppId Name=appName InstanceName",
    "Malware": "Name=malwareName Category",
    "RegistryKey": "Hive Key",
    "RegistryValue": "Key=keyEntityId Name=valueName Value=valueData ValueType",
    "SecurityGroup": "DistinguishedName SID ObjectGuid",
    "Mailbox": "MailboxPrimaryAddress DisplayName Upn ExternalDirectoryObjectId",
    "MailMessage": (
        "Recipient Sender=p2Sender P1Sender P2Sender SenderIP Subject Urls NetworkMessageId "
        "InternetMessageId DeliveryAction"
    ),
}
"""Kind -> the properties of a row that REST has too: as there but for its first word in small letters, or as named."""


def _renamed(told: str) -> Iterator[tuple[str, str]]:
    for each in told.split():
        name, _, other = each.partition("=")
        yield name, other or _FIRST_WORD.sub(lambda word: word[0].lower(), name, count=1)


RENAMED: Mapping[str, Mapping[str, str]] = {kind: dict(_renamed(told)) for kind, told in _PROPERTIES.items()}
FRIENDLY = (
    *("accountName", "hostName", "address", "url", "fileName", "hashValue", "commandLine", "domainName"),
    *("resourceId", "appName", "malwareName", "key", "mailboxPrimaryAddress", "subject", "displayName"),
)
"""The properties that name an entity for a person, the first that is there."""


# An alert's row writes an entity once and refers to it afterwards (`$ref`); REST lists each entity once, with its
# properties under names of its own and references as the ids of other entities. What has no such name stays in
# `additionalData`, so nothing of the row is lost.
_MOST_LEVELS = 8


def alert_body(row: Row, workspace_path: str, workspace_id: str) -> dict[str, Any]:
    """One alert as an entity of kind SecurityAlert."""
    alert_id = str(row["SystemAlertId"])
    properties = {
        "systemAlertId": alert_id,
        "alertDisplayName": row["DisplayName"] or row["AlertName"],
        "friendlyName": row["DisplayName"] or row["AlertName"],
        "alertType": row["AlertType"],
        "description": row["Description"],
        "severity": row["AlertSeverity"],
        "status": row["Status"],
        "confidenceLevel": row["ConfidenceLevel"] or "Unknown",
        "vendorName": row["VendorName"],
        "productName": row["ProductName"],
        "productComponentName": row["ProductComponentName"],
        "providerAlertId": row["VendorOriginalId"],
        "alertLink": row["AlertLink"],
        "tactics": [tactic.strip() for tactic in (row["Tactics"] or "").split(",") if tactic.strip()],
        "startTimeUtc": wire_time(row["StartTime"]),
        "endTimeUtc": wire_time(row["EndTime"]),
        "timeGenerated": wire_time(row["TimeGenerated"]),
        "processingEndTime": wire_time(row["ProcessingEndTime"]),
        "resourceIdentifiers": [{"type": "LogAnalytics", "workspaceId": workspace_id}],
        "additionalData": json_object(row["ExtendedProperties"]),
    }
    return _entity(
        workspace_path, alert_id, "SecurityAlert", {key: value for key, value in properties.items() if value}
    )


def entities_body(alerts: Iterable[Row], workspace_path: str) -> dict[str, Any]:
    """`entities`, each once, and `metaData` with the count of each kind."""
    found: dict[str, dict[str, Any]] = {}
    for alert in alerts:
        reader = _AlertEntities(json_list(alert["Entities"]), workspace_path)
        for entity in reader.entities():
            found.setdefault(entity["name"], entity)
    counts = Counter(entity["kind"] for entity in found.values())
    return {
        "entities": list(found.values()),
        "metaData": [{"entityKind": kind, "count": count} for kind, count in counts.items()],
    }


class _AlertEntities:
    """The entities of one row, references resolved."""

    def __init__(self, elements: list[Any], workspace_path: str) -> None:
        self._elements = [element for element in elements if isinstance(element, dict)]
        self._path = workspace_path
        self._by_id: dict[str, dict[str, Any]] = {}
        self._made: dict[int, dict[str, Any]] = {}
        self._being_made: set[int] = set()
        for element in self._elements:
            self._index(element, 0)

    def entities(self) -> list[dict[str, Any]]:
        """Every entity, those that stand only inside another included."""
        return [self._resource(element, 0) for element in self._by_id.values()] + [
            self._resource(element, 0)
            for element in self._elements
            if "$id" not in element and "$ref" not in element and element.get("Type")
        ]

    def _index(self, value: Any, level: int) -> None:
        if level > _MOST_LEVELS:
            return
        if isinstance(value, list):
            for item in value:
                self._index(item, level + 1)
        elif isinstance(value, dict):
            if value.get("Type") and "$id" in value:
                self._by_id.setdefault(str(value["$id"]), value)
            for item in value.values():
                self._index(item, level + 1)

    def _resolved(self, value: Any) -> Any:
        return self._by_id.get(str(value["$ref"]), value) if isinstance(value, dict) and "$ref" in value else value

    def _resource(self, element: Mapping[str, Any], level: int) -> dict[str, Any]:
        """Made once for each element, so that a row whose entities name each other costs no more than its length."""
        key = id(element)
        if key not in self._made:
            self._being_made.add(key)
            self._made[key] = self._new_resource(element, level)
            self._being_made.discard(key)
        return self._made[key]

    def _new_resource(self, element: Mapping[str, Any], level: int) -> dict[str, Any]:
        type_ = str(element["Type"])
        kind = KINDS.get(type_.lower(), type_)
        renamed = RENAMED.get(kind, {})
        properties: dict[str, Any] = {}
        additional: dict[str, Any] = {}
        for key, value in element.items():
            if key in ("$id", "Type"):
                continue
            shown = self._value(value, level)
            if key in renamed and shown is not None:
                properties[renamed[key]] = shown
            elif shown is not None:
                additional[key] = shown
        friendly = next((str(properties[key]) for key in FRIENDLY if properties.get(key)), kind)
        identity = json.dumps([kind, properties, additional], sort_keys=True, ensure_ascii=True)
        properties |= {"additionalData": additional, "friendlyName": friendly}
        return _entity(self._path, derived_guid("entity", identity), kind, properties)

    def _value(self, value: Any, level: int) -> Any:
        """An entity becomes the id of its resource, a list of them a list of ids; anything else stays."""
        value = self._resolved(value)
        if isinstance(value, list):
            return [self._value(item, level) for item in value]
        if isinstance(value, dict) and value.get("Type"):
            if level >= _MOST_LEVELS or id(value) in self._being_made:
                return None  # a cycle, or deeper than anybody nests
            return self._resource(value, level + 1)["id"]
        return value


def _entity(workspace_path: str, name: str, kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"{workspace_path}/Entities/{name}",
        "name": name,
        "type": "Microsoft.SecurityInsights/Entities",
        "kind": kind,
        "properties": properties,
    }
