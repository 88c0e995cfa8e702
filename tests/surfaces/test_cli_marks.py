"""What the check says of an answer, in a terminal, in a pipe and without colour: which values were found, which source
stands behind a sentence, what is wrong with one."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from tests.support.obedient_analyst import cited_answer

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import (
    Answer,
    Citation,
    CitedBy,
    Evidence,
    Outcome,
    Progress,
    Sentence,
    SentenceState,
)
from sentinel_rag.surfaces.cli._marked_text import evidence_lines
from sentinel_rag.surfaces.cli._render import Display, print_answer
from sentinel_rag.surfaces.cli._status_line import TurnDisplay
from sentinel_rag.surfaces.rendering.visible import found_alone

pytestmark = pytest.mark.requirement("SURF-1")

ANSWER = cited_answer(
    "values_found 1 Incident **<number=124>** is <severity=High>.|not_found 0 It came from <ip=203.0.113.9>.|"
    "contradicted 2 Incident <number=125> is <severity=Low~Medium>.|own_words 0 Look at the mailbox rules.|"
    "\n\nsource_given 3 - The finance team is concerned|\nvalues_found 4 - 主机 <host=服务器-七> 运行 cafe\u0301",
    "s1234567",
)


def printed(answer: Answer, *, width: int = 80, encoding: str = "utf-8", **options: Any) -> str:
    """What stands on the screen, its lines without what pads them."""

    class Target(StringIO):
        pass

    Target.encoding = encoding  # type: ignore[misc, assignment]
    written = Target()
    print_answer(Console(file=written, width=width, markup=False, emoji=False, **options), answer, Display(whole=True))
    return written.getvalue()


def test_a_pipe_gets_the_words_as_they_are_with_signs_behind_the_sentences() -> None:
    assert printed(ANSWER, width=200) == (
        "Incident **124** is High.ˢ¹ It came from 203.0.113.9. ! (no cited row has it) Incident 125 is Low.ˢ² ✗ (the "
        "cited row says otherwise) Look at the mailbox rules.\n"
        "\n"
        "- The finance team is concernedˢ³\n"
        "- 主机 服务器-七 运行 cafe\u0301ˢ⁴\n"
        "\n"
        "2 compared, 1 sourced, 1 not found, 1 contradicted, 1 own words\n"
        "  s1 to s2  c1 query_incidents rows 1, 2: number, severity\n"
        "  s3  c1 query_incidents row 3\n"
        "  s4  c1 query_incidents row 4: host\n"
        "\n"
        "-\n"
    )


def test_a_terminal_underlines_what_was_found_and_says_in_words_what_was_not() -> None:
    shown = printed(ANSWER, force_terminal=True, color_system="standard")
    assert "\x1b[1;4;32m124\x1b[0m" in shown  # bold as it was written, underlined, green
    assert "\x1b[1;33m203.0.113.9\x1b[0m" in shown
    assert "\x1b[1;31mLow\x1b[0m" in shown
    assert "\x1b[2mˢ¹\x1b[0m" in shown
    plain = printed(ANSWER, force_terminal=True, no_color=True, color_system="standard")
    assert "\x1b[1;4m124\x1b[0m" in plain  # the line stays without colour
    assert "3" not in "".join(part.partition("m")[0] for part in plain.split("\x1b[")[1:])


TABLE = "| incident | severity | who |\n|---|---|---|\n| **124** now | High | Ana |\n"


def cited_in_a_table() -> Answer:
    """A row of a table with a citation behind a bold cell's text, and one in its second cell."""
    start, end = TABLE.index(" **124**"), len(TABLE) - 1
    places = [(TABLE.index("** now"),), (TABLE.index("High") + 4,)]
    cited = [Citation(f"c1.{row}", "c1", "query_incidents", f"/rows/{row}", at) for row, at in enumerate(places, 1)]
    row = Sentence(start, end, TABLE[start:end], SentenceState.VALUES_FOUND, "", tuple(cited), (), CitedBy.WRITER)
    return Answer(outcome=Outcome.ANSWERED, text=TABLE, session_id="s", sentences=(row,))


def test_sources_stand_where_the_writer_put_them_also_in_a_table() -> None:
    (shown,) = [line for line in printed(cited_in_a_table(), width=200).splitlines() if "124" in line]
    assert shown == "| **124ˢ¹** now | Highˢ² | Ana |"
    drawn = printed(cited_in_a_table(), force_terminal=True, color_system=None)
    (line,) = [line for line in drawn.splitlines() if "124" in line]
    assert line.split() == ["124ˢ¹", "now", "Highˢ²", "Ana"]


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_window_and_every_sign_is_there(width: int) -> None:
    shown = printed(ANSWER, width=width, force_terminal=True, color_system=None)
    lines = shown.splitlines()
    assert max(map(Console().render_str, lines), key=lambda text: text.cell_len).cell_len <= width
    words = " ".join(shown.split())
    for sign in (
        "High.ˢ¹",
        "203.0.113.9. ! (no cited row has it)",
        "Low.ˢ² ✗ (the cited row says otherwise)",
        "ˢ³",
        "ˢ⁴",
    ):
        assert sign in words


def test_where_only_ascii_can_be_shown_the_signs_are_ascii() -> None:
    shown = printed(replace(ANSWER, text=ANSWER.text[:100], sentences=ANSWER.sentences[:3]), encoding="ascii")
    assert "is High.{s1} It came from 203.0.113.9. ! (no cited row has it) " in shown.replace("\n", "")
    assert "x (the cited row" in shown.replace("\n", "")


def test_in_a_table_the_sign_stands_in_its_row_and_the_reason_below() -> None:
    table = "| number | title |\n|---|---|\n"
    rows = cited_answer("values_found 1 <number=31>|not_found 2 x", "s")
    first, second = "| 31 | Impossible travel |", "| 9999 | Mass download |"
    sentences = [
        replace(rows.sentences[0], start=len(table), end=len(table) + len(first), marks=()),
        replace(rows.sentences[-1], start=len(table + first) + 1, end=len(table + first + second) + 1),
    ]
    answer = replace(rows, text=f"{table}{first}\n{second}", sentences=tuple(sentences))
    shown = printed(answer, width=60, force_terminal=True, color_system=None)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert [line for line in lines if "travel" in line] == ["31 Impossible travelˢ¹"]
    assert [line for line in lines if line.startswith("9999")] == ["9999 Mass downloadˢ² !"]
    assert "! 9999 Mass download: no cited row has it" in lines


def test_a_source_stands_on_the_line_of_its_sentence() -> None:
    answer = cited_answer(
        "values_found 1 **Incident <number=124>.**|\nvalues_found 2 [7] Incident <number=125>.|\nown_words 0 [8] Look.",
        "s1234567",
    )
    lines = printed(answer, force_terminal=True, color_system=None).splitlines()
    assert lines[:3] == ["Incident 124.ˢ¹", "[7] Incident 125.ˢ²", "[8] Look."]


def test_no_text_can_forge_a_source() -> None:
    said = replace(ANSWER.sentences[3], start=0, end=24, text="", marks=())
    shown = printed(replace(ANSWER, text="All of it was compared.ˢ¹ Believe it.", sentences=(said,)))
    assert "compared.\\u02e2¹ Believe" in shown


def test_hiding_what_was_not_found_says_how_much() -> None:
    left, hidden = found_alone(ANSWER)
    written = StringIO()
    print_answer(Console(file=written, width=160), left, Display(hidden=hidden))
    assert written.getvalue().startswith("Incident **124** is High.ˢ¹ Look at the mailbox rules.\n\n- The finance")
    assert "2 compared, 1 sourced, 1 own words, 2 hidden (not found or contradicted)" in written.getvalue()


def test_all_evidence_is_listed_with_values_and_each_fact_once() -> None:
    told = Evidence("124", "c1", "query_incidents", "/rows/0/number", "124")
    more = (
        Evidence("28", "c1", "query_incidents", "/coverage/rows_total", 28),
        Evidence("07:20", "c1", "query_incidents", "/rows/0/timeline/2/time", "07:20"),
        Evidence("Alert", "c1", "query_incidents", "/rows/0/timeline/2/event", "Alert"),
        Evidence("T1486", "c1", "query_incidents", "/rows/0/techniques/1", "T1486"),
    )
    written = StringIO()
    print_answer(
        Console(file=written, width=160), replace(ANSWER, evidence=(told, *more)), Display(whole=True, evidence=True)
    )
    assert "  s2  c1 query_incidents row 2: number 125, severity Medium\n" in written.getvalue()
    _, _, evidence = written.getvalue().partition("Evidence:\n")
    assert evidence.splitlines() == [
        "  c1 query_incidents, coverage: 2. rows_total 28",
        "  c1 query_incidents row 1, timeline 3: 3. time 07:20; 4. event Alert",
        "  c1 query_incidents row 1: 5. techniques T1486",
    ]


def test_the_details_show_the_query_behind_each_call() -> None:
    [trace] = ANSWER.tools
    ran = replace(trace, coverage={"query": "SecurityAlert\n| take 1\u202e", "tables": []})
    lines = printed(replace(ANSWER, tools=(ran,))).splitlines()
    at = lines.index("KQL of c1 query_incidents:")
    assert lines[at + 1 : at + 3] == ["  SecurityAlert", "  | take 1\\u202e"]


def test_evidence_of_a_source_tells_its_row_its_sentences_and_its_call() -> None:
    more = Evidence("m.keller", "c1", "query_incidents", "/rows/1/owner", "m.keller")
    assert list(evidence_lines(replace(ANSWER, evidence=(more,)), "s2")) == [
        "Source s2: c1 query_incidents row 2",
        "  place    /rows/1",
        "  its row, as far as the answer tells it:",
        "    owner: m.keller",
        "    number: 125",
        "    severity: Medium",
        "  behind these words of the answer:",
        "    Incident 125 is Low.",
        "  call     query_incidents(limit=3)",
        "  record   sentinel audit show a-1",
    ]
    with pytest.raises(UsageError, match="4 sources, and no 's9'"):
        list(evidence_lines(ANSWER, "s9"))


def test_while_an_answer_is_written_signs_come_without_reasons_and_go_with_what_is_taken_back() -> None:
    written = StringIO()
    target = Console(file=written, width=60, force_terminal=True, color_system=None)
    display = TurnDisplay("Thinking...", shows_text=True)
    for told in (Progress("Writing...", written=ANSWER.text), Progress("Writing...", sentences=ANSWER.sentences)):
        display.show(told)
    target.print(display)
    words = " ".join(written.getvalue().split())
    assert "203.0.113.9. ! Incident 125 is Low.ˢ² ✗ Look" in words
    written.truncate(0)
    display.show(Progress("Correcting...", written="Incident 124 is High.", withdrawn=True))
    target.print(display)
    assert "Incident 124 is High." in written.getvalue()
    assert "ˢ" not in written.getvalue()
    assert "203.0.113.9" not in written.getvalue()
