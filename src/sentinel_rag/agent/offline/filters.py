"""Filters that a question states: status, order, how many rows.

Each reader takes the sentence, returns what it found and the sentence with it blanked out, so that no later reader
reads it again. `severities` and `qualifiers` hold the others.
"""

from __future__ import annotations

import re

from sentinel_rag.contracts.tool_schemas import MAX_LIMIT
from sentinel_rag.language.text import blank
from sentinel_rag.language.times.kinds import NUMBER_WORDS

_STATUS = tuple(
    (re.compile(pattern, re.IGNORECASE), status)
    for pattern, status in (
        (r"\bno\s+longer\s+(?:open|active)\b|\bnot\s+open(?:\s+any\s*more)?\b", "closed"),
        (r"\bno\s+longer\s+(?:closed|resolved)\b", "open"),
        (
            r"\b(?:nobody|no\s*one|none|not|never|n't|isn'?t|aren'?t|wasn'?t|weren'?t|hasn'?t been)\s+(?:yet\s+|"
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
            return status, blank(text, match.start(), match.end())
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
        (
            r"\blongest(?=\s+open)|\b(?:oldest|earliest)(?:\s+(?:ones?\s+)?first)?\b|\bascending\b|\bin\s+chronological\s+order\b",
            "oldest",
        ),
        (r"\b(?:newest|latest|most\s+recent|recent(?:ly)?)(?:\s+(?:ones?\s+)?first)?\b|\bdescending\b", "newest"),
    )
)


COUNTED_BY = re.compile(
    r"\b(?:how\s+many|counts?|numbers?|totals?|break(?:ing)?\s*(?:\w+\s+)?down|split|grouped)\b.*"
    r"\b(?:by|per|for\s+each)\s+(?P<field>severit(?:y|ies)|status(?:es)?)\b",
    re.IGNORECASE,
)
"""A count by what the totals of every list tell anyway."""


def read_order(text: str) -> tuple[str | None, str]:
    """newest, oldest, severity or updated, as the schemas name them."""
    for pattern, order in _ORDERS:
        if match := pattern.search(text):
            return order, blank(text, match.start(), match.end())
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
                return min(count, MAX_LIMIT), False, blank(text, match.start(1), match.end(1))
    if match := _ALL.search(text):
        return MAX_LIMIT, True, text
    return None, False, text
