"""docs/kql-functions.md: what it lists as running is what the engine knows; what it lists as refused is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kql_duckdb.cli import functions_page
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import REFUSED
from sentinel_rag.workspace.queries import KqlError, TimeRange, translate

pytestmark = pytest.mark.requirement("DATA-4")


def test_the_page_lists_every_function_and_what_becomes_of_it(request: pytest.FixtureRequest) -> None:
    page = (Path(request.config.rootpath) / "docs" / "kql-functions.md").read_text(encoding="utf-8")
    table = functions_page().partition("| name |")[2]
    assert page.endswith(table)


def test_every_function_that_is_listed_as_refused_is_refused_by_its_name() -> None:
    answered = {}
    for name in sorted(name for name, _, status, _ in registry.table() if status == REFUSED):
        for query in (f"print {name}(1)", f"range x from 1 to 2 step 1 | summarize {name}(x)"):
            try:
                translate(query, {}, TimeRange())
            except KqlError as refusal:
                if name in str(refusal) and refusal.next_step:
                    continue
                answered[query] = str(refusal)
            else:
                answered[query] = "it is translated"
    assert answered == {}
