"""Every shipped template under Microsoft's parser: it binds, and yields the embedded workspace's own columns."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.kql_guard import KqlGuard, OfficialParser
from sentinel_rag.sentinel.kql_guard.rules import TIME
from sentinel_rag.sentinel.templates.template_registry import KqlTemplate, load_templates
from sentinel_rag.workspace.workspace import Workspace

TEMPLATES = load_templates()
OWN = {
    **dict.fromkeys(["own_table_rows", "own_table_counts", "own_table_sums"], ("KS204", "unknown_table")),
    **dict.fromkeys(["watchlist_items", "watchlist_alerts"], ("KS211", "unknown_function")),
}
"""Templates over what a workspace alone knows, a table of its own or its watchlists, with what is said of that name."""


@pytest.fixture(scope="module")
def parser() -> Iterator[OfficialParser]:
    with microsoft_parser() as opened:
        yield opened


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("templates") / "empty")
    yield opened
    opened.close()


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_it_binds_and_its_columns_are_the_workspace_s(
    template: KqlTemplate, parser: OfficialParser, workspace: Workspace
) -> None:
    kql = template.sample_query()
    analysis = parser.analyze_now(kql, workspace.schema())
    errors = {each.code for each in analysis.diagnostics if each.severity == "Error"}
    if template.name in OWN:
        assert errors == {OWN[template.name][0]}
        return
    assert errors == set()
    answered = [(column.name, column.type) for column in workspace.query(kql).columns]
    assert analysis.result is not None
    assert list(analysis.result) == answered


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_it_would_pass_the_guard_as_freeform(
    template: KqlTemplate, parser: OfficialParser, workspace: Workspace
) -> None:
    """What we wrote ourselves uses nothing that freeform KQL may not; the registry gives its span and cap beside it."""

    async def check() -> None:
        guard = KqlGuard(parser)
        report = await guard.check(template.sample_query(), workspace.schema(), time_bounded=True, row_cap=10_000)
        if template.name in OWN:
            assert {each.code for each in report.errors} == {OWN[template.name][1]}
            return
        assert report.errors == ()
        assert set(template.tables) <= report.tables
        if template.window_on == TIME:
            bounded = await guard.check(template.sample_query(), workspace.schema(), row_cap=10_000)
            assert "filtered by" not in " ".join(each.message for each in bounded.errors)

    anyio.run(check)


def test_all_shipped_templates_are_meant() -> None:
    assert len(TEMPLATES) >= 56
