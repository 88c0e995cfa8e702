"""What a model's list of sections and past incidents names can be pointed at afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.agent.references import References, resolve, show_answer
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import DocumentResult, Succeeded, ToolCall
from sentinel_rag.testing.small_estate import NOW

PAST: dict[str, Any] = {
    "citation": "incident-4",
    "collection": "sentinel_incidents",
    "document_id": "incident-4",
    "title": "Password spray against the VPN",
    "text": "Incident 4 of 2024-05-02.",
    "severity": "Medium",
    "status": "Closed",
}
SECTION: dict[str, Any] = {
    "citation": "phishing.md > Containment",
    "collection": "playbooks",
    "document_id": "phishing.md",
    "title": "Phishing",
    "section": "Containment",
    "text": "Remove the mail.",
    "techniques": ["T1566.001"],
}


def run_of(*hits: dict[str, Any]) -> ToolRun:
    call = ToolCall("c1", "s", "search_knowledge_base", {"query": "x"})
    return ToolRun(call, Succeeded(call, DocumentResult({"hits": list(hits)})))


@pytest.mark.requirement("CHAT-6")
def test_lines_of_a_model_that_name_hits_are_the_things() -> None:
    references = References()
    text = "Found:\n[1] incident 4, Password spray against the VPN\n[2] phishing.md > Containment"
    show_answer(references, text, [run_of(PAST, SECTION)])
    assert resolve("how was [1] closed?", references, now=NOW).text == "how was incident 4 closed?"
    second = resolve("tell me more about [2]", references, now=NOW)
    assert [(item.kind, item.value) for item in second.items] == [("section", "phishing.md > Containment")]
    assert second.readable.strip() == "tell me more about"


def test_a_hit_of_another_shape_is_no_thing() -> None:
    references = References()
    show_answer(references, "[1] incident-4\n[2] x", [run_of({"citation": "incident-4", "document_id": "incident-x"})])
    assert all(not item.value for listed in references.lists for item in listed.items)
