"""Lengths of time however they are written: by a model in a tool's argument, by a person behind an option."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentinel_servers import NOW

from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS, TIME_WINDOWS
from sentinel_rag.sentinel.arguments import LONGEST, read_duration, read_span
from sentinel_rag.surfaces.cli import main

WRITTEN = [
    *((name, timedelta(hours=hours)) for name, hours in TIME_WINDOWS.items()),
    ("1h", timedelta(hours=1)),
    ("PT1H", timedelta(hours=1)),
    ("pt1h", timedelta(hours=1)),
    ("last 4 hours", timedelta(hours=4)),
    ("the last 4 hours", timedelta(hours=4)),
    ("in the past 4 hours", timedelta(hours=4)),
    ("last_4h", timedelta(hours=4)),
    ("LAST-4-H", timedelta(hours=4)),
    ("4 hrs", timedelta(hours=4)),
    ("last hour", timedelta(hours=1)),
    ("an hour", timedelta(hours=1)),
    ("90m", timedelta(minutes=90)),
    ("1.5h", timedelta(minutes=90)),
    ("PT1H30M", timedelta(minutes=90)),
    ("01:30:00", timedelta(minutes=90)),
    ("1.12:00", timedelta(hours=36)),
    ("P1DT12H", timedelta(hours=36)),
    ("PT3600.0S", timedelta(hours=1)),
    ("30 seconds", timedelta(seconds=30)),
    ("P7D", timedelta(days=7)),
    ("P1W", timedelta(days=7)),
    ("two weeks", timedelta(days=14)),
    ("last fortnight", timedelta(days=14)),
    ("last 45 days", timedelta(days=45)),
]
WRONG = [
    ("P1H", "write PT1H"),
    ("p12h", "write PT12H"),
    ("P30S", "write PT30S"),
    ("P30M", "PT30M is minutes"),
    ("PT1D", "write P1D"),
    ("PT2W", "write P2W"),
    ("P1D12H", "write P1DT12H"),
    ("P1Y", "P365D"),
    ("PT", "not an ISO 8601 duration"),
    ("P", "not an ISO 8601 duration"),
    ("last month", "30d"),
    ("0h", "no length"),
    ("PT0S", "no length"),
    ("-1h", "no length"),
    ("1", "no length"),
    ("24", "no length"),
    ("h", "no length"),
    ("yesterday", "no length"),
    ("1h | take 5", "no length"),
    ("٣h", "no length"),
    ("9999999d", "hundred years"),
]
WINDOWED = [tool.name for tool in SENTINEL_TOOLS if "time_window" in tool.parameter_schemas()]
NEEDED: dict[str, dict[str, Any]] = {
    "get_top_entities": {"kind": "account"},
    "run_kql_query": {"template": "signins_by_country"},
    "search_logs": {"text": "MTP"},
    "run_freeform_kql": {"kql": "SigninLogs | count"},
}


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    return serving(SigninLogs=[{"TimeGenerated": "2024-08-01T00:00:00Z"}])


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(("text", "length"), WRITTEN)
def test_a_length_of_time_is_read_however_it_is_written(text: str, length: timedelta) -> None:
    """Field report E3: 1h, PT1H and `last 4 hours` all mean what they say."""
    assert read_duration(text) == length


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_what_is_nearly_one_is_refused_with_what_was_meant(text: str, told: str) -> None:
    """Field report E3: `P1H` must not become a window that finds nothing."""
    with pytest.raises(ValueError, match=r"no length|not an ISO|no one length|hundred years") as caught:
        read_duration(text)
    assert told in str(caught.value)


@given(st.text(max_size=40) | st.from_regex(r"P?[0-9.,TWDHMSP]{0,12}", fullmatch=True))
def test_any_text_is_a_length_or_a_sentence(text: str) -> None:
    try:
        length: timedelta | str = read_duration(text)
    except ValueError as error:
        length = str(error)
    assert length.endswith(".") if isinstance(length, str) else length > timedelta(0)


@given(st.integers(1, 9_000), st.sampled_from(["s", "m", "h", "d", "w"]))
def test_the_short_form_and_iso_8601_agree(count: int, unit: str) -> None:
    iso = f"P{count}{unit.upper()}" if unit in "dw" else f"PT{count}{unit.upper()}"
    if timedelta(**{{"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[unit]: count}) <= LONGEST:
        assert read_duration(f"{count}{unit}") == read_duration(iso)


@pytest.mark.anyio
@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize("tool", [name for name in WINDOWED if name != "run_freeform_kql"])
@pytest.mark.parametrize(("text", "length"), [("4h", 4), ("PT4H", 4), ("last 4 hours", 4), ("24h", 24)])
async def test_every_tool_with_a_window_takes_any_length(estate: Any, tool: str, text: str, length: int) -> None:
    """Field report E3, at the argument of each tool."""
    result = await estate.ask(tool, time_window=text, **NEEDED.get(tool, {}))
    window = result.coverage.window
    assert (window.start, window.end) == (NOW - timedelta(hours=length), NOW)


@pytest.mark.anyio
@pytest.mark.parametrize("tool", [name for name in WINDOWED if name != "run_freeform_kql"])
@pytest.mark.parametrize(("text", "told"), [("P1H", "PT1H"), ("last month", "30d"), ("soon", "no length")])
async def test_no_tool_takes_a_wrong_length_for_an_empty_window(wire: Any, tool: str, text: str, told: str) -> None:
    """Field report E3: the refusal names the field and what to write; nothing is asked of the workspace."""
    from sentinel_servers import Served

    error = await Served(wire.url).refusal(tool, time_window=text, **NEEDED.get(tool, {}))
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "time_window")
    assert told in error.message
    assert error.allowed == tuple(TIME_WINDOWS)
    assert "PT4H" in error.next_step
    assert wire.requests == []


@pytest.mark.anyio
async def test_a_duration_in_a_place_for_a_time_is_told_so(wire: Any) -> None:
    from sentinel_servers import Served

    wrong = await Served(wire.url).refusal("query_alerts", start_time="P1H")
    assert "a duration, not a time, and a wrong one" in wrong.message
    assert "PT1H" in wrong.message
    sound = await Served(wire.url).refusal("query_alerts", start_time="PT1H")
    assert sound.message == "start_time 'PT1H' is a duration, not a time; time_window takes durations."


@pytest.mark.parametrize(("text", "_"), [pair for pair in WRITTEN if not pair[0][:2].startswith("LA")])
def test_the_command_line_reads_the_same_lengths(
    clean_environment: Path, capsys: pytest.CaptureFixture[str], text: str, _: timedelta
) -> None:
    """Field report E3, at `--since`: what is read there gets as far as looking for the workspace."""
    assert main(["kql", "run", "raw_signins", "--since", text]) == 2
    assert "There is no embedded workspace" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "told"), [("P1H", "write PT1H"), ("soon", "is no time"), ("-1h", "is no time")])
def test_the_command_line_refuses_what_is_no_length(
    clean_environment: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    """Field report E3, at `--since`."""
    run: Callable[[list[str]], int] = main
    assert run(["kql", "run", "raw_signins", f"--since={text}"]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert "PT4H" in said


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("-1.02:00:00", -timedelta(days=1, hours=2)),
        ("00:00:00.5", timedelta(milliseconds=500)),
        ("0s", timedelta(0)),
        ("P1W", timedelta(days=7)),
        ("2 weeks", timedelta(days=14)),
    ],
)
def test_a_span_of_a_template_or_an_alert_may_have_any_of_the_forms(text: str, length: timedelta) -> None:
    assert read_span(text) == length
