"""The phases of a response, in their order: how questions ask for one, and how sections of playbooks are headed.

A question for one phase of a playbook means the section that is headed with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PHASES: tuple[tuple[str, str, str], ...] = (
    # name, and word to search by; how questions say it; how headings say it
    (
        "triage",
        r"triag\w*|first\s+(?:checks?|questions?|steps?|look)|what\s+(?:do|should)\s+(?:i|we)\s+check",
        r"triage|identif\w+|first\b.*|assess\w*|validat\w+|verif\w+|detection|initial\b.*",
    ),
    (
        "scope",
        r"scop(?:e|ing)|how\s+far|extent|investigat\w*|hunt(?:ing)?\s+for",
        r"scope|scoping|investigat\w+|extent|analysis|hunting",
    ),
    (
        "containment",
        r"contain(?:ment|ing|ed|s)?|isolat\w*|quarantin\w*|block\w*|revok\w*|disabl\w*|cut\s+(?:it|them|the)\b|"
        r"stop\s+(?:it|them|the)\b|who\s+(?:\w+\s+){0,3}(?:decid\w*|approv\w*|authori[sz]\w*)",
        r"contain\w*|isolat\w+|immediate\b.*|stop\w*",
    ),
    ("eradication", r"eradicat\w*|remov(?:e|al|ing)|clean(?:\s*up|ing)?|get\s+rid", r"eradicat\w+|remov\w+|clean\w*"),
    ("recovery", r"recover\w*|restor\w*|back\s+to\s+normal|bring\s+\w+\s+back", r"recover\w*|restor\w+|return\b.*"),
    (
        "evidence",
        r"evidence|forensic\w*|preserv\w*|what\s+(?:do|should)\s+(?:i|we)\s+keep",
        r"evidence\b.*|forensic\w*|preserv\w+",
    ),
    (
        "closing",
        r"clos(?:e|ing)\s+(?:it|them|such|this|that|as|an?|the)|(?:the|about|on)\s+closing|classif\w*|lessons?\s+learn\w*",
        r"clos\w+|classif\w+|lessons\b.*|after\b.*|wrap\b.*",
    ),
)
PHASES = tuple(name for name, _, _ in _PHASES)
_ASKED = {name: re.compile(rf"\b(?:{asked})\b", re.IGNORECASE) for name, asked, _ in _PHASES}
_HEADED = {name: re.compile(rf"\W*(?:\d+[.)]?\s*)?(?:{headed})\b", re.IGNORECASE) for name, _, headed in _PHASES}


def phase_asked(text: str) -> str:
    """The phase that a question asks for; empty if it names none."""
    return next((name for name, pattern in _ASKED.items() if pattern.search(text)), "")


def phase_of(path: Sequence[str]) -> str:
    """The phase of a section by its headings, the innermost first; empty if they name none."""
    for heading in reversed(path):
        for name, pattern in _HEADED.items():
            if pattern.match(heading):
                return name
    return ""
