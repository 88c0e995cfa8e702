"""Entities of an incident as the REST API serves them, and their friendly names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sentinel_rag.workspace.incidents.bodies import Row, derived_guid, json_list, json_object, wire_time

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

RENAMED: Mapping[str, Mapping[str, str]] = {
    "Account": {
        "Name": "accountName",
        "NTDomain": "ntDomain",
        "UPNSuffix": "upnSuffix",
        "Sid": "sid",
        "AadTenantId": "aadTenantId",
        "AadUserId": "aadUserId",
        "ObjectGuid": "objectGuid",
        "PUID": "puid",
        "DnsDomain": "dnsDomain",
        "IsDomainJoined": "isDomainJoined",
        "DisplayName": "displayName",
        "Host": "hostEntityId",
    },
    "Host": {
        "HostName": "hostName",
        "DnsDomain": "dnsDomain",
        "NTDomain": "ntDomain",
        "NetBiosName": "netBiosName",
        "OSFamily": "osFamily",
        "OSVersion": "osVersion",
        "AzureID": "azureID",
        "OMSAgentID": "omsAgentID",
        "IsDomainJoined": "isDomainJoined",
    },
    "Ip": {"Address": "address", "Location": "location", "ThreatIntelligence": "threatIntelligence"},
    "Url": {"Url": "url"},
    "File": {"Directory": "directory", "Name": "fileName", "Host": "hostEntityId", "FileHashes": "fileHashEntityIds"},
    "FileHash": {"Algorithm": "algorithm", "Value": "hashValue"},
    "Process": {
        "ProcessId": "processId",
        "CommandLine": "commandLine",
        "CreationTimeUtc": "creationTimeUtc",
        "ElevationToken": "elevationToken",
        "Account": "accountEntityId",
        "Host": "hostEntityId",
        "ImageFile": "imageFileEntityId",
        "ParentProcess": "parentProcessEntityId",
    },
    "DnsResolution": {"DomainName": "domainName", "IpAddress": "ipAddressEntityIds"},
    "AzureResource": {"ResourceId": "resourceId"},
    "CloudApplication": {"AppId": "appId", "Name": "appName", "InstanceName": "instanceName"},
    "Malware": {"Name": "malwareName", "Category": "category"},
    "RegistryKey": {"Hive": "hive", "Key": "key"},
    "RegistryValue": {"Key": "keyEntityId", "Name": "valueName", "Value": "valueData", "ValueType": "valueType"},
    "SecurityGroup": {"DistinguishedName": "distinguishedName", "SID": "sid", "ObjectGuid": "objectGuid"},
    "Mailbox": {
        "MailboxPrimaryAddress": "mailboxPrimaryAddress",
        "DisplayName": "displayName",
        "Upn": "upn",
        "ExternalDirectoryObjectId": "externalDirectoryObjectId",
    },
    "MailMessage": {
        "Recipient": "recipient",
        "Sender": "p2Sender",
        "P1Sender": "p1Sender",
        "P2Sender": "p2Sender",
        "SenderIP": "senderIP",
        "Subject": "subject",
        "Urls": "urls",
        "NetworkMessageId": "networkMessageId",
        "InternetMessageId": "internetMessageId",
        "DeliveryAction": "deliveryAction",
    },
}
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
