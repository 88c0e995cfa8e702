"""What people say in several words and playbooks in one: an account that is "taken over" is in their "takeover".

Only the words that are searched by are changed; the question stays as it was asked.
"""

from __future__ import annotations

import re

_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"\b{said}\b", re.IGNORECASE), written)
    for said, written in (
        (r"(?:take|takes|taken|taking|took)[\s-]+(?:\w+[\s-]+){0,2}?over", "takeover"),
        (
            r"(?:hijack(?:ed|s|ing)?)(?=\s+(?:an?\s+|the\s+|our\s+)?(?:\w+\s+)?(?:accounts?|users?|identit\w+))",
            "takeover",
        ),
        (r"(?<=\baccount\swas\s)(?:hijacked|hacked|stolen)", "takeover"),
        (r"(?<=\baccount\sis\s)(?:hijacked|hacked|stolen)", "takeover"),
        (r"(?:lock|locks|locked|locking)[\s-]+out", "lockout"),
        (r"(?:brute)[\s-]+forc(?:e|es|ed|ing)", "brute force"),
    )
)


def as_playbooks_say(topic: str, text: str) -> str:
    """`topic` with each phrase of `text` in the word that playbooks have for it; the phrase's own words leave it."""
    words = topic.split()
    for pattern, written in _PHRASES:
        for said in pattern.findall(text):
            parts = {part.lower() for part in re.findall(r"\w+", said)}
            words = [word for word in words if word.lower() not in parts] + written.split()
    return " ".join(dict.fromkeys(words))
