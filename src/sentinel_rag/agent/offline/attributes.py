"""Properties of entities that a question may ask for, and their values in an entity of a result.

Which of them a question asks for is decided from its frame; nothing here knows how values are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sentinel_rag.contracts.json_values import JsonValue


@dataclass(frozen=True, slots=True)
class Attribute:
    """`label` is how an answer calls it; `deep` ones are properties, the others are things of their own; `unnamed`
    kinds hold the attribute as a property only, their name never stands for it; properties `beside` the name are given
    too."""

    label: str
    kinds: tuple[str, ...]
    keys: tuple[str, ...] = ()
    named: bool = False
    deep: bool = True
    unnamed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("SHA-256", ("file", "filehash"), ("sha256", "filehashsha256", "hashes")),
    Attribute("SHA-1", ("file", "filehash"), ("sha1", "filehashsha1", "hashes")),
    Attribute("MD5", ("file", "filehash"), ("md5", "filehashmd5", "hashes")),
    Attribute(
        "hash",
        ("filehash", "file"),
        ("sha256", "sha1", "md5", "hashes", "value"),
        named=True,
        unnamed=("file",),
    ),
    Attribute(
        "Entra device id",
        ("host",),
        ("aaddeviceid",),
    ),
    Attribute(
        "application object id",
        ("oauth-application",),
        ("objectid", "oauthobjectid"),
    ),
    Attribute(
        "Entra object id",
        ("account", "mailbox"),
        ("aaduserid", "objectid"),
    ),
    Attribute("device id", ("host", "iotdevice"), ("deviceid",)),
    Attribute("display name", ("account", "mailbox"), ("displayname",)),
    Attribute(
        "sender IP",
        ("mailmessage",),
        ("senderip",),
    ),
    Attribute("network message id", ("mailmessage",), ("networkmessageid",)),
    Attribute(
        "internet message id",
        ("mailmessage",),
        ("internetmessageid", "networkmessageid"),
    ),
    Attribute("parent process id", ("process",), ("parentprocessid",)),
    Attribute("app id", ("cloud-application", "oauth-application"), ("appid",)),
    Attribute(
        "parent command line",
        ("process",),
        ("parentcommandline",),
    ),
    Attribute("parent process", ("process",), ("parentimage", "parentprocess", "parent")),
    Attribute(
        "operating system",
        ("host",),
        ("osfamily", "os", "osversion", "osplatform"),
    ),
    Attribute("directory", ("file",), ("directory",)),
    Attribute("SID", ("account",), ("sid",)),
    Attribute("process id", ("process",), ("processid", "pid")),
    Attribute("command line", ("process",), ("commandline",), named=True),
    Attribute("UPN", ("account",), ("upn", "userprincipalname"), named=True),
    Attribute(
        "sender",
        ("mailmessage",),
        ("sender", "p1sender", "p2sender"),
    ),
    Attribute(
        "email address",
        ("mailbox", "account"),
        ("mailboxprimaryaddress", "upn", "userprincipalname"),
        named=True,
    ),
    Attribute(
        "recipient",
        ("mailmessage", "mailbox"),
        ("recipient", "mailboxprimaryaddress", "upn"),
    ),
    Attribute("subject", ("mailmessage",), ("subject",)),
    Attribute(
        "resource id",
        ("azure-resource",),
        ("resourceid",),
        named=True,
    ),
    Attribute(
        "application",
        ("cloud-application", "oauth-application"),
        named=True,
        deep=False,
    ),
    Attribute("malware", ("malware",), named=True, deep=False),
    Attribute("registry key", ("registry-key", "registry-value"), named=True),
    Attribute("mailbox", ("mailbox",), named=True, deep=False),
    Attribute("URL", ("url", "dns"), named=True, deep=False),
    Attribute(
        "domain",
        ("account", "host", "dns", "url"),
        ("ntdomain", "upnsuffix", "dnsdomain", "domain"),
        named=True,
        unnamed=("account", "host"),
    ),
    Attribute("IP address", ("ip",), named=True, deep=False),
    Attribute(
        "file",
        ("file",),
        named=True,
        deep=False,
    ),
    Attribute("process", ("process",), ("imagefile", "filename"), named=True, deep=False),
    Attribute(
        "host",
        ("host",),
        named=True,
        deep=False,
    ),
    Attribute(
        "account",
        ("account",),
        named=True,
        deep=False,
        beside=("displayname",),
    ),
)
"""Most specific first: a question for "the SHA256 of the file" asks for the hash."""

HASH_LENGTHS = {"SHA-256": 64, "SHA-1": 40, "MD5": 32}
ADDRESSES = frozenset({"UPN", "email address"})
IDENTITIES = frozenset(
    {
        "SID",
        "UPN",
        "email address",
        "Entra object id",
        "Entra device id",
        "device id",
        "display name",
        "domain",
        "operating system",
        "app id",
    }
)
"""Labels of attributes that belong to one account, host or application and to no other."""
HASHES = frozenset({*HASH_LENGTHS, "hash"})
"""Labels of attributes that are hashes of files."""


def values_of(attribute: Attribute, entity: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """(JSON pointer inside the entity, value) of the attribute; nothing if the entity is of another kind."""
    if entity.get("kind") not in attribute.kinds:
        return
    found = False
    for key, value in entity.items():
        if plain_key(key) in attribute.keys and value not in (None, "", [], {}):
            for pointer, leaf in _leaves(f"/{escape(key)}", value):
                if _fits(attribute, pointer, leaf):
                    found = True
                    yield pointer, leaf
    if not found and entity.get("kind") == "filehash" and attribute.label in HASH_LENGTHS:
        name = entity.get("name")
        if isinstance(name, str) and _fits(attribute, "", name):
            yield "/name", name
    elif not found and _stands_by_name(attribute, entity):
        yield "/name", entity["name"]


def _stands_by_name(attribute: Attribute, entity: Mapping[str, JsonValue]) -> bool:
    name = entity.get("name")
    known = attribute.named and entity.get("kind") not in attribute.unnamed
    return known and bool(name) and _fits(attribute, "", name)


def _fits(attribute: Attribute, pointer: str, leaf: JsonValue) -> bool:
    if attribute.label in ADDRESSES:
        return isinstance(leaf, str) and "@" in leaf
    length = HASH_LENGTHS.get(attribute.label)
    return length is None or (isinstance(leaf, str) and re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", leaf) is not None)


def _leaves(pointer: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{pointer}/{escape(key)}", part)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _leaves(f"{pointer}/{index}", part)
    elif value not in (None, ""):
        yield pointer, value


def plain_key(key: str) -> str:
    """A property name without case and punctuation."""
    return "".join(character for character in key.lower() if character.isalnum())


def escape(key: str) -> str:
    """A key as a token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
