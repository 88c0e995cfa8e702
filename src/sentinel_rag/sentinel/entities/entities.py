"""Entities that an alert names: what is read of each from its JSON, which entries are the same one, how often each
appears."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.sentinel.response_bodies import load_json
from sentinel_rag.sentinel.workspace_view import one_line

# An element `{"$ref": "7"}` stands for the object with `"$id": "7"` anywhere in the same row, so every object is taken
# once, by its id, wherever it was written. Nothing is dropped: unknown kinds stay, text that does not parse is
# reported.
_KINDS = {
    "cloudapplication": "cloud-application",
    "azureresource": "azure-resource",
    "dnsresolution": "dns",
    "registrykey": "registry-key",
    "registryvalue": "registry-value",
    "securitygroup": "security-group",
    "oauthapplication": "oauth-application",
    "cloudlogonsession": "cloud-logon-session",
    "cloudlogonrequest": "cloud-logon-request",
}
"""Spellings of the REST API and of other providers, without hyphens, to the names of ENTITY_KINDS."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity: its kind in lower case and its properties, references inside them resolved one level at a time."""

    kind: str
    properties: Mapping[str, Any]
    objects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def text(self, *names: str) -> str:
        """The first of the named properties that is a non-empty string or number, else the empty string."""
        for name in names:
            value = self.properties.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
        return ""

    def part(self, name: str) -> Entity | None:
        """A nested entity (the image file of a process), its reference resolved; None where there is none."""
        return self._resolved(self.properties.get(name))

    def parts(self, name: str) -> tuple[Entity, ...]:
        """The nested entities of a list (the hashes of a file), references resolved, what is no object left out."""
        values = self.properties.get(name)
        resolved = map(self._resolved, values if isinstance(values, list) else ())
        return tuple(part for part in resolved if part is not None)

    def _resolved(self, value: Any) -> Entity | None:
        if not isinstance(value, Mapping):
            return None
        target = self.objects.get(str(value["$ref"])) if "$ref" in value else value
        return None if target is None else Entity(kind_of(target), target, self.objects)


@dataclass(frozen=True, slots=True)
class AlertEntities:
    """The entities of one row. `readable` is False if the text is no JSON list of objects; `dangling` counts
    references to ids that the row does not hold."""

    entities: tuple[Entity, ...] = ()
    readable: bool = True
    dangling: int = 0


def kind_of(element: Mapping[str, Any]) -> str:
    """The kind, as ENTITY_KINDS spells it; `unknown` for an object that does not tell."""
    raw = str(element.get("Type") or element.get("$type") or element.get("kind") or "").strip().lower()
    return _KINDS.get(raw.replace("-", "").replace("_", ""), raw) or "unknown"


def parse_entities(text: Any) -> AlertEntities:
    """The entities of a cell: JSON text, or a value that was decoded already."""
    if isinstance(text, str):
        if not text.strip():
            return AlertEntities()
        try:
            elements = load_json(text)
        except ValueError:
            return AlertEntities(readable=False)
    else:
        elements = text
    if elements is None:
        return AlertEntities()
    if isinstance(elements, Mapping):
        elements = [elements]
    if not isinstance(elements, list):
        return AlertEntities(readable=False)

    objects, without_id, references = _walk(elements)
    entities = [Entity(kind_of(element), element, objects) for element in (*objects.values(), *without_id)]
    dangling = sum(reference not in objects for reference in references)
    return AlertEntities(tuple(entities), True, dangling)


def _walk(elements: list[Any]) -> tuple[dict[str, Mapping[str, Any]], list[Mapping[str, Any]], list[str]]:
    """All entity objects by `$id`, those without one, and the ids that top-level elements refer to.

    An object is an entity if it stands in the list or carries a Type; parts such as a host's logged-on users do not.
    """
    objects: dict[str, Mapping[str, Any]] = {}
    without_id: list[Mapping[str, Any]] = []
    references: list[str] = []
    pending: list[tuple[Any, bool]] = [(element, True) for element in reversed(elements)]
    while pending:
        value, top = pending.pop()
        if isinstance(value, list):
            pending.extend((item, False) for item in reversed(value))
        elif isinstance(value, Mapping):
            if "$ref" in value:
                if top:
                    references.append(str(value["$ref"]))
                continue
            if top or value.get("Type"):
                if value.get("$id") is None:
                    without_id.append(value)
                else:
                    objects.setdefault(str(value["$id"]), value)
            pending.extend((item, False) for item in reversed(list(value.values())) if isinstance(item, list | Mapping))
    return objects, without_id, references


# Accounts and hosts come under several spellings (a UPN here, a SID there, a display name in `Name`), so they are
# merged by what is unique: directory id, domain SID, UPN; device id, FQDN. A bare `DOMAIN\name` or host name joins a
# merged identity only if exactly one fits. Well-known SIDs (S-1-5-18) are shared by all machines and merge nothing.
_DOMAIN_SID = re.compile(r"S-\d+-\d+(?:-\d+){4,}", re.IGNORECASE)
_NAME_PROPERTIES: dict[str, tuple[str, ...]] = {
    "ip": ("Address",),
    "url": ("Url",),
    "filehash": ("Value", "HashValue"),
    "mailbox": ("MailboxPrimaryAddress", "Upn", "DisplayName"),
    "mailmessage": ("Subject", "InternetMessageId", "NetworkMessageId"),
    "mailcluster": ("Query", "Urn", "ClusterByValue"),
    "cloud-application": ("Name", "AppName", "InstanceName", "AppId"),
    "oauth-application": ("Name", "OAuthAppId", "OAuthObjectId"),
    "azure-resource": ("ResourceId", "ResourceName"),
    "dns": ("DomainName",),
    "malware": ("Name", "MalwareName"),
    "security-group": ("DistinguishedName", "SID", "Sid", "ObjectGuid"),
    "iotdevice": ("DeviceName", "DeviceId"),
    "cloud-logon-session": ("SessionId",),
    "cloud-logon-request": ("RequestId",),
}
_IDENTIFYING: dict[str, tuple[str, ...]] = {
    "account": ("Name", "AccountName", "DisplayName", "UserPrincipalName", "Sid", "AadUserId", "ObjectGuid", "PUID"),
    "host": ("HostName", "NetBiosName", "FQDN", "AzureID", "OMSAgentID", "MdatpDeviceId", "AadDeviceId"),
    "mailbox": ("Upn", "DisplayName", "AadId", "ExternalDirectoryObjectId"),
    "mailmessage": ("NetworkMessageId", "InternetMessageId", "Sender", "P1Sender", "P2Sender", "Recipient", "SenderIP"),
    "cloud-application": ("AppId", "InstanceId"),
    "oauth-application": ("OAuthAppId", "OAuthObjectId", "PublisherName"),
    "azure-resource": ("ResourceName",),
    "security-group": ("SID", "Sid", "ObjectGuid"),
    "iotdevice": ("DeviceId", "DeviceName"),
    "mailcluster": ("Urn", "ClusterByValue"),
}


@dataclass(frozen=True, slots=True)
class EntityIdentity:
    """`name` for people; `strong` keys are each unique to one entity, `weak` ones may be shared; `rank` is how good
    the name is (higher wins when identities merge)."""

    kind: str
    name: str
    rank: int
    strong: frozenset[str]
    weak: frozenset[str]


def entity_name(entity: Entity) -> str:
    """The name shown for this entity; never empty."""
    return identity_of(entity).name


def identity_of(entity: Entity) -> EntityIdentity:
    """Name and keys from the properties of one alert's entity."""
    match entity.kind:
        case "account":
            return _account(entity)
        case "host":
            return _host(entity)
        case "ip":
            identity = _plain(entity, entity.text("Address"))
            return replace(identity, strong=frozenset({f"name:{folded_value(identity.name)}"}))
        case "file":
            return _plain(entity, file_path(entity))
        case "process":
            return _plain(entity, _process_name(entity))
        case "registry-key":
            return _plain(entity, _registry_key(entity))
        case "registry-value":
            key = entity.part("Key")
            path = _registry_key(key) if key is not None else ""
            return _plain(entity, "\\".join(part for part in (path, entity.text("Name", "ValueName")) if part))
        case "mailmessage":
            identity = _plain(entity, entity.text(*_NAME_PROPERTIES["mailmessage"]))
            message_id = entity.text("NetworkMessageId", "InternetMessageId")
            if not message_id:
                return identity
            # Many messages share a subject; each has its own message id.
            return EntityIdentity(
                entity.kind, identity.name, 1, frozenset({f"id:{message_id.casefold()}"}), frozenset()
            )
        case kind:
            return _plain(entity, entity.text(*_NAME_PROPERTIES.get(kind, ())))


def identifying_values(entity: Entity) -> frozenset[str]:
    """Every value that names this entity, case folded: what an analyst may type to find it."""
    values = {entity_name(entity)}
    names = (*_NAME_PROPERTIES.get(entity.kind, ()), *_IDENTIFYING.get(entity.kind, ()))
    values.update(entity.text(name) for name in names)
    if entity.kind == "account":
        identity = _account(entity)
        values.update(key.partition(":")[2] for key in (*identity.strong, *identity.weak))
    elif entity.kind == "host":
        values.add(_fqdn(entity))
    elif entity.kind == "mailbox":
        # A short account name finds the person's mailbox, as it finds the account of a UPN.
        addresses = (entity.text("MailboxPrimaryAddress"), entity.text("Upn"))
        values.update(address.partition("@")[0] for address in addresses if "@" in address)
    elif entity.kind == "ip":
        values.add(folded_value(entity.text("Address")))
    elif entity.kind == "url":
        values.add(_url_host(entity.text("Url")))
    elif entity.kind == "file":
        values.add(entity.text("Name", "FileName"))
    elif entity.kind == "process":
        image = entity.part("ImageFile")
        values.add(entity.text("CommandLine"))
        if image is not None:
            values.update((file_path(image), image.text("Name", "FileName")))
    elif entity.kind not in _NAME_PROPERTIES:
        values.update(entity.text(name) for name in entity.properties if not name.startswith("$"))
    return frozenset(value.casefold() for value in values if value)


def folded_value(value: str) -> str:
    """A value for comparison: case folded, an address in its shortest form (IPv6 has many)."""
    try:
        return str(ip_address(value.strip()))
    except ValueError:
        return value.casefold()


def user_principal_name(account: Entity) -> str:
    """The UPN, put together from Name and UPNSuffix where an alert has only those; empty if there is none."""
    name, suffix = _account_name(account), account.text("UPNSuffix")
    return account.text("UserPrincipalName") or (f"{name}@{suffix}" if name and suffix and "@" not in name else "")


def file_path(file: Entity) -> str:
    """Directory and name as one path; whichever of them there is, or the empty string."""
    directory, name = file.text("Directory"), file.text("Name", "FileName")
    if not directory or not name:
        return name or directory
    separator = "/" if "/" in directory and "\\" not in directory else "\\"
    return f"{directory.rstrip(separator)}{separator}{name}"


def _account_name(account: Entity) -> str:
    return account.text("AccountName", "Name")  # Name holds a display name in some alerts


def _account(entity: Entity) -> EntityIdentity:
    name = _account_name(entity)
    upn = user_principal_name(entity)
    domain = entity.text("NTDomain", "DomainName", "DnsDomain")
    qualified = f"{domain}\\{name}" if domain and name else ""
    sid, directory_id = entity.text("Sid", "SID"), entity.text("AadUserId", "ObjectGuid")

    strong = set()
    if directory_id:
        strong.add(f"directory:{directory_id.casefold()}")
    if _DOMAIN_SID.fullmatch(sid):
        strong.add(f"sid:{sid.casefold()}")
    if upn:
        strong.add(f"upn:{upn.casefold()}")
    weak = {f"name:{qualified.casefold()}"} if qualified else set()
    if not strong and not weak:
        weak = {f"only:{(name or sid or entity.text('DisplayName')).casefold()}"}
    shown = (upn, qualified, name, entity.text("DisplayName"), sid, directory_id, entity.text("FriendlyName"))
    return _named(entity, shown, frozenset(strong), frozenset(weak))


def _host(entity: Entity) -> EntityIdentity:
    fqdn = _fqdn(entity)
    bare = entity.text("HostName", "NetBiosName")
    strong = {f"fqdn:{fqdn.casefold()}"} if fqdn else set()
    for prefix, key in (("device", "MdatpDeviceId"), ("azure", "AzureID"), ("agent", "OMSAgentID")):
        if entity.text(key):
            strong.add(f"{prefix}:{entity.text(key).casefold()}")
    weak = {f"name:{bare.casefold()}"} if bare else set()
    shown = (fqdn, bare, entity.text("AzureID"), entity.text("MdatpDeviceId"), entity.text("FriendlyName"))
    return _named(entity, shown, frozenset(strong), frozenset(weak))


def _fqdn(entity: Entity) -> str:
    name, domain = entity.text("HostName", "NetBiosName"), entity.text("DnsDomain")
    if entity.text("FQDN"):
        return entity.text("FQDN")
    if "." in name:
        return name
    return f"{name}.{domain}" if name and domain else ""


def _named(entity: Entity, shown: tuple[str, ...], strong: frozenset[str], weak: frozenset[str]) -> EntityIdentity:
    for place, name in enumerate(shown):
        if name:
            return EntityIdentity(entity.kind, name, len(shown) - place, strong, weak)
    return _plain(entity, "")


def _plain(entity: Entity, name: str) -> EntityIdentity:
    """An entity whose name is its identity; one without a name keeps its kind and whatever text it has."""
    if not name:
        texts = [entity.text(key) for key in entity.properties if not key.startswith("$") and key != "Type"]
        name = entity.text("FriendlyName", "Name") or next((text for text in texts if text), f"(unnamed {entity.kind})")
    folded = name if entity.kind == "url" else name.casefold()
    return EntityIdentity(entity.kind, name, 1, frozenset({f"name:{folded}"}), frozenset())


def _process_name(entity: Entity) -> str:
    command_line = entity.text("CommandLine")
    if command_line:
        return command_line
    image = entity.part("ImageFile")
    path = file_path(image) if image is not None else ""
    process_id = entity.text("ProcessId")
    return path or (f"process {process_id}" if process_id else "")


def _registry_key(entity: Entity) -> str:
    return "\\".join(part for part in (entity.text("Hive"), entity.text("Key")) if part)


def _url_host(url: str) -> str:
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:  # a bracket without its pair
        return ""


# Union-find over strong keys; afterwards each identity that has only weak keys joins the one merged group that owns the
# same weak key, if there is exactly one.
@dataclass(slots=True)
class TalliedEntity:
    """One entity with the distinct alerts (SystemAlertId) that name it, and how each of them writes it."""

    kind: str
    name: str
    alerts: set[str] = field(default_factory=set)
    sightings: list[Entity] = field(default_factory=list)


class EntityTally:
    """Add entities with their alert, then read the entities of a kind, most alerts first."""

    def __init__(self) -> None:
        self._sightings: dict[str, list[tuple[EntityIdentity, Entity, str]]] = defaultdict(list)

    def add(self, entities: Iterable[Entity], alert_id: str) -> None:
        for entity in entities:
            self._sightings[entity.kind].append((identity_of(entity), entity, alert_id))

    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted(self._sightings))

    def ranked(self, kind: str) -> list[TalliedEntity]:
        """All entities of `kind`, by distinct alerts falling, then by name."""
        sightings = self._sightings.get(kind, [])
        groups = merge_identities([identity for identity, _, _ in sightings])
        entities: dict[int, TalliedEntity] = {}
        names: dict[int, Counter[tuple[int, str]]] = defaultdict(Counter)
        for (identity, sighting, alert_id), group in zip(sightings, groups, strict=True):
            entity = entities.setdefault(group, TalliedEntity(kind, identity.name))
            entity.alerts.add(alert_id)
            entity.sightings.append(sighting)
            names[group][(identity.rank, identity.name)] += 1
        for group, entity in entities.items():
            # The best kind of name, then the commonest spelling, then a stable one.
            entity.name = max(names[group].items(), key=lambda item: (item[0][0], item[1], item[0][1]))[0][1]
        return sorted(entities.values(), key=lambda entity: (-len(entity.alerts), entity.name.casefold()))


def merge_identities(identities: Sequence[EntityIdentity]) -> list[int]:
    """A group number for each identity; equal numbers are one entity. All identities are of one kind."""
    parents = list(range(len(identities)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    first_with: dict[str, int] = {}
    owners: dict[str, list[int]] = defaultdict(list)
    for index, identity in enumerate(identities):
        for key in identity.strong:
            parents[root(index)] = root(first_with.setdefault(key, index))
        if identity.strong:
            for key in identity.weak:
                owners[key].append(index)
    first_weak: dict[str, int] = {}
    for index, identity in enumerate(identities):
        if identity.strong:
            continue
        for key in identity.weak:
            groups = {root(owner) for owner in owners[key]}
            target = groups.pop() if len(groups) == 1 else first_weak.setdefault(key, index)
            parents[root(index)] = root(target)
    return [root(index) for index in range(len(identities))]


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
