"""The check that a finished answer says nothing that its results do not say."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from sentinel_rag.agent.answer_writer import AnswerWriter, Line
from sentinel_rag.agent.grounding import REMOVED, KnownAtoms, broken_evidence, checked_lines, checked_table, unsupported
from sentinel_rag.agent.times import show_duration
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Evidence, Table
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result

ROW = {
    "number": 55,
    "severity": "High",
    "status": "Active",
    "time": "2024-07-02T09:45:00.123Z",
    "ip": "203.0.113.77",
    "hash": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "guid": "3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e06",
    "path": "C:\\tools\\mimi64.exe",
    "host": "fin-ws-014.contoso.example",
}
CALL = ToolCall("c1", "s", "query_incidents", {"limit": 7})
RUN = ToolRun(CALL, Succeeded(CALL, rows_result([ROW], total=85)))
KNOWN = KnownAtoms([RUN], "what about 192.0.2.9?", ZoneInfo("Europe/Berlin"))


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Incident 55 is High and Active.",
        "85 incidents match, 1 is shown.",
        "At 2024-07-02 09:45:00 UTC (11:45:00 CEST).",
        "From 203.0.113.77 and 192.0.2.9 with `da39a3ee5e6b4b0d3255bfef95601890afd80709`.",
        "Alert 3F1C2B6A-0D7E-4C55-9B1F-6F0F2A9D1E06 on fin-ws-014.contoso.example, file mimi64.exe.",
        "[1] and [2] are list numbers.",
        "`C:\\tools\\mimi64.exe`",
        "`fin-ws-0…`",
    ],
)
def test_what_stands_in_a_result_or_in_the_question_is_supported(text: str) -> None:
    assert unsupported(text, KNOWN) == []


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("text", "atom"),
    [
        ("Incident 9999 is open.", "9999"),
        ("84 incidents match.", "84"),
        ("Incident 55 is Low.", "Low"),
        ("Incident 55 is Closed.", "Closed"),
        ("At 2024-07-02 09:46:00 UTC.", "09:46:00"),
        ("On 2024-07-03.", "2024-07-03"),
        ("From 203.0.113.78.", "203.0.113.78"),
        ("Alert 3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e07.", "3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e07"),
        ("Hash da39a3ee5e6b4b0d3255bfef95601890afd80700.", "da39a3ee5e6b4b0d3255bfef95601890afd80700"),
        ("File mimi32.exe.", "mimi32.exe"),
        ("Technique T1003.", "T1003"),
    ],
)
def test_what_stands_nowhere_is_found(text: str, atom: str) -> None:
    assert [found.atom for found in unsupported(text, KNOWN)] == [atom]


@pytest.mark.requirement("GRND-1")
def test_a_sentence_with_an_invented_atom_is_left_out_and_the_answer_says_so() -> None:
    lines = [
        Line("Incident 55 is High."),
        Line("It has 12 alerts."),
        Line("It began on 13 May."),
        Line("Ask again.", fixed=True),
    ]
    assert [line.text for line in checked_lines(lines, KNOWN)] == ["Incident 55 is High.", REMOVED, "Ask again."]


def test_an_unsupported_cell_is_emptied() -> None:
    table = Table(("", "Incident"), (("[1]", "55"), ("[2]", "56")))
    assert checked_table(table, KNOWN).rows == (("[1]", "55"), ("[2]", "(not checked)"))


@pytest.mark.requirement("GRND-2")
def test_evidence_that_does_not_lead_to_its_value_is_found() -> None:
    good = Evidence("55", "c1", "query_incidents", "/rows/0/number", 55)
    wrong_value = Evidence("56", "c1", "query_incidents", "/rows/0/number", 56)
    wrong_place = Evidence("55", "c1", "query_incidents", "/rows/3/number", 55)
    wrong_call = Evidence("55", "c9", "query_incidents", "/rows/0/number", 55)
    assert broken_evidence([good, wrong_value, wrong_place, wrong_call], [RUN]) == [
        wrong_value,
        wrong_place,
        wrong_call,
    ]


@pytest.mark.requirement("GRND-2")
def test_each_value_that_is_written_has_its_evidence() -> None:
    writer = AnswerWriter(UTC)
    writer.say("Incident {} is {}.", writer.number(RUN, "/rows/0/number"), writer.number(RUN, "/rows/0/severity"))
    (line,) = writer.lines
    assert line.text == "Incident 55 is High."
    assert [(piece.pointer, piece.value) for piece in line.evidence] == [
        ("/rows/0/number", 55),
        ("/rows/0/severity", "High"),
    ]


def test_a_figure_cannot_be_written_without_a_result() -> None:
    with pytest.raises(AssertionError, match="no evidence"):
        AnswerWriter(UTC).say("There are 12 alerts.")


def test_a_value_that_is_missing_is_said_to_be_missing() -> None:
    writer = AnswerWriter(UTC)
    writer.say("Owner {}.", writer.name(RUN, "/rows/0/owner"))
    assert writer.lines[0] == Line("Owner not recorded.")


@pytest.mark.requirement("GRND-1")
def test_a_count_of_ours_is_supported_only_as_far_as_its_places_are_in_the_result() -> None:
    rows = [{"entities": [{"sid": "S-1-5-21-1"}]} for _ in range(3)]
    run = ToolRun(CALL, Succeeded(CALL, rows_result(rows, total=9)))
    writer = AnswerWriter(UTC)
    places = [f"/rows/{place}/entities/0/sid" for place in range(3)]
    true = writer.tally(run, places)
    assert true.text == "3"
    assert unsupported("In 3 alerts.", KnownAtoms([run], "", UTC, writer.tallies)) == []
    invented = AnswerWriter(UTC)
    invented.tally(run, [*places, "/rows/7/entities/0/sid", "/rows/8/entities/0/sid"])
    assert unsupported("In 5 alerts.", KnownAtoms([run], "", UTC, invented.tallies))


@pytest.mark.requirement("GRND-1")
def test_a_duration_in_words_is_supported_by_its_seconds() -> None:
    run = ToolRun(CALL, Succeeded(CALL, rows_result([{"open_duration_s": 185400.0}])))
    known = KnownAtoms([run], "", UTC)
    assert unsupported("It was open for 2 days 3 hours.", known) == []
    assert unsupported("It was open for 4 days 3 hours.", known)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "under a second"), (59, "59 seconds"), (60, "1 minute"), (3661, "1 hour 1 minute"), (90000, "1 day 1 hour"),
     (86400 * 40 + 59, "40 days 59 seconds")],
)  # fmt: skip
def test_durations_in_words(seconds: float, words: str) -> None:
    assert show_duration(seconds) == words
