"""What a model says of playbooks and past incidents, held against the hits of its searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


async def conversation(folder: Path) -> list[ToolRun]:
    estate = small_estate()
    estate.answers["search_knowledge_base"] = small_knowledge(folder)
    calls = [ToolCall("c0", "s", "get_incident_detail", {"incident": "40"})]
    calls += [ToolCall("c1", "s", "get_incident_detail", {"incident": "31"})]
    calls += [ToolCall(f"k{n}", "s", "search_knowledge_base", sought) for n, sought in enumerate(_SEARCHES)]
    return await run_calls(estate, calls, progress=None, started=0.0)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> EvidenceIndex:
    from datetime import UTC

    import anyio

    index = EvidenceIndex(UTC)
    for run in anyio.run(conversation, tmp_path_factory.mktemp("knowledge")):
        assert run.worked
        index.add(run)
    return index


def checked(text: str, index: EvidenceIndex) -> str:
    return ground(text, index, question="What should we do, and was something like it seen before?").text


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("sentence", SENTENCES["truths"])
def test_what_hits_hold_stays(sentence: str, known: EvidenceIndex) -> None:
    assert checked(sentence, known) == sentence


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("sentence", SENTENCES["lies"])
def test_what_hits_do_not_hold_is_put_right_or_left_out(sentence: str, known: EvidenceIndex) -> None:
    assert checked(sentence, known) != sentence
