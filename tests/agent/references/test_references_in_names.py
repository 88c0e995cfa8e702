"""A name that has a pronoun in it, such as `wks-it-01`, points at nothing: it is the name that was asked about."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sentinel_rag.agent.references import References, incident_item, remember, resolve

pytestmark = pytest.mark.requirement("CHAT-6")
NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)
NAMES = (
    "wks-it-01", "srv-it.contoso.example", "it-admin", "it@contoso.example", "helpdesk.it@contoso.example",
    "CONTOSO\\it", "it.contoso.example", "her-laptop", "his-pc.example", "their-app", "them-db-1", "C:/it/x.exe",
    "it_ops",
)  # fmt: skip


def talked_about() -> References:
    references = References()
    incident = incident_item({"number": 124, "title": "Case", "severity": "High", "created_time": ""})
    remember("what is incident 124 about?", resolve("what is incident 124 about?", references, now=NOW), references)
    references.focus_on(incident)
    return references


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "question", ["show me powershell executions on {}", "alerts of {} yesterday", "what did {} do?"]
)
def test_a_pronoun_inside_a_name_is_part_of_it(question: str, name: str) -> None:
    asked = question.format(name)
    assert resolve(asked, talked_about(), now=NOW).text == asked


@pytest.mark.parametrize(
    "question",
    ["who owns it?", "alerts of it, newest first", "is it open", "close it.", "what’s its owner - and status?"],
)
def test_the_pronoun_itself_points_as_before(question: str) -> None:
    assert "124" in resolve(question, talked_about(), now=NOW).text
