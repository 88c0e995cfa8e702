"""Queries in JSON: analytics rules and saved searches as the portal exports them (ARM templates).

An object holds a rule's query when it has a `query` and something that only rules have; queries of workbooks, whose
text is filled in by the portal, are not taken, nor are texts that ARM computes (`[concat(...)]`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sentinel_rag.sentinel.kql_guard.rule_collections.found_query import FoundQuery

_RULE_KEYS = frozenset({"severity", "tactics", "queryfrequency", "triggeroperator", "category", "suppressionduration"})
_TOKEN = re.compile(r'"query"\s*:\s*("(?:[^"\\]|\\.)*")', re.IGNORECASE)
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")


def queries_in_json(text: str) -> Iterator[FoundQuery]:
    """Every rule's query in order. Raises ValueError where the file is no JSON."""
    titles = dict(_rules_of(json.loads(text)))
    for token in _TOKEN.finditer(text):
        kql = json.loads(token[1])
        if kql in titles:
            yield FoundQuery(titles[kql], kql, _segments(token[1], token.start(1)))


def _rules_of(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _rules_of(each)
    if isinstance(value, dict):
        keys = {str(key).casefold(): each for key, each in value.items()}
        kql = keys.get("query")
        if isinstance(kql, str) and kql.strip() and not kql.startswith("[") and _RULE_KEYS & keys.keys():
            yield kql, str(keys.get("displayname") or keys.get("name") or "")
        for each in value.values():
            yield from _rules_of(each)


def _segments(token: str, start: int) -> tuple[tuple[int, int], ...]:
    """Each escape is longer in the file than in the query, so a new run starts behind it."""
    segments, shorter = [(0, start + 1)], 1
    for escape in _ESCAPE.finditer(token):
        shorter += len(escape[0]) - 1
        segments.append((escape.end() - shorter, start + escape.end()))
    return tuple(segments)
