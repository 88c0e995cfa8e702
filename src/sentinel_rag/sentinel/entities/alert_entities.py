"""The entities that an alert names, each with its properties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.sentinel.entities.entities import (
    AlertEntities,
    Entity,
    entity_name,
    file_path,
    folded_value,
    identifying_values,
    user_principal_name,
)
from sentinel_rag.sentinel.results import one_line

# Providers write one property under several names (Sid, SID); here it has one. A property that is not there is left
# out.
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


LONGEST_COMPACT_NAME = 80

# What a reader looks for first; hashes and clusters are the many that a cut may lose.
_KIND_ORDER = (
    "account",
    "host",
    "ip",
    "mailbox",
    "mailmessage",
    "url",
    "process",
    "file",
    "dns",
    "azure-resource",
    "cloud-application",
)
_PLACES = {kind: place for place, kind in enumerate(_KIND_ORDER)}


@dataclass(slots=True)
class ShownEntity:
    """One entity of an alert; `place` says how early a reader wants it."""

    kind: str
    name: str
    place: int
    properties: dict[str, str] = field(default_factory=dict)


def distinct_entities(parsed: AlertEntities, searched: str = "") -> list[ShownEntity]:
    """Each entity once, however often the row writes it; the one that `searched` names first, then by kind."""
    wanted = folded_value(searched)
    named: dict[tuple[str, str], list[ShownEntity]] = {}
    for entity in parsed.entities:
        kind, name = entity.kind, one_line(entity_name(entity), LONGEST_TEXT)
        place = -1 if wanted and wanted in identifying_values(entity) else _PLACES.get(kind, len(_PLACES))
        properties = shown_properties(entity)
        same_name = named.setdefault((kind, name), [])
        shown = next((other for other in same_name if agree(other.properties, properties)), None)
        if shown is None:
            shown = ShownEntity(kind, name, place)
            same_name.append(shown)
        shown.properties |= properties
        shown.place = min(shown.place, place)
    return sorted((shown for shown_ones in named.values() for shown in shown_ones), key=lambda shown: shown.place)


def full_entities(entities: list[ShownEntity], most: int) -> list[JsonValue]:
    """`{kind, name, ...}` with every identifying property, texts whole up to LONGEST_TEXT."""
    return [{"kind": shown.kind, "name": shown.name, **shown.properties} for shown in entities[:most]]


def compact_entities(entities: list[ShownEntity], most: int) -> list[JsonValue]:
    """`{kind, name}` only, names cut: a hundred alerts in full are 34 000 tokens."""
    names = dict.fromkeys((shown.kind, one_line(shown.name, LONGEST_COMPACT_NAME)) for shown in entities)
    return [{"kind": kind, "name": name} for kind, name in list(names)[:most]]
