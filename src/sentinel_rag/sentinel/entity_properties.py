"""What a reader is shown of an entity beside its name: the properties that identify it, in snake_case and as text.

Providers write one property under several names (Sid, SID); here it has one. A property that is not there is left out.
How an entity is named and when two are one is the business of `entity_identity`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.sentinel.entities import Entity
from sentinel_rag.sentinel.entity_identity import file_path, user_principal_name
from sentinel_rag.sentinel.results import one_line

LONGEST_TEXT = 1000
MOST_OTHER_VALUES = 10

_SHOWN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "account": {
        "account_name": ("AccountName", "Name"),
        "display_name": ("DisplayName",),
        "sid": ("Sid", "SID"),
        "aad_user_id": ("AadUserId",),
        "nt_domain": ("NTDomain",),
        "dns_domain": ("DnsDomain", "DomainName"),
    },
    "host": {
        "host_name": ("HostName", "NetBiosName"),
        "dns_domain": ("DnsDomain",),
        "os_family": ("OSFamily",),
        "os_version": ("OSVersion",),
        "device_id": ("MdatpDeviceId",),
        "aad_device_id": ("AadDeviceId",),
        "azure_id": ("AzureID",),
    },
    "ip": {"address": ("Address",)},
    "url": {"url": ("Url",)},
    "file": {"directory": ("Directory",)},
    "filehash": {"algorithm": ("Algorithm",), "value": ("Value", "HashValue")},
    "process": {"process_id": ("ProcessId",), "command_line": ("CommandLine",)},
    "mailbox": {
        "address": ("MailboxPrimaryAddress",),
        "upn": ("Upn",),
        "display_name": ("DisplayName",),
        "aad_user_id": ("AadId", "ExternalDirectoryObjectId"),
    },
    "mailmessage": {
        "sender": ("Sender", "P2Sender", "P1Sender"),
        "recipient": ("Recipient",),
        "subject": ("Subject",),
        "sender_ip": ("SenderIP",),
        "network_message_id": ("NetworkMessageId",),
        "internet_message_id": ("InternetMessageId",),
    },
    "cloud-application": {"app_id": ("AppId",)},
    "oauth-application": {
        "app_id": ("OAuthAppId",),
        "object_id": ("OAuthObjectId",),
        "publisher": ("PublisherName",),
    },
    "azure-resource": {"resource_id": ("ResourceId",)},
    "registry-value": {"value": ("Value",)},
    "security-group": {"sid": ("SID", "Sid")},
    "iotdevice": {"device_id": ("DeviceId",)},
}
_HASHES = ("sha256", "sha1", "md5")


def shown_properties(entity: Entity) -> dict[str, str]:
    """Property -> text of at most LONGEST_TEXT characters; names in `contracts.tool_schemas`."""
    found = {name: entity.text(*sources) for name, sources in _SHOWN.get(entity.kind, {}).items()}
    match entity.kind:
        case "account":
            found["upn"] = user_principal_name(entity)
            found["display_name"] = found["display_name"] or _written_name(entity)
        case "file":
            found |= _hashes_of(entity)
            found["created_time"] = _created_time(entity)
        case "process":
            image, parent = entity.part("ImageFile"), entity.part("ParentProcess")
            found["created_time"] = _created_time(entity)
            found["image_file"] = "" if image is None else file_path(image)
            if parent is not None:
                found["parent_command_line"] = parent.text("CommandLine")
                found["parent_process_id"] = parent.text("ProcessId")
    return {name: one_line(text, LONGEST_TEXT) for name, text in found.items() if text}


def merged_properties(entities: Iterable[Entity]) -> dict[str, JsonValue]:
    """The properties of one entity that several alerts name, as most of them write it and completed by the others.

    `other_values` {property -> [value]} holds values that differ (one command line, many process ids), at most
    MOST_OTHER_VALUES a property, and is there only if the alerts disagree by more than case.
    """
    writings = Counter(tuple(shown_properties(entity).items()) for entity in entities)
    by_weight = [dict(writing) for writing, _ in sorted(writings.items(), key=lambda item: (-item[1], -len(item[0])))]
    merged = dict(by_weight[0]) if by_weight else {}
    # Completed by those that agree first: a process id and a creation time of two processes are no process.
    for writing in sorted(by_weight, key=lambda other: not agree(merged, other)):
        merged = {**writing, **merged}
    others: dict[str, JsonValue] = {}
    for name, text in merged.items():
        values = {writing[name].casefold(): writing[name] for writing in reversed(by_weight) if name in writing}
        values.pop(text.casefold())
        if values:
            others[name] = list(reversed(values.values()))[:MOST_OTHER_VALUES]
    return {**merged, "other_values": others} if others else {**merged}


def agree(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """False if a property that both have has two values."""
    return all(one.get(name, text) == text for name, text in other.items())


def _written_name(entity: Entity) -> str:
    """The name of a person that a provider wrote where others write the login: `Name` with a space in it."""
    name = entity.text("Name")
    return name if " " in name else ""


def _hashes_of(entity: Entity) -> dict[str, str]:
    """The first hash of each algorithm in FileHashes, whose elements may be references."""
    hashes: dict[str, str] = {}
    for part in entity.parts("FileHashes"):
        algorithm = part.text("Algorithm").lower().replace("-", "")
        if algorithm in _HASHES:
            hashes.setdefault(algorithm, part.text("Value", "HashValue"))
    return hashes


def _created_time(entity: Entity) -> str:
    """When the file or process came into being; under a verdict, CreatedTimeUtc is when Defender wrote it down."""
    if entity.text("CreationTimeUtc") or entity.text("LastVerdict"):
        return entity.text("CreationTimeUtc")
    return entity.text("CreatedTimeUtc")
