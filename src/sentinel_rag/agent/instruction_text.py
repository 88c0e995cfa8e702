"""Recognises text of rows that addresses an assistant or commands whoever reads it, so that an answer can say so.

It only ever adds a sentence to an answer: no plan, no argument and no fact depends on it, and text that it misses is
data all the same. It looks for phrases, not for intent; benign titles and command lines hold next to none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.row_text import read_plainly
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue

_LONGEST = 6_000
_ANY = r"(?:[\w'’,]+\s+){0,5}"
_STRONG = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:ignore|disregard|forget|override|overrule|bypass)\s+{_ANY}"
        r"(?:instructions?|rules|prompts?|polic(?:y|ies)|guidelines|directives|guardrails|restrictions)\b",
        r"\b(?:system|developer)\s+prompt\b",
        r"\b(?:new|updated|further|additional|following)\s+instructions?\s*(?::|for\s+(?:the\s+)?(?:ai|assistant|model))",
        r"\byou\s+are\s+(?:now|no\s+longer|an?\s+(?:ai|helpful|unrestricted)|in\s+\w+\s+mode)\b",
        r"\b(?:developer|maintenance|debug|god|unrestricted)\s+mode\b(?=.*\b(?:you|your|reveal|may|now)\b)",
        r"</(?:data|context|tool_result|untrusted|documents?|system|user)>|<\|?(?:im_start|system|assistant)\|?>|\[/?inst\]",
        r"\b(?:call|invoke|execute|run|use)\s+(?:the\s+)?(?:tools?\s+|function\s+|template\s+)?"
        r"(?:run_\w*kql\w*|query_\w+|get_\w+|list_\w+|raw_\w+|update_incident|add_incident_comment)\b",
        r"\bnote\s+(?:to|for)\s+(?:the\s+)?(?:ai|llm|assistant|model|agent|chat\s*bot)\b",
        r"\b(?:reveal|print|repeat|show|output)\s+(?:me\s+)?your\s+(?:instructions?|prompt|rules|configuration|secrets?)\b",
    )
)
_IN_A_VALUE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:^|[\n\"'`“‘(<\[]|[.;:]\s)\s*(?:assistant|system|user|developer|human|tool|analyst)\s*:",
        r"\[\s*\d{1,4}\s*\]|\]\(",
        rf"\b(?:close|re-?open|(?:re-?|un)?assign|approve|classify|dismiss|resolve|mark|escalate|label|treat)\s+{_ANY}"
        r"(?:it|this|that|them|all|everything|incidents?|alerts?|cases?|tickets?|as)\b",
        r"\b(?:incident|alert|case|ticket)\s+#?\d+\s+(?:is|was|has|may|can|should|must)\b",
        r"\b(?:i|we)\s+(?:have|has|had|'ve)\s+(?:already\s+)?(?:verified|confirmed|checked|reviewed|approved|closed)\b",
    )
)
"""Phrases that mean little in an analyst's sentence, but claim or command where the value of a row says them."""
_WEAK = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:ai|llm|assistant|chat\s*bot|copilot|language\s+model|gpt|ai[\s-]note|dear\s+(?:agent|model))\b",
        rf"\b(?:close|mark|set|classify|resolve|dismiss|treat|label)\s+{_ANY}"
        r"(?:benign\w*|false\s*positives?|closed|harmless|resolved|safe)\b",
        r"\b(?:do\s+not|don't|never|without)\s+(?:report|mention|tell|show|escalat|inform|alert|warn)\w*\b",
        rf"\b(?:send|post|forward|upload|e-?mail)\s+{_ANY}(?:results?|rows?|answers?|outputs?|conversation)\s+to\b",
        r"\b(?:i\s+have\s+(?:already\s+)?approved|already\s+approved|(?:authori[sz]ed|approved|planned)\s+"
        r"(?:penetration|red[\s-]team|pen)[\s-]*test)\b",
        r"\b(?:authori[sz]ed|approved|sanctioned)\s+(?:security\s+|internal\s+)?(?:audit|exercise|assessment|activity)\b",
        r"\bas\s+(?:the|an|your)\s+(?:administrator|admin|developer|operator)\b",
        r"\b(?:please|must|immediately)\s+(?:close|mark|run|execute|call|delete|disable|send|approve)\b",
    )
)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A text that reads like an instruction, and where it stands."""

    run: ToolRun
    pointer: str
    text: str


def reads_like_instruction(text: str) -> bool:
    """True if one phrase that hardly occurs otherwise is found, or two of the weaker kind."""
    flat = read_plainly(text, limit=_LONGEST).replace("_", " ")
    whole = read_plainly(text, limit=_LONGEST)
    if any(pattern.search(whole) or pattern.search(flat) for pattern in _STRONG):
        return True
    return sum(pattern.search(flat) is not None for pattern in _WEAK) >= 2


def may_instruct(text: str, *, value: bool = False) -> bool:
    """True at the first phrase that could steer a reader, the weak ones included: for texts that are kept for later and
    are better lost than obeyed. `value` for a text of a row, False for a sentence about rows."""
    whole = read_plainly(text, limit=_LONGEST)
    flat = whole.replace("_", " ")
    patterns = (*_STRONG, *_WEAK, *_IN_A_VALUE) if value else (*_STRONG, *_WEAK)
    return any(pattern.search(whole) or pattern.search(flat) for pattern in patterns)


def suspicions(runs: Sequence[ToolRun], *, most: int = 4) -> list[Suspicion]:
    """Texts of the rows that read like instructions, each text once, in the order of the rows."""
    found: dict[str, Suspicion] = {}
    for run in runs:
        for place, row in enumerate(run.rows):
            for pointer, text in _texts(row, f"/rows/{place}"):
                known = read_plainly(text, limit=_LONGEST)
                if len(found) < most and known not in found and reads_like_instruction(text):
                    found[known] = Suspicion(run, pointer, text)
    return list(found.values())


def _texts(value: JsonValue, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if len(value) >= 12:
            yield pointer, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts(part, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from _texts(part, f"{pointer}/{place}")
