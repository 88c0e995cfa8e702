"""Wishes for invented data: refused in the agreed words, and answered with real rows instead."""

from __future__ import annotations

import re

SAMPLE_SENTENCE = "I'm not allowed to provide example data to prevent context poisoning. Let me query some real data..."
_SAMPLE = re.compile(
    r"\b(?:(?:(?<!for )examples?|samples?|fake|dummy|mock|synthetic|made[\s-]?up|invented|fictional|fictitious|"
    r"placeholder|demo|test(?=\s+(?:data|incidents?|alerts?|rows?|records?|logs?)\b))"
    r"(?:\s+(?:of|some|an?|for|the|security|sentinel))*\s+(?:\w+\s+){0,2}(?:data|incidents?|"
    r"alerts?|records?|rows?|accounts?|hosts?|entities|events?|logs?|cases?)"
    r"|(?:fake|dummy|made[\s-]?up|invented|fictional)\s+ones?"
    r"|(?:invent|make\s+up|fabricate|simulate|generate)\s+(?:(?:some|an?|a\s+few|me|\d+|two|three|four|five|ten|several|"
    r"fake|test|new|sample|example|the)\s+)*(?:data|incidents?|alerts?|logs?|attacks?))\b"
    r"|^\W*(?:please\s+)?(?:give|show)\s+(?:me\s+|us\s+)?(?:an?\s+|some\s+)?(?:examples?|samples?)\W*$",
    re.IGNORECASE,
)


def wants_sample(text: str) -> bool:
    """True if invented data is asked for."""
    return _SAMPLE.search(text) is not None


def without_sample_words(text: str) -> str:
    """The question behind a wish for examples: "show me some example incidents" → "show me some incidents"."""
    text = re.sub(
        r"\b(?:examples?|samples?|fake|dummy|mock|synthetic|made[\s-]?up|invented|fictional|"
        r"fictitious|placeholder|demo|test(?=\s+(?:data|incidents?|alerts?|rows?|records?|logs?)\b))\b"
        r"(?:\s+of\b)?|\bfor\s+(?:an?\s+|the\s+|our\s+)?(?:demo|test|testing|training|presentation|slides?)\b",
        " ",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(r"\b(?:invent|make\s+up|fabricate|simulate|generate|create)\b", "show", text, flags=re.IGNORECASE)
    return " ".join(text.split())
