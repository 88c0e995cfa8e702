"""What a model says of playbooks and past incidents, held against the hits of its searches."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from sentinel_rag.agent.grounding import EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun, run_calls
from sentinel_rag.contracts.tool_calls import ToolCall
from sentinel_rag.testing.small_estate import small_estate
from sentinel_rag.testing.small_knowledge import small_knowledge

SENTENCES: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "knowledge_sentences.yaml").read_text())
_SEARCHES: tuple[dict[str, Any], ...] = (
    {"query": "containment", "collection": "playbooks", "technique": "T1566.001", "limit": 3},
    {"query": "triage", "collection": "playbooks", "technique": "T1566.001", "limit": 3},
    {"query": "containment", "collection": "playbooks", "technique": "T1486", "limit": 3},
    {"query": "triage", "collection": "playbooks", "technique": "T1486", "limit": 3},
    {"query": "containment", "collection": "playbooks", "technique": "T1021.001", "limit": 3},
    {"query": "incident closed", "collection": "sentinel_incidents", "classification": "TruePositive", "limit": 20},
    {"query": "phishing", "collection": "sentinel_incidents", "limit": 3},
)


_LATE_SEARCHES: tuple[dict[str, Any], ...] = (
    {"query": "containment", "collection": "playbooks", "technique": "T1621", "limit": 3},
    {"query": "containment", "collection": "playbooks", "technique": "T1505.003", "limit": 3},
    {"query": "containment", "collection": "playbooks", "technique": "T1567.002", "limit": 3},
    {"query": "backup sign-in mimikatz jump", "collection": "sentinel_incidents", "limit": 20},
)
_NOT_UNDERSTOOD = frozenset(
    {
        "Neither incident-7 nor incident-2 was a true positive.",
        "According to the account takeover playbook, access tokens end at once when refresh tokens are revoked.",
        "The web shell playbook says to delete the shell and its folder at once.",
    }
)
"""Sentences of the late set whose words are all a hit's and mean something else, or whose "neither" is not read."""


async def conversation(folder: Path, searches: tuple[dict[str, Any], ...] = _SEARCHES) -> list[ToolRun]:
    estate = small_estate()
    estate.answers["search_knowledge_base"] = small_knowledge(folder)
    calls = [ToolCall("c0", "s", "get_incident_detail", {"incident": "40"})]
    calls += [ToolCall("c1", "s", "get_incident_detail", {"incident": "31"})]
    calls += [ToolCall(f"k{n}", "s", "search_knowledge_base", sought) for n, sought in enumerate(searches)]
    return await run_calls(estate, calls, progress=None, started=0.0)


def indexed(folder: Path, searches: tuple[dict[str, Any], ...]) -> EvidenceIndex:
    index = EvidenceIndex(UTC)
    for run in anyio.run(conversation, folder, searches):
        assert run.worked
        index.add(run)
    return index


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> EvidenceIndex:
    return indexed(tmp_path_factory.mktemp("knowledge"), _SEARCHES)


@pytest.fixture(scope="module")
def known_late(tmp_path_factory: pytest.TempPathFactory) -> EvidenceIndex:
    return indexed(tmp_path_factory.mktemp("knowledge"), _LATE_SEARCHES)


def checked(text: str, index: EvidenceIndex) -> str:
    return ground(text, index, question="What should we do, and was something like it seen before?").text


@pytest.mark.requirement("GRND-1")
def test_what_hits_hold_stays(known: EvidenceIndex) -> None:
    assert len(SENTENCES["truths"]) >= 40
    lost = {sentence: text for sentence in SENTENCES["truths"] if (text := checked(sentence, known)) != sentence}
    assert lost == {}


@pytest.mark.requirement("GRND-1")
def test_what_hits_do_not_hold_is_put_right_or_left_out(known: EvidenceIndex) -> None:
    assert len(SENTENCES["lies"]) >= 40
    assert [sentence for sentence in SENTENCES["lies"] if checked(sentence, known) == sentence] == []


def test_the_late_sentences_are_told_apart_but_for_the_few_that_are_known(known_late: EvidenceIndex) -> None:
    lost = {sentence for sentence in SENTENCES["late_truths"] if checked(sentence, known_late) != sentence}
    missed = {sentence for sentence in SENTENCES["late_lies"] if checked(sentence, known_late) == sentence}
    assert lost | missed <= _NOT_UNDERSTOOD


@pytest.mark.requirement("GRND-1")
def test_a_quotation_under_the_wrong_file_gets_the_right_one(known: EvidenceIndex) -> None:
    said = 'ransomware.md says "Resetting a password before revoking sessions leaves the thief signed in".'
    assert checked(said, known).startswith("phishing.md (corrected) says")


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("lead", ["phishing.md > Containment says:", "## phishing.md > Containment"])
def test_items_under_a_citation_are_the_playbook_s_or_go(lead: str, known: EvidenceIndex) -> None:
    true = "- Take a device off the network if a file was opened there (shift lead)."
    other = "- Cut the backup system off the domain and keep it running."
    false = "- Reimage the laptops of all recipients within the day."
    grounded = checked(f"{lead}\n\n{true}\n{other}\n{false}\n", known)
    assert true in grounded
    assert other not in grounded
    assert false not in grounded


def test_what_the_workspace_tells_of_an_incident_wins_over_its_record(known: EvidenceIndex) -> None:
    assert "Active" in checked("Incident 31 is Active.", known)
    assert checked("Incident 31 is Closed.", known) != "Incident 31 is Closed."


def test_without_a_search_a_file_is_judged_as_a_file() -> None:
    index = EvidenceIndex(UTC)
    for run in anyio.run(_detail_alone):
        index.add(run)
    assert "phishing.md" not in checked("phishing.md > Containment says to remove the mail.", index)


async def _detail_alone() -> list[ToolRun]:
    call = ToolCall("c0", "s", "get_incident_detail", {"incident": "40"})
    return await run_calls(small_estate(), [call], progress=None, started=0.0)
