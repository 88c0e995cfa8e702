"""Identifiers in an answer: GUIDs, addresses, hashes, URLs, hosts, accounts, files, MITRE ids. Each names one thing
exactly, so it is right only where the same text stands in a result; defanged writings count as what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.grounding.atoms import Atom, Kind

_DOT = r"(?:\.|\[\.\]|\(\.\)|\[dot\])"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_EXTENSIONS = (
    r"exe|dll|sys|ps1|psm1|bat|cmd|vbs|vbe|js|jse|wsf|hta|lnk|scr|msi|zip|7z|rar|iso|img|docx?|docm|xlsx?|xlsm|pptx?|"
    r"pdf|txt|log|csv|json|ya?ml|md|html?|aspx?|php|jsp|sh|py|dmp|bin|dat|tmp|eml|msg|evtx|conf|cfg|ini|xml|db|pem|key"
)

_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        Kind.URL,
        re.compile(r"\b(?:https?|hxxps?|ftp|ldaps?)(?:://|\[:\]//|\[://\])[^\s<>\"'`“”|]+[^\s<>\"'`“”|.,;:!?)\]*]"),
    ),
    (
        Kind.PATH,
        re.compile(
            r"(?<![\w\\])(?:[A-Za-z]:\\|\\\\[\w.$-]+\\|%\w+%\\|HK(?:LM|CU|"
r"EY_[A-Z_]+)\\)[^\s\"'`<>|,;]*(?: [^\s\"'`<>|,;]*\\[^\s\"'`<>|,;]*)*"
            r"[^\s\"'`<>|,;.:!?)*\]]"
        ),
    ),
    (Kind.PATH, re.compile(r"(?<![\w/:.])/(?:[\w.@+-]+/)+[\w.@+-]*\w")),
    (Kind.GUID, re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b(?:_\d+)?")),
    (Kind.ACCOUNT, re.compile(rf"\b[A-Za-z0-9._%+'-]+(?:@|\[@\]|\(at\)){_LABEL}(?:{_DOT}{_LABEL})+\b")),
    (Kind.ACCOUNT, re.compile(r"\bS-1-\d+(?:-\d+)+\b")),
    (Kind.ACCOUNT, re.compile(r"\b[A-Za-z][\w.-]*\\[A-Za-z][\w.$-]*")),
    (
        Kind.ADDRESS,
        re.compile(rf"(?<![\w.-]){_OCTET}(?:{_DOT}{_OCTET}){{3}}(?:/\d{{1,2}})?(?!{_DOT}?\d)(?![\w-])"),
    ),
    (
        Kind.ADDRESS,
        re.compile(
            r"(?<![\w:.])(?=[0-9A-Fa-f:]*(?:::|[a-fA-F]|"
r"(?::[^:]+){6}))(?:(?:[0-9A-Fa-f]{1,4}:){2,7}(?::|[0-9A-Fa-f]{1,4})|"
r"(?:[0-9A-Fa-f]{1,4}:){1,6}(?::[0-9A-Fa-f]{1,4}){1,6}|"
            r"::(?:[0-9A-Fa-f]{1,4}:){0,5}[0-9A-Fa-f]{1,4})(?:/\d{1,3})?(?![\w:])"
        ),
    ),
    (Kind.HASH, re.compile(r"\b(?=[0-9a-fA-F]*\d)(?:[0-9a-fA-F]{128}|[0-9a-fA-F]{64}|[0-9a-fA-F]{40}|"
r"[0-9a-fA-F]{32})\b…?")),
    (Kind.HASH, re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,63}(?:…|\.{3})")),
    (Kind.TECHNIQUE, re.compile(r"\b(?:T\d{4}(?:\.\d{3})?|TA\d{4}|G\d{4}|S\d{4}|M\d{4}|DS\d{4})\b")),
    (Kind.FILE, re.compile(rf"(?<![\w\\/@.-])[\w][\w.$+-]*\.(?:{_EXTENSIONS})\b(?!\.\w)", re.IGNORECASE)),
    (Kind.DOMAIN, re.compile(rf"(?<![\w@.-])(?:{_LABEL}{_DOT})+[A-Za-z][A-Za-z0-9-]{{1,62}}\b(?![@\\(])")),
)  # fmt: skip

_TACTICS = (
    "reconnaissance", "resource development", "initial access", "execution", "persistence", "privilege escalation",
    "defense evasion", "defence evasion", "credential access", "discovery", "lateral movement", "collection",
    "command and control", "exfiltration", "impact",
)  # fmt: skip
_TACTIC = re.compile(
    r"\b(?:" + "|".join(name.title().replace(" And ", " [Aa]nd ") for name in _TACTICS) + r")\b"
    r"|\b(?:ResourceDevelopment|InitialAccess|PrivilegeEscalation|DefenseEvasion|CredentialAccess|LateralMovement|"
    r"CommandAndControl)\b"
)
_ABBREVIATED = frozenset({"e.g", "i.e", "u.s", "a.m", "p.m", "vs.the"})


def identifiers_in(text: str) -> Iterator[Atom]:
    """The identifiers of `text`, the more telling kind first where two share a place."""
    taken: list[Atom] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            atom = Atom(kind, match[0], match.start(), match.end(), refanged(match[0]))
            if match[0].lower() in _ABBREVIATED or any(atom.same_place(other) for other in taken):
                continue
            taken.append(atom)
    yield from taken


def tactics_in(text: str) -> Iterator[Atom]:
    """Names of ATT&CK tactics, as names: in capitals or as Sentinel writes them in one word."""
    for match in _TACTIC.finditer(text):
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", match[0])
        yield Atom(Kind.TACTIC, match[0], match.start(), match.end(), spaced)


def refanged(text: str) -> str:
    """An address or URL without what keeps it from being clicked."""
    text = re.sub(r"\[\.\]|\(\.\)|\[dot\]", ".", text)
    text = text.replace("[@]", "@").replace("(at)", "@").replace("[:]", ":").replace("[://]", "://")
    return re.sub(r"^hxxp", "http", text)


def tactic_writings(name: str) -> tuple[str, ...]:
    """How results write a tactic: in one word and in several."""
    spaced = name.lower().replace("defence", "defense")
    return (spaced, spaced.replace(" ", ""), spaced.replace("command and control", "c2"))
