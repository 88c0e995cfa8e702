"""Laws of the check of answers: it settles, it leaves alone what results say, and less evidence never supports more."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result

SEVERITIES = ("High", "Medium", "Low", "Informational")
STATUSES = ("New", "Active", "Closed")

row = st.fixed_dictionaries(
    {
        "number": st.integers(20, 400),
        "title": st.sampled_from(("Password spray", "Mass download from a share", "Tampering with backups")),
        "severity": st.sampled_from(SEVERITIES),
        "status": st.sampled_from(STATUSES),
        "created_time": st.datetimes().map(lambda moment: f"{moment.replace(year=2024):%Y-%m-%dT%H:%M:%SZ}"),
        "owner": st.sampled_from((None, "m.keller", "Ines Duarte")),
        "alert_count": st.integers(2, 9),
        "incident_name": st.uuids().map(str),
    }
)
rows = st.lists(row, min_size=1, max_size=5, unique_by=lambda each: each["number"])
SENTENCES = (
    "Incident {number} is {severity}.",
    "#{number} has the status {status} and {alert_count} alerts.",
    "The severity is {severity}.",
    "It was created at {created_time}.",
    "Incident {number} is named “{title}” ({incident_name}).",
    "- **Incident:** {number}\n- **Severity:** {severity}",
    "There are {alert_count} incidents.",
    "The attacker was successful.",
    "Incident {number} belongs to {owner}.",
    "| Incident | Severity |\n|---|---|\n| {number} | {severity} |",
)


def index_of(found: list[dict[str, object]]) -> EvidenceIndex:
    index = EvidenceIndex(UTC)
    call = ToolCall("c1", "s", "query_incidents")
    index.add(ToolRun(call, Succeeded(call, rows_result(found))))
    return index


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Answers made of sentences whose values come from rows that may be those of the results or not."""
    parts = draw(st.lists(st.tuples(st.sampled_from(SENTENCES), row), min_size=1, max_size=4))
    return "\n\n".join(sentence.format(**values) for sentence, values in parts)


@given(rows, texts())
@settings(max_examples=60, deadline=None)
def test_checking_twice_changes_nothing_more(found: list[dict[str, object]], text: str) -> None:
    index = index_of(found)
    once = ground(text, index, question="q")
    twice = ground(once.text, index, question="q")
    assert (twice.text, twice.removals, twice.repairs) == (once.text, (), ())


@given(rows, st.data())
@settings(max_examples=60, deadline=None)
def test_values_of_one_row_are_left_as_they_are(found: list[dict[str, object]], data: st.DataObject) -> None:
    values = data.draw(st.sampled_from(found))
    text = (
        f"Incident {values['number']} (“{values['title']}”) is {values['severity']} and {values['status']}. "
        f"It was created at {values['created_time']}, holds {values['alert_count']} alerts, and its id is "
        f"`{values['incident_name']}`."
    )
    assert ground(text, index_of(found), question="q").text == text


@given(rows, texts())
@settings(max_examples=60, deadline=None)
def test_a_text_that_falls_with_more_evidence_does_not_stand_with_none(
    found: list[dict[str, object]], text: str
) -> None:
    if ground(text, index_of(found), question="q").touched:
        assert ground(text, EvidenceIndex(UTC), question="q").touched


@given(rows, st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
@settings(max_examples=80, deadline=None)
def test_no_text_breaks_the_check(found: list[dict[str, object]], text: str) -> None:
    assert isinstance(ground(text, index_of(found), question=text[:50]).text, str)


MARKS = (
    *("|", "**", "`", "# ", "- ", "1. ", "> ", "```", "\n", "\n\n", "  ", "“", "”", "[1]", "⟦r1#/x⟧", "%"),
    *("Incident 31", "High", "Closed", "2024-07-02", "09:45", "10.0.0.5", "three alerts", "all", "no ", "it ", "12"),
    *("and ", "is ", ". ", ": ", "(corrected)", REMOVED),
)


@given(rows, st.lists(st.sampled_from(MARKS), max_size=25).map("".join))
@settings(max_examples=120, deadline=None)
def test_broken_markdown_settles_too(found: list[dict[str, object]], text: str) -> None:
    index = index_of(found)
    once = ground(text, index, question="q")
    assert ground(once.text, index, question="q").text == once.text
