"""Where the queries of rule files stand, character by character."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.sentinel.kql_guard.rule_collections import (
    FilePlaces,
    FoundQuery,
    queries_in_json,
    queries_in_markdown,
    queries_in_yaml,
)

pytestmark = pytest.mark.requirement("TOOL-5")

Reader = Callable[[str], Iterable[FoundQuery]]
_letters = "abcXYZ019_ =|'\"(),.\u00e9\U0001f600"
_words = st.text(_letters, min_size=1, max_size=12).filter(lambda each: each == each.strip())
_lines = st.lists(_words, min_size=1, max_size=6)


def in_yaml_block(lines: list[str]) -> str:
    return "name: r\nquery: |\n" + "".join(f"    {line}\n" for line in lines) + "severity: High\n"


def in_markdown(lines: list[str]) -> str:
    return "# R\n\n- item\n\n  ```kql\n" + "".join(f"  {line}\n" for line in lines) + "  ```\n"


def in_json(lines: list[str]) -> str:
    return json.dumps([{"severity": "High", "query": "\n".join(lines)}], indent=2)


@pytest.mark.parametrize(
    ("write", "read"),
    [(in_yaml_block, queries_in_yaml), (in_markdown, queries_in_markdown), (in_json, queries_in_json)],
    ids=["yaml", "markdown", "json"],
)
@given(lines=_lines)
@settings(max_examples=60, deadline=None)
def test_every_character_is_found_where_it_stands(
    write: Callable[[list[str]], str], read: Reader, lines: list[str]
) -> None:
    text = write(lines)
    (found,) = read(text)
    assert found.kql.strip("\n") == "\n".join(lines)
    places = FilePlaces.of(text)
    rows = text.split("\n")
    for number, line in enumerate(found.kql.rstrip("\n").split("\n"), start=1):
        for column, character in enumerate(line, start=1):
            row, place = places.locate(found, number, column)
            shown = rows[row - 1][place - 1]
            assert shown == character or shown == "\\", (character, row, place)


def test_an_alias_that_leads_back_to_itself_ends() -> None:
    text = "rule: &r\n  name: x\n  query: T | take 1\n  again: *r\n"
    assert [each.kql for each in queries_in_yaml(text)] == ["T | take 1"]


def test_a_query_that_is_no_text_is_none() -> None:
    assert list(queries_in_yaml("query: 5\n---\nquery:\n  nested: {query: 'T | count'}\n")) != []
    assert [each.kql for each in queries_in_yaml("query: [1, 2]\n")] == []


def test_broken_yaml_is_told() -> None:
    with pytest.raises(yaml.YAMLError):
        list(queries_in_yaml("query: 'unclosed\n"))


def test_what_arm_computes_and_workbooks_fill_in_is_left_out() -> None:
    document = [
        {"query": "[concat('T', ' | take 1')]", "severity": "Low"},
        {"query": "T | where {Subscription}", "name": "a workbook's"},
        {"query": "T | take 2", "queryFrequency": "PT1H", "displayName": "A rule"},
    ]
    assert [(each.title, each.kql) for each in queries_in_json(json.dumps(document))] == [("A rule", "T | take 2")]


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    (found,) = queries_in_markdown("## Title\n```kusto\nT\n| take 1\n")
    assert (found.title, found.kql) == ("Title", "T\n| take 1")


def test_fences_of_other_languages_count_when_they_hold_kql() -> None:
    text = "```C#\nT\n| where x == 1\n```\n```sql\nSELECT 1\n```\n```\nT | take 1\n```\n```\n| where y == 2\n```\n"
    assert [each.kql for each in queries_in_markdown(text)] == ["T\n| where x == 1", "| where y == 2"]
