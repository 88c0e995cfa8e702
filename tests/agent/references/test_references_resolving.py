"""What the words of a question mean in a conversation that has shown a list of four incidents."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sentinel_rag.agent.references import References, incident_item, remember, resolve

NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)
_INCIDENTS = (
    (40, "Suspicious inbox rule after phishing click", "High", "New", "2024-07-20T06:12:00Z", ""),
    (31, "Password spray against several accounts", "Medium", "Active", "2024-07-18T21:40:00Z", "Ines Duarte"),
    (18, "Credential theft on a file server", "High", "Active", "2024-07-09T13:30:00Z", "Ines Duarte"),
    (12, "Lateral movement with ransomware tools", "High", "Active", "2024-07-02T09:51:00Z", "m.keller"),
)


def shown() -> References:
    references = References()
    remember("list open incidents", resolve("list open incidents", references, now=NOW), references)
    references.show_list(
        incident_item(
            {"number": number, "title": title, "severity": severity, "status": status, "created_time": created,
             "owner": owner}
        )
        for number, title, severity, status, created, owner in _INCIDENTS
    )  # fmt: skip
    return references


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("details of [2]", "details of incident 31"),
        ("2", "incident 31"),
        ("18", "incident 18"),
        ("#18", "incident 18"),
        ("tell me about the second one", "tell me about incident 31"),
        ("the last one", "incident 12"),
        ("compare [1] and [3]", "compare incident 40 and incident 18"),
        ("details of [2] to [4]", "details of incident 31, incident 18 and incident 12"),
        ("compare them", "compare incident 40, incident 31, incident 18 and incident 12"),
        ("compare the first two", "compare incident 40 and incident 31"),
        ("who owns the medium one", "who owns incident 31"),
        ("open the phishing one", "open incident 40"),
        ("alerts of the one assigned to m.keller", "alerts of incident 12"),
        ("the one from 2 July", "incident 12"),
        ("status of the newest one", "status of incident 40"),
        ("compare 1 and 3", "compare incident 40 and incident 18"),
    ],
)
def test_a_reference_becomes_the_id_of_its_line(question: str, text: str) -> None:
    resolution = resolve(question, shown(), now=NOW)
    assert (resolution.text, resolution.ask) == (text, "")


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    "question",
    [
        "list them", "only the high ones", "how many of them are high", "show the last incident", "last 5 incidents",
        "how is it going", "which urls are in 322", "show all of them", "incidents of 2023", "10 minutes around 09:47",
        'alerts named "[2]"', "SecurityAlert | extend e = Entities[2]", "the high incidents", "yes",
    ],
)  # fmt: skip
def test_words_that_point_at_no_line_stay(question: str) -> None:
    resolution = resolve(question, shown(), now=NOW)
    assert (resolution.text, resolution.ask, resolution.resolved) == (question, "", ())


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("question", "choices"),
    [
        ("who owns the high one", ["40", "18", "12"]),
        ("#2", ["31", "2"]),
        ("who owns it", ["40", "31", "18", "12"]),
        ("alerts of that incident", ["40", "31", "18", "12"]),
        ("[9]", []),
        ("the fifth one", []),
        ("that host", []),
        ("the one about golf", []),
    ],
)
def test_what_may_mean_several_things_or_none_is_asked_back(question: str, choices: list[str]) -> None:
    resolution = resolve(question, shown(), now=NOW)
    assert resolution.ask
    assert [item.value for item in resolution.choices] == choices
    assert resolution.text == question
    assert resolution.resolved == ()
