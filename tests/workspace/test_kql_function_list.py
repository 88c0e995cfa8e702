"""docs/kql-functions.md: what it lists as running is what the translator knows; what it lists as refused is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from duckdb_kql import translate as library
from duckdb_kql.translate import functions

from sentinel_rag.workspace.kql import dialect
from sentinel_rag.workspace.kql.errors import KqlError
from sentinel_rag.workspace.kql.scope import Window
from sentinel_rag.workspace.kql.several_columns import expanded_functions
from sentinel_rag.workspace.kql.translation import translate

pytestmark = pytest.mark.requirement("DATA-4")

PARTS_OF_OPERATORS = {
    "array_sort_asc_together",
    "array_sort_desc_together",
    "series_axis",
    "series_bucket",
    "series_collect",
    "series_fill",
}


def is_kql_name(name: str) -> bool:
    """Parts of operators are in the same registries, under names with a space that no query can write."""
    return " " not in name


def listed(request: pytest.FixtureRequest, heading: str) -> set[str]:
    """The function names in the tables under one heading of the page."""
    text = (Path(request.config.rootpath) / "docs" / "kql-functions.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, heading
    return set(re.findall(r"`([a-z_0-9]+)`", section[1]))


def test_every_function_that_runs_is_listed_and_no_other(request: pytest.FixtureRequest) -> None:
    dialect.install()
    aggregates = {name for name in functions.AGGREGATE_FUNCTIONS if is_kql_name(name)}
    known = {*functions.SCALAR_FUNCTIONS, *library._SPECIAL_FORMS}
    scalars = {name for name in known if is_kql_name(name)} - aggregates
    several = expanded_functions()
    assert listed(request, "Scalar functions") == (scalars | several.scalars) - PARTS_OF_OPERATORS
    assert listed(request, "Aggregates") == (aggregates | several.aggregates) - PARTS_OF_OPERATORS


def test_every_function_that_is_listed_as_refused_is_refused_by_its_name(request: pytest.FixtureRequest) -> None:
    answered = {}
    for name in sorted(listed(request, "Refused by name")):
        for query in (f"print {name}(1)", f"range x from 1 to 2 step 1 | summarize {name}(x)"):
            try:
                translate(query, {}, Window())
            except KqlError as refusal:
                if name in str(refusal) and refusal.next_step:
                    continue
                answered[query] = str(refusal)
            else:
                answered[query] = "it is translated"
    assert answered == {}
