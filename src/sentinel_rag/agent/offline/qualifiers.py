"""What narrows a question beside severity and status: tactic or technique, product, owner."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.agent.offline.vocabulary import is_known
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.language.text import blank

TACTICS = word_list(
    """
    Reconnaissance ResourceDevelopment InitialAccess Execution Persistence PrivilegeEscalation DefenseEvasion
    CredentialAccess Discovery LateralMovement Collection CommandAndControl Exfiltration Impact
    """
)
"""MITRE ATT&CK enterprise tactics in the order of the matrix, as Sentinel spells them."""
_TACTIC_PATTERNS = {tactic: re.sub(r"(?<=[a-z])(?=[A-Z])", r"[\\s_-]*", tactic) for tactic in TACTICS} | {
    "CommandAndControl": r"command[\s_-]*(?:and|&)[\s_-]*control|c2|c&c",
    "DefenseEvasion": r"defen[sc]e[\s_-]*evasion",
    "PrivilegeEscalation": r"privilege[\s_-]*escalation|privesc",
    "Exfiltration": r"(?:data[\s_-]*)?exfiltration",
    "Reconnaissance": r"reconnaissance|recon",
}
_PLAIN_WORDS = frozenset({"Execution", "Discovery", "Collection", "Impact", "Persistence"})
_TECHNIQUE = re.compile(r"\b(?:technique\s+|mitre\s+)?(T\d{4}(?:\.\d{3})?)\b", re.IGNORECASE)


def read_tactic(text: str) -> tuple[str | None, str]:
    """A tactic as Sentinel spells it, or a technique id. Plain words count only next to "alerts" or "tactic"."""
    if match := _TECHNIQUE.search(text):
        return match[1].upper(), blank(text, match.start(), match.end())
    for tactic, pattern in _TACTIC_PATTERNS.items():
        near = (
            rf"(?:\b(?:tactic|phase|stage)\s+(?:is\s+|of\s+)?(?:{pattern})\b|"
            rf"\b(?:{pattern})(?=\s+(?:tactic|alerts?|incidents?|activity)\b))"
        )
        if match := re.search(near if tactic in _PLAIN_WORDS else rf"\b(?:{pattern})\b", text, re.IGNORECASE):
            return tactic, blank(text, match.start(), match.end())
    return None, text


TECHNIQUES = {
    "phishing": "T1566",
    "phish": "T1566",
    "spearphishing": "T1566",
    "ransomware": "T1486",
    "brute force": "T1110",
    "password spray": "T1110",
    "password spraying": "T1110",
    "credential dumping": "T1003",
    "kerberoasting": "T1558",
    "dcsync": "T1003",
    "powershell": "T1059",
    "scheduled task": "T1053",
    "pass the hash": "T1550",
}
"""Words for which MITRE ATT&CK has a technique of that name (sub-techniques under their parent)."""


PRODUCTS: tuple[tuple[str, str, str], ...] = (
    (
        r"(?:microsoft\s+)?defender\s+for\s+endpoint|\bmde\b|\bmdatp\b|defender\s+atp",
        "Defender for Endpoint",
        "Defender Advanced Threat Protection",
    ),
    (
        r"(?:microsoft\s+)?defender\s+for\s+identity|\bmdi\b|azure\s+atp",
        "Defender for Identity",
        "Azure Advanced Threat Protection",
    ),
    (
        r"(?:microsoft\s+)?defender\s+for\s+office(?:\s*365)?|office(?:\s*365)?\s+defender|\bmdo\b",
        "Defender for Office",
        "Office 365 Advanced Threat Protection",
    ),
    (
        r"(?:microsoft\s+)?defender\s+for\s+cloud\s+apps|\bmcas\b|\bmda\b",
        "Defender for Cloud Apps",
        "Cloud App Security",
    ),
    (
        r"(?:microsoft\s+)?defender\s+for\s+cloud\b|azure\s+security\s+cent(?:er|re)",
        "Defender for Cloud",
        "Azure Security Center",
    ),
    (
        r"(?:azure\s+ad|entra(?:\s+id)?|aad)\s+identity\s+protection|entra\s+id\s+protection|"
        r"identity\s+protection",
        "Identity Protection",
        "",
    ),
    (r"(?:microsoft\s+)?(?:365\s+defender|defender\s+xdr)", "365 Defender", "Defender XDR"),
    (
        r"(?:microsoft|azure)\s+sentinel(?=\s+(?:analytics|rules?|alerts?)\b)|"
        r"(?<=from )(?:azure\s+|microsoft\s+)?sentinel\b",
        "Sentinel",
        "",
    ),
)
"""How people say a product, how it is called today, and the older name that rows may still carry."""


def read_product(text: str) -> tuple[str | None, str]:
    """The product as it is called today, and the rest."""
    for pattern, product, _ in PRODUCTS:
        if match := re.search(rf"\b(?:from|by|of)?\s*(?:{pattern})", text, re.IGNORECASE):
            return product, blank(text, match.start(), match.end())
    return None, text


def older_product_name(product: str) -> str:
    """The name under which older rows hold a product; empty if it never had another."""
    return next((older for _, name, older in PRODUCTS if name == product), "")


_OWNER = re.compile(
    r"\b(?:owned|assigned|belong(?:s|ing)|given|handled|worked\s+on|investigated|managed|taken)\s+(?:by|to)\s+(?!me\b|us\b|incident|which|whom?\b|what\b|#?\d+\b)"
    r"((?:[\w.@+-]+)(?:\s+(?:(?:van|von|de|der|da|di|-)\s+)*[A-Z][\w.-]*){0,3})"
    r"|\bowner\s+(?:is\s+|=\s*|:\s*)((?:[\w.@+-]+)(?:\s+[A-Z][\w.-]*){0,3})",
)
_OWNER_NAME = re.compile(r"\b(?:owner|assignee|analyst)\s+([A-Za-z][\w.@+-]*(?:\s+[A-Z][\w.-]*){0,3})")
_POSSESSIVE = re.compile(
    r"\b([A-Z][\w.-]+(?:\s+[A-Z][\w.-]+)?)('s?|\u2019s?)\s+(?=(?:\w+\s+){0,2}(?:incidents?|cases?|tickets?|queue)\b)"
)
_DID = re.compile(
    r"\b(?:did|has|have|does)\s+([A-Z\u00c0-\u00de][\w.'\u2019-]*(?:\s+[A-Z\u00c0-\u00de][\w.'\u2019-]*){0,3})\s+"
    r"(clos\w+|resolv\w+|handl\w+|own\w*|work\w*\s+on)\b"
)
_WORKING_ON = re.compile(
    r"\bwhat(?:['’]?s|\s+(?:is|was|are))\s+(?!(?:he|she|it|anyone|someone|the|who)\b)"
    r"([A-Za-z][\w.@+-]*(?:\s+[A-Z][\w.-]*)?)\s+working\s+on\b"
)
_MINE = re.compile(
    r"\b(?:my|mine)\s+(?:own\s+)?(?:open\s+|active\s+|new\s+)?(?:incidents?|cases?|queue)\b|\bassigned\s+to\s+me\b",
    re.I,
)
_NOBODY = re.compile(
    r"\bunassigned\b|\b(?:without|no)\s+(?:an\s+)?owner\b|"
    r"\b(?:owned|assigned|handled|managed|taken|worked\s+on|belonging)\s+(?:by|to)\s+(?:nobody|no[\s-]*one|none)\b|"
    r"\bowner\s+(?:is\s+|=\s*|:\s*)?(?:nobody|no[\s-]*one|none|empty|blank)\b|"
    r"\b(?:nobody|no[\s-]*one)\s+(?:owns|has\s+taken|handles|works\s+on)\b|"
    r"\b(?:not|aren['’]t|isn['’]t)\s+(?:yet\s+|been\s+|currently\s+)*(?:assigned|owned)\b"
    r"(?:\s+(?:to|by)\s+any\s*(?:one|body)\b|(?!\s+(?:to|by)\b))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class OwnerSlot:
    """Whose incidents: a name, "me" (whom we do not know), or nobody."""

    name: str | None = None
    mine: bool = False
    nobody: bool = False


def read_owner(text: str) -> tuple[OwnerSlot, str]:
    """Whose incidents are meant, and the rest."""
    if match := _NOBODY.search(text):
        return OwnerSlot(nobody=True), blank(text, match.start(), match.end())
    if match := _MINE.search(text):
        return OwnerSlot(mine=True), text
    if match := _OWNER.search(text):
        name = (match[1] or match[2]).rstrip(".")
        return OwnerSlot(name), blank(text, match.start(), match.end())
    if match := _WORKING_ON.search(text):
        return OwnerSlot(match[1]), blank(text, match.start(), match.end())
    if match := _DID.search(text):
        verb = "closed" if re.match(r"clos|resolv", match[2], re.IGNORECASE) else ""
        rest = blank(text, match.start(), match.end())
        return OwnerSlot(match[1]), rest[: match.start()] + verb.ljust(match.end() - match.start()) + rest[
            match.end() :
        ]
    if (match := _OWNER_NAME.search(text)) and not is_known(match[1].split()[0]):
        return OwnerSlot(match[1].rstrip(".")), blank(text, match.start(), match.end())
    if match := _POSSESSIVE.search(text):
        return OwnerSlot(match[1]), blank(text, match.start(), match.end(1) + len(match[2]))
    return OwnerSlot(), text
