"""Filters that a question states: severity, status, order, how many rows, tactic, product, owner.

Each reader takes the sentence, returns what it found and the sentence with it blanked out. A filter that no tool can
express is told (`notes`) or asked back (`question`), never dropped in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.agent.offline.moments import NUMBER_WORDS
from sentinel_rag.agent.offline.vocabulary import is_known
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT, SEVERITIES

NO_CRITICAL = "Sentinel has no severity called Critical, its highest is High, so I took High."


@dataclass(frozen=True, slots=True)
class SeveritySlot:
    """Exactly `severity`, or everything from `minimum` up; `question` if the tools cannot express what was said."""

    severity: str | None = None
    minimum: str | None = None
    note: str = ""
    question: str = ""

    def arguments(self) -> dict[str, str]:
        if self.severity is not None:
            return {"severity": self.severity}
        return {} if self.minimum is None else {"min_severity": self.minimum}


_NAMES = {"high": 3, "critical": 3, "crit": 3, "medium": 2, "med": 2, "moderate": 2, "low": 1, "informational": 0}
_SEVERITY = r"(high|critical|crit|medium|med|moderate|low|informational)"
_UPWARD = re.compile(
    rf"\b(?:at\s+least|min(?:imum)?(?:\s+severity)?(?:\s+of)?|from)\s+{_SEVERITY}\b(?:\s+(?:severity|up(?:wards?)?))?"
    rf"|\b{_SEVERITY}(?:\s+severity)?\s*(?:\+(?!\s*\w)|(?:and|or|&)\s+(?:up(?:wards?)?|above|higher|"
    rf"more|over|greater|worse|beyond)\b)",
    re.IGNORECASE,
)
_ABOVE = re.compile(rf"\b(?:above|over|higher\s+than|more\s+than|worse\s+than)\s+{_SEVERITY}\b", re.IGNORECASE)
_DOWNWARD = re.compile(
    rf"\b{_SEVERITY}(?:\s+severity)?\s+(?:and|or|&)\s+(?:down|below|lower|less|under)\b"
    rf"|\b(?:at\s+most|below|under|lower\s+than|less\s+than)\s+{_SEVERITY}\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    rf"\b(?:not|no|except(?:\s+for)?|excluding|without|other\s+than|but\s+not|non)[\s-]+(?:the\s+)?{_SEVERITY}\b", re.I
)
_SEVERAL = re.compile(rf"\b{_SEVERITY}\s*(?:,|/|&|\+|\band\b|\bor\b)\s*{_SEVERITY}\b", re.IGNORECASE)
_ONE = re.compile(rf"\b{_SEVERITY}(?:s\b|\b)(?:[\s-]*(?:severity|sev|prio(?:rity)?)\b)?", re.IGNORECASE)
_SEVERITY_OF = re.compile(
    r"\b(?:severity|sev)\s*(?:is|=|:|of)?\s*(high|critical|medium|low|informational|info)\b", re.I
)
_INFO = re.compile(r"\binfo(?=[\s-]+(?:severity|sev|level|alerts?|incidents?)\b)", re.IGNORECASE)


def read_severity(text: str) -> tuple[SeveritySlot, str]:
    text = _INFO.sub("informational", text)
    if match := _DOWNWARD.search(text):
        said = " ".join(match[0].split())
        question = (
            f"The tools filter one severity or everything from one upward, not “{said}”. Which severity do you want?"
        )
        return SeveritySlot(question=question), text
    for pattern, build in ((_UPWARD, _from), (_ABOVE, _over), (_NEGATED, _without), (_SEVERAL, _both)):
        if match := pattern.search(text):
            words = [group.lower() for group in match.groups() if group]
            return build(words), _blank(text, match.start(), match.end())
    if match := (_SEVERITY_OF.search(text) or _ONE.search(text)):
        word = match[1].lower()
        level = 0 if word == "info" else _NAMES[word]
        return SeveritySlot(SEVERITIES[level], note=_note([word])), _blank(text, match.start(), match.end())
    return SeveritySlot(), text


def _from(words: list[str]) -> SeveritySlot:
    return _threshold(_NAMES[words[0]], words)


def _over(words: list[str]) -> SeveritySlot:
    level = _NAMES[words[0]] + 1
    if level >= len(SEVERITIES):
        return SeveritySlot(question="Nothing lies above High: it is Sentinel's highest severity. Do you want High?")
    return _threshold(level, words)


def _without(words: list[str]) -> SeveritySlot:
    level = _NAMES[words[0]]
    if level >= 2:
        return SeveritySlot(question="The tools filter from one severity upward. Which severity do you want to see?")
    return _threshold(level + 1, words)


def _both(words: list[str]) -> SeveritySlot:
    levels = sorted(_NAMES[word] for word in words)
    if levels == [2, 3]:
        return _threshold(2, words)
    return SeveritySlot(
        question="The tools filter one severity, or everything from one upward. Which of the two do you want first?"
    )


def _threshold(level: int, words: list[str]) -> SeveritySlot:
    if level == len(SEVERITIES) - 1:
        return SeveritySlot(SEVERITIES[level], note=_note(words))
    return SeveritySlot(minimum=SEVERITIES[level], note=_note(words))


def _note(words: list[str]) -> str:
    return NO_CRITICAL if any(word.startswith("crit") for word in words) else ""


_STATUS = tuple(
    (re.compile(pattern, re.IGNORECASE), status)
    for pattern, status in (
        (
            r"\b(?:nobody|no\s*one|none|not|never|n't|isn't|aren't|wasn't|hasn't been)\s+(?:yet\s+|"
            r"been\s+|has\s+)*clos\w+"
            r"(?:\s+yet)?|\b(?:unclosed|unresolved|not\s+(?:yet\s+)?(?:resolved|done)|still\s+open|"
            r"outstanding|pending|ongoing|"
            r"unhandled|un-?finished)\b",
            "open",
        ),
        (r"\bin[\s-]+progress\b|\b(?:being|currently)\s+(?:worked(?:\s+on)?|investigated|handled)\b", "in progress"),
        (r"\bopen\b", "open"),
        (r"\bactive\b", "active"),
        (r"\b(?:closed|finished|done)\b", "closed"),
        (r"\bresolved\b", "resolved"),
        (r"\bdismissed\b", "dismissed"),
        (r"\b(?:new|brand\s+new)\b(?!\s+(?:line|template))", "new"),
    )
)


def read_status(text: str) -> tuple[str | None, str]:
    """One of open, in progress, active, closed, resolved, dismissed, new; the planner turns it into a tool's value."""
    for pattern, status in _STATUS:
        if match := pattern.search(text):
            return status, _blank(text, match.start(), match.end())
    return None, text


_ORDERS = tuple(
    (re.compile(pattern, re.IGNORECASE), order)
    for pattern, order in (
        (
            r"\b(?:last|recently|latest)\s+(?:updated|changed|modified)(?:\s+first)?\b|"
            r"\b(?:that\s+)?changed\s+recently\b|"
            r"\b(?:by|sort(?:ed)?\s+by)\s+(?:last\s+)?(?:update|change)\w*\b",
            "updated",
        ),
        (
            r"\b(?:(?:sort|order|rank)(?:ed)?\s+)?by\s+severity\b|\b(?:highest|top)\s+severity(?:\s+first)?\b|"
            r"\b(?:most\s+(?:severe|critical|serious|important|urgent)|worst|highest\s+priority|"
            r"severest|severe(?:\s+ones?)?(?=\s+first))(?:\s+first)?\b",
            "severity",
        ),
        (r"\b(?:oldest|earliest)(?:\s+(?:ones?\s+)?first)?\b|\bascending\b|\bin\s+chronological\s+order\b", "oldest"),
        (r"\b(?:newest|latest|most\s+recent|recent(?:ly)?)(?:\s+(?:ones?\s+)?first)?\b|\bdescending\b", "newest"),
    )
)


def read_order(text: str) -> tuple[str | None, str]:
    """newest, oldest, severity or updated, as the schemas name them."""
    for pattern, order in _ORDERS:
        if match := pattern.search(text):
            return order, _blank(text, match.start(), match.end())
    return None, text


_COUNT_WORD = "|".join(
    sorted((word for word in NUMBER_WORDS if len(word) > 2 and " " not in word), key=len, reverse=True)
)
_N = rf"(\d{{1,4}}|{_COUNT_WORD})"
_NOT_TIME = r"(?!\s*(?:h|d|w|m|hrs?|hours?|days?|weeks?|months?|minutes?|mins?|years?)\b)(?![\w:./-])"
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:top|first|last|latest|newest|oldest|most\s+recent|next|limit(?:\s+to)?|only|"
        rf"max(?:imum)?|worst|best)\s+{_N}\b{_NOT_TIME}",
        rf"\b{_N}\s+(?=(?:most\s+recent|newest|latest|oldest|worst|top)\b)",
        rf"\b{_N}\s+(?:is|are)\s+enough\b",
        rf"\b(?:show|list|give|get|display|want|need)\s+(?:me\s+|us\s+)?(?:the\s+)?{_N}\s+"
        r"(?=(?:\w+\s+){0,3}(?:incidents?|alerts?|hosts?|accounts?|users?)\b)",
    )
)
_ALL = re.compile(
    r"\b(?:show|list|give|get|display|see|want|print|need)\s+(?:me\s+|us\s+)?(?:them\s+)?all\b|^\s*all\b"
    r"|\b(?:every|each)\s+(?=(?:\w+\s+)?(?:incident|alert)\b)|\ball\s+of\s+(?:them|it)\b|"
    r"\bthe\s+(?:full|complete|whole)\s+list\b",
    re.IGNORECASE,
)


def read_limit(text: str) -> tuple[int | None, bool, str]:
    """(rows, whether everything was asked for, rest). Numbers above the tools' maximum are cut to it."""
    for pattern in _LIMITS:
        if match := pattern.search(text):
            word = match[1].lower()
            count = int(word) if word.isdigit() else NUMBER_WORDS[word]
            if count >= 1:
                # "latest 10" says the order too, so only the number goes.
                return min(count, MAX_LIMIT), False, _blank(text, match.start(1), match.end(1))
    if match := _ALL.search(text):
        return MAX_LIMIT, True, text
    return None, False, text


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
        return match[1].upper(), _blank(text, match.start(), match.end())
    for tactic, pattern in _TACTIC_PATTERNS.items():
        near = (
            rf"(?:\b(?:tactic|phase|stage)\s+(?:is\s+|of\s+)?(?:{pattern})\b|"
            rf"\b(?:{pattern})(?=\s+(?:tactic|alerts?|incidents?|activity)\b))"
        )
        if match := re.search(near if tactic in _PLAIN_WORDS else rf"\b(?:{pattern})\b", text, re.IGNORECASE):
            return tactic, _blank(text, match.start(), match.end())
    return None, text


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
    for pattern, product, _ in PRODUCTS:
        if match := re.search(rf"\b(?:from|by|of)?\s*(?:{pattern})", text, re.IGNORECASE):
            return product, _blank(text, match.start(), match.end())
    return None, text


def older_product_name(product: str) -> str:
    """The name under which older rows hold a product; empty if it never had another."""
    return next((older for _, name, older in PRODUCTS if name == product), "")


_OWNER = re.compile(
    r"\b(?:owned|assigned|belong(?:s|ing)|given|handled|worked\s+on|investigated|managed|taken)\s+(?:by|to)\s+(?!me\b|us\b|incident|which|whom?\b|what\b)"
    r"((?:[\w.@+-]+)(?:\s+(?:(?:van|von|de|der|da|di|-)\s+)*[A-Z][\w.-]*){0,3})"
    r"|\bowner\s+(?:is\s+|=\s*|:\s*)((?:[\w.@+-]+)(?:\s+[A-Z][\w.-]*){0,3})",
)
_OWNER_NAME = re.compile(r"\b(?:owner|assignee|analyst)\s+([A-Za-z][\w.@+-]*(?:\s+[A-Z][\w.-]*){0,3})")
_POSSESSIVE = re.compile(
    r"\b([A-Z][\w.-]+(?:\s+[A-Z][\w.-]+)?)('s?|\u2019s?)\s+(?=(?:\w+\s+){0,2}(?:incidents?|cases?|tickets?|queue)\b)"
)
_MINE = re.compile(
    r"\b(?:my|mine)\s+(?:own\s+)?(?:open\s+|active\s+|new\s+)?(?:incidents?|cases?|queue)\b|\bassigned\s+to\s+me\b",
    re.I,
)
_NOBODY = re.compile(
    r"\bunassigned\b|\b(?:without|no)\s+(?:an\s+)?owner\b|\bassigned\s+to\s+(?:nobody|no\s*one)\b", re.I
)


@dataclass(frozen=True, slots=True)
class OwnerSlot:
    """Whose incidents: a name, "me" (whom we do not know), or nobody."""

    name: str | None = None
    mine: bool = False
    nobody: bool = False


def read_owner(text: str) -> tuple[OwnerSlot, str]:
    if match := _NOBODY.search(text):
        return OwnerSlot(nobody=True), _blank(text, match.start(), match.end())
    if match := _MINE.search(text):
        return OwnerSlot(mine=True), text
    if match := _OWNER.search(text):
        name = (match[1] or match[2]).rstrip(".")
        return OwnerSlot(name), _blank(text, match.start(), match.end())
    if (match := _OWNER_NAME.search(text)) and not is_known(match[1].split()[0]):
        return OwnerSlot(match[1].rstrip(".")), _blank(text, match.start(), match.end())
    if match := _POSSESSIVE.search(text):
        return OwnerSlot(match[1]), _blank(text, match.start(), match.end(1) + len(match[2]))
    return OwnerSlot(), text


def _blank(text: str, begin: int, end: int) -> str:
    return text[:begin] + " " * (end - begin) + text[end:]
