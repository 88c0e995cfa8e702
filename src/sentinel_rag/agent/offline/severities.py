"""The severity that a question states: exactly one, or everything from one upward.

What the tools cannot express ("low and below", "all but high") comes back as a question and is not approximated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.text import blank

NO_CRITICAL = "Sentinel has no severity called Critical, its highest is High, so I took High."


@dataclass(frozen=True, slots=True)
class SeveritySlot:
    """Exactly `severity`, or everything from `minimum` up; `question` if the tools cannot express what was said."""

    severity: str | None = None
    minimum: str | None = None
    note: str = ""
    question: str = ""

    def arguments(self) -> dict[str, str]:
        """As arguments of a tool."""
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
_HI_LO = re.compile(r"\b(hi|lo)(?=[\s-]*(?:sev|severity|prio|priority)\b)", re.IGNORECASE)
_INFO = re.compile(r"\binfo(?=[\s-]+(?:severity|sev|level|alerts?|incidents?)\b)", re.IGNORECASE)


def read_severity(text: str) -> tuple[SeveritySlot, str]:
    """The severity that is said, and the rest."""
    text = _INFO.sub("informational", text)
    text = _HI_LO.sub(lambda match: {"hi": "high", "lo": "low"}[match[1].lower()], text)
    if match := _DOWNWARD.search(text):
        said = " ".join(match[0].split())
        question = (
            f"The tools filter one severity or everything from one upward, not “{said}”. Which severity do you want?"
        )
        return SeveritySlot(question=question), text
    for pattern, build in ((_UPWARD, _from), (_ABOVE, _over), (_NEGATED, _without), (_SEVERAL, _both)):
        if match := pattern.search(text):
            words = [group.lower() for group in match.groups() if group]
            return build(words), blank(text, match.start(), match.end())
    if match := (_SEVERITY_OF.search(text) or _ONE.search(text)):
        word = match[1].lower()
        level = 0 if word == "info" else _NAMES[word]
        return SeveritySlot(SEVERITIES[level], note=_note([word])), blank(text, match.start(), match.end())
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
