"""Queries in YAML: `query:` of analytics and hunting rules as the Azure-Sentinel repository writes them.

Any mapping may hold one (a rule, a document of several, a function's `FunctionQuery`), so every `query` of a text is
taken; PyYAML tells where its value stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from sentinel_rag.sentinel.kql_guard.rule_collections.found_query import FoundQuery, matched_lines

_QUERY_KEYS = frozenset({"query", "functionquery", "kqlquery", "kql"})
_NAME_KEYS = ("name", "title", "displayname", "functionname", "id")


def queries_in_yaml(text: str) -> Iterator[FoundQuery]:
    """Every query of every document. Raises yaml.YAMLError where the file is no YAML."""
    for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
        yield from _queries_of(document, text, set())


def _queries_of(node: Any, text: str, seen: set[int]) -> Iterator[FoundQuery]:
    if id(node) in seen:  # an alias may point back to what holds it
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _queries_of(each, text, seen)
    if isinstance(node, yaml.MappingNode):
        named = {str(key.value).casefold(): value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        title = next((str(named[key].value) for key in _NAME_KEYS if isinstance(named.get(key), yaml.ScalarNode)), "")
        for key, value in node.value:
            is_query = isinstance(key, yaml.ScalarNode) and str(key.value).casefold() in _QUERY_KEYS
            if is_query and isinstance(value, yaml.ScalarNode) and value.tag == "tag:yaml.org,2002:str":
                if value.value.strip():
                    yield _found(title, value, text)
            else:
                yield from _queries_of(value, text, seen)


def _found(title: str, value: yaml.ScalarNode, text: str) -> FoundQuery:
    start = value.start_mark.index
    if value.style in ("|", ">"):
        start = text.find("\n", start) + 1
    kql = str(value.value)
    if value.style == "|":
        return FoundQuery(title, kql, _literal_lines(kql, text, start))
    return FoundQuery(title, kql, matched_lines(kql, text, start, value.end_mark.index))


def _literal_lines(kql: str, text: str, start: int) -> tuple[tuple[int, int], ...]:
    """A literal block keeps its lines, each behind an indent."""
    segments, index, place = [], 0, start
    for line in kql.split("\n"):
        end = text.find("\n", place)
        written = text[place : len(text) if end < 0 else end].removesuffix("\r")
        segments.append((index, place + max(len(written) - len(line), 0)))
        index += len(line) + 1
        place = len(text) if end < 0 else end + 1
    return tuple(segments)
