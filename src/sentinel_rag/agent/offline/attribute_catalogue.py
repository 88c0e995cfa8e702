"""The single properties that a question may ask for: "the SHA256 of file X", "which URL", as data.

Each says by which words it is recognised, on which kinds of entity it lies and under which property names (compared
without case and punctuation). Where a property is missing the entity's own name stands for it if `named`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attribute:
    """`label` is how an answer calls it; `deep` ones are properties, the others are things of their own; `unnamed`
    kinds hold the attribute as a property only, their name never stands for it; properties `beside` the name are given
    too."""

    label: str
    cue: str
    kinds: tuple[str, ...]
    keys: tuple[str, ...] = ()
    named: bool = False
    deep: bool = True
    unnamed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


_ENTRA = r"azure\s+active\s+directory(?:\s*\(\s*aad\s*\))?|azure\s*ad|aad|entra"
ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("SHA-256", r"sha[\s-]?256", ("file", "filehash"), ("sha256", "filehashsha256", "hashes")),
    Attribute("SHA-1", r"sha[\s-]?1", ("file", "filehash"), ("sha1", "filehashsha1", "hashes")),
    Attribute("MD5", r"md[\s-]?5", ("file", "filehash"), ("md5", "filehashmd5", "hashes")),
    Attribute(
        "hash",
        r"(?:file\s+)?hash(?:es)?",
        ("filehash", "file"),
        ("sha256", "sha1", "md5", "hashes", "value"),
        named=True,
        unnamed=("file",),
    ),
    Attribute(
        "Entra device id",
        rf"aad\s*device\s*ids?|(?:{_ENTRA})\s*device\s*ids?",
        ("host",),
        ("aaddeviceid",),
    ),
    Attribute(
        "application object id",
        r"o-?auth\s*object\s*ids?|app(?:lication)?(?:'s)?\s*object\s*ids?",
        ("oauth-application",),
        ("objectid", "oauthobjectid"),
    ),
    Attribute(
        "Entra object id",
        rf"aad\s*user\s*ids?|(?:{_ENTRA})\s*(?:user|object|account)?(?:'s)?\s*ids?|object\s*ids?",
        ("account", "mailbox"),
        ("aaduserid", "objectid"),
    ),
    Attribute("device id", r"(?:mde\s+|defender\s+)?(?:device|machine)\s*ids?", ("host", "iotdevice"), ("deviceid",)),
    Attribute("display name", r"display\s*names?|(?:full|real)\s+names?", ("account", "mailbox"), ("displayname",)),
    Attribute(
        "sender IP",
        r"senders?(?:'s)?\s*ips?(?:\s*address(?:es)?)?|ips?(?:\s+address(?:es)?)?\s+of\s+the\s+senders?",
        ("mailmessage",),
        ("senderip",),
    ),
    Attribute("network message id", r"network\s*message\s*ids?", ("mailmessage",), ("networkmessageid",)),
    Attribute(
        "internet message id",
        r"(?:internet\s*)?message\s*ids?",
        ("mailmessage",),
        ("internetmessageid", "networkmessageid"),
    ),
    Attribute("parent process id", r"parent\s+(?:process\s*ids?|pids?)", ("process",), ("parentprocessid",)),
    Attribute("app id", r"app(?:lication)?\s*ids?", ("cloud-application", "oauth-application"), ("appid",)),
    Attribute(
        "parent command line",
        r"parent(?:\s+process)?(?:'s)?\s+command[\s-]*lines?",
        ("process",),
        ("parentcommandline",),
    ),
    Attribute("parent process", r"parent\s+process(?:es)?", ("process",), ("parentimage", "parentprocess", "parent")),
    Attribute(
        "operating system",
        r"operating\s+systems?|os(?:\s+(?:version|family))?",
        ("host",),
        ("osfamily", "os", "osversion", "osplatform"),
    ),
    Attribute("directory", r"(?<!active )director(?:y|ies)|folders?", ("file",), ("directory",)),
    Attribute("SID", r"sids?|security\s+identifiers?", ("account",), ("sid",)),
    Attribute("process id", r"process\s*ids?|pids?", ("process",), ("processid", "pid")),
    Attribute("command line", r"command[\s-]*lines?|commands?|cmd\s*line", ("process",), ("commandline",), named=True),
    Attribute("UPN", r"upns?|user\s+principal\s+names?", ("account",), ("upn", "userprincipalname"), named=True),
    Attribute(
        "sender",
        r"senders?(?:'s)?(?:\s+(?:e-?mail\s+)?address(?:es)?)?|who\s+sent|sent\s+(?:by|from)",
        ("mailmessage",),
        ("sender", "p1sender", "p2sender"),
    ),
    Attribute(
        "email address",
        r"(?:primary\s+)?e?-?mail\s+address(?:es)?|primary\s+address(?:es)?|e-?mail\s+of|mailbox\s+(?:primary\s+)?address(?:es)?",
        ("mailbox", "account"),
        ("mailboxprimaryaddress", "upn", "userprincipalname"),
        named=True,
    ),
    Attribute(
        "recipient",
        r"recipients?|received\s+by|who\s+received|sent\s+to",
        ("mailmessage", "mailbox"),
        ("recipient", "mailboxprimaryaddress", "upn"),
    ),
    Attribute("subject", r"subjects?(?:\s+lines?)?", ("mailmessage",), ("subject",)),
    Attribute(
        "resource id",
        r"(?:azure\s+)?resource\s*ids?|azure\s+resources?",
        ("azure-resource",),
        ("resourceid",),
        named=True,
    ),
    Attribute(
        "application",
        r"(?:oauth\s+|cloud\s+)?app(?:lication)?s?(?:\s+names?)?(?!\s+window)",
        ("cloud-application", "oauth-application"),
        named=True,
        deep=False,
    ),
    Attribute(
        "malware", r"malware(?:\s+(?:name|family))?|threat\s+(?:name|family)", ("malware",), named=True, deep=False
    ),
    Attribute("registry key", r"registry\s+(?:keys?|values?)", ("registry-key", "registry-value"), named=True),
    Attribute("mailbox", r"mail\s*box(?:es)?", ("mailbox",), named=True, deep=False),
    Attribute("URL", r"urls?|links?|web\s*sites?|web\s*page", ("url", "dns"), named=True, deep=False),
    Attribute(
        "domain",
        r"(?:nt\s+|ad\s+|dns\s+)?domains?(?:\s+names?)?",
        ("account", "host", "dns", "url"),
        ("ntdomain", "upnsuffix", "dnsdomain", "domain"),
        named=True,
        unnamed=("account", "host"),
    ),
    Attribute("IP address", r"ips?|ip\s*addresse?s?|addresse?s?", ("ip",), named=True, deep=False),
    Attribute(
        "file",
        r"files?(?:\s*(?:names?|paths?))?|filenames?|(?:malicious\s+)?(?:tool|executable|script|"
        r"binary|payload)s?",
        ("file",),
        named=True,
        deep=False,
    ),
    Attribute(
        "process", r"process(?:es)?(?:\s+names?)?", ("process",), ("imagefile", "filename"), named=True, deep=False
    ),
    Attribute(
        "host",
        r"hosts?(?:\s*names?)?|hostnames?|machines?|devices?|servers?|computers?|endpoints?|"
        r"workstations?",
        ("host",),
        named=True,
        deep=False,
    ),
    Attribute(
        "account",
        r"accounts?(?:\s+names?)?|individuals?|persons?|employees?|users?(?:\s*names?)?|usernames?|identit(?:y|ies)|"
        r"who\s+(?:clicked|ran|executed|logged|signed|performed|used|opened|accessed|did)",
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
