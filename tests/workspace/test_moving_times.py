"""A question whose times move is translated once and answered as if its times stood in the text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.template_registry import load_templates
from sentinel_rag.workspace.kql import translation_cache
from sentinel_rag.workspace.kql.errors import KqlError
from sentinel_rag.workspace.kql.moving_times import without_moving_times
from sentinel_rag.workspace.kql.scope import Window
from sentinel_rag.workspace.kql.translation_cache import TranslationCache
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

END = datetime(2025, 3, 12, 15, tzinfo=UTC)
T = "datetime(2025-03-11T00:00:00.0000000Z)"


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace.open(tmp_path_factory.mktemp("moving"))
    workspace.generate(EstateOptions(days=10, events=2000, end=END))
    yield workspace
    workspace.close()


def query_of(name: str, days: int) -> str:
    template = load_templates()[name]
    values = {
        parameter.name: "alice@contoso.example" if parameter.name in ("user", "account", "actor") else "10.0.0.1"
        for parameter in template.parameters
        if parameter.required
    }
    return template.render(values, TimeWindow(END - timedelta(days=days), END))


@pytest.mark.parametrize("name", load_templates())
def test_each_template_is_answered_the_same_with_its_times_in_the_text(estate: Workspace, name: str) -> None:
    for days in (9, 2):
        kql = query_of(name, days)
        assert without_moving_times(kql) is not None
        # Quotes that are not looked through keep the times in the text.
        plain = estate.query(f"let unused = ```x```;\n{kql}")
        moving = estate.query(kql)
        assert moving.columns == plain.columns
        assert sorted(map(str, moving.rows)) == sorted(map(str, plain.rows))


def test_another_time_is_another_answer_from_the_same_translation(
    estate: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    translated: list[str] = []

    def counted(kql: str, *arguments: object) -> object:
        translated.append(kql)
        return original(kql, *arguments)  # type: ignore[arg-type]

    original = translation_cache.translate
    monkeypatch.setattr(translation_cache, "translate", counted)
    cache = TranslationCache(lambda _: None)
    schema = estate.schema()
    asked = [cache.get(query_of("signins_by_day", days), schema, Window()) for days in (1, 2, 3)]
    assert len(translated) == 1
    assert len({translation.sql for translation in asked}) == 1
    starts = [min(translation.parameters.values()) for translation in asked]
    assert starts == [datetime(2025, 3, 12 - days, 15) for days in (1, 2, 3)]
    counts = [len(estate.query(query_of("signins_by_day", days)).rows) for days in (1, 5, 9)]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize(
    "kql",
    [
        f"Syslog | where SyslogMessage == 'TimeGenerated >= {T}'",
        f"Syslog // TimeGenerated >= {T}\n| count",
        f"Syslog | where TimeGenerated >= {T} - 1h",
        f"Syslog | where SyslogMessage == ```TimeGenerated >= {T}```",
        f"Syslog | extend d = todynamic('{{}}') | where d.x >= {T}",
        f"Syslog | where TimeGenerated between ({T} .. {T})",
        "Syslog | where TimeGenerated >= datetime(2025-03-11)",
        "Syslog | where TimeGenerated >= datetime(2025-02-30T00:00:00Z)",
        "Syslog | where TimeGenerated >= datetime(2025-03-11T00:00:00.1234567Z)",
        f"declare query_parameters(a: long = 1); Syslog | where TimeGenerated >= {T}",
        f"print {T}",
    ],
)
def test_what_is_no_plain_comparison_of_a_column_stays_in_the_text(kql: str) -> None:
    assert without_moving_times(kql) is None


def test_a_backslash_that_ends_a_verbatim_string_hides_nothing_behind_it() -> None:
    found = without_moving_times(f'Syslog | where SyslogMessage == @"\\" and TimeGenerated >= {T} | where true')
    assert found is not None
    assert found.kql.endswith('@"\\" and TimeGenerated >= sentinel_time_0 | where true')
    assert found.times == (datetime(2025, 3, 11),)


def test_a_faulty_query_is_refused_with_the_places_of_its_own_text(estate: Workspace) -> None:
    with pytest.raises(KqlError) as refusal:
        estate.query(f"Syslog\n| where TimeGenerated >= {T}\n| whre true")
    assert refusal.value.line == 3
    with pytest.raises(KqlError, match="Computr"):
        estate.query(f"Syslog | where TimeGenerated >= {T} and Computr == 'x'")


def test_fractions_of_a_second_count(estate: Workspace) -> None:
    rows = estate.query("SigninLogs | summarize min(TimeGenerated)").rows
    first = datetime.fromisoformat(str(rows[0][0]))

    def found(since: datetime) -> bool:
        kql = f"SigninLogs | where TimeGenerated <= datetime({first:%Y-%m-%dT%H:%M:%S.%f}0Z)"
        kql += f" and TimeGenerated >= datetime({since:%Y-%m-%dT%H:%M:%S.%f}0Z) | count"
        return estate.query(kql).rows != [(0,)]

    assert found(first)
    assert not found(first + timedelta(microseconds=1))
