"""What pronouns, corrections and choices mean after a few turns, and what lists of long ago still mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sentinel_rag.agent.references import (
    ListItem,
    References,
    Resolution,
    alert_item,
    entity_item,
    incident_item,
    remember,
    resolve,
)

NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)


def incident(number: int, title: str = "", severity: str = "High") -> ListItem:
    return incident_item({"number": number, "title": title or f"Incident {number}", "severity": severity})


def alert(name: str, number: int) -> ListItem:
    return alert_item(
        {
            "alert_id": name,
            "name": f"Alert {name}",
            "incident_number": number,
            "time": f"2024-07-0{number % 9 + 1}T08:00:00Z",
        }
    )


class Talk:
    """A conversation whose answers are given by hand."""

    def __init__(self) -> None:
        self.references = References()

    def say(self, question: str, *shown: ListItem, focus: ListItem | None = None, first: int = 0) -> Resolution:
        resolution = resolve(question, self.references, now=NOW)
        remember(question, resolution, self.references)
        if shown:
            self.references.show_list(shown, first=first)
        if focus is not None:
            self.references.focus_on(focus)
        return resolution

    def text(self, question: str, *shown: ListItem) -> str:
        resolution = self.say(question, *shown)
        assert not resolution.ask, resolution.ask
        return resolution.text

    def choices(self, question: str) -> list[str]:
        resolution = self.say(question)
        assert resolution.ask
        return [item.value for item in resolution.choices]


@pytest.fixture
def talk() -> Talk:
    """Three incidents are on the screen."""
    started = Talk()
    started.say("list open incidents", incident(40), incident(31, "Password spray", "Medium"), incident(18))
    return started


@pytest.mark.requirement("CHAT-6")
def test_it_is_what_was_talked_about_last_although_its_alerts_are_on_the_screen(talk: Talk) -> None:
    assert talk.text("alerts of [2]", alert("a", 31), alert("b", 31)) == "alerts of incident 31"
    assert talk.text("who owns it") == "who owns incident 31"
    assert talk.text("details of [1]") == "details of alert a"
    assert talk.text("which incident does it belong to") == "which incident does alert a belong to"


@pytest.mark.requirement("CHAT-6")
def test_a_list_that_came_after_makes_it_unclear(talk: Talk) -> None:
    talk.say("who owns [2]")
    talk.say("list high incidents", incident(40), incident(18))
    assert talk.choices("its alerts") == ["40", "18", "31"]


@pytest.mark.requirement("CHAT-6")
def test_a_pronoun_stands_for_what_the_same_sentence_names(talk: Talk) -> None:
    assert talk.text("what is incident 12 about and how many alerts has it?") == (
        "what is incident 12 about and how many alerts has incident 12?"
    )
    assert talk.text("is m.keller an admin and what did he do with his mailbox").endswith("his mailbox")


@pytest.mark.requirement("CHAT-6")
def test_compare_it_with_another_is_the_focus_and_the_other(talk: Talk) -> None:
    talk.say("who owns [1]")
    assert talk.text("compare it with incident 31") == "compare incident 40 with incident 31"
    assert talk.text("alerts of both") == "alerts of incident 40 and incident 31"


@pytest.mark.requirement("CHAT-6")
def test_the_other_of_two(talk: Talk) -> None:
    talk.say("compare [1] and [3]")
    talk.say("who owns [3]")
    assert talk.text("and the other one?") == "who owns incident 40"
    assert talk.text("alerts of the other incident") == "alerts of incident 18"


@pytest.mark.requirement("CHAT-6")
def test_the_other_of_three_is_asked_back(talk: Talk) -> None:
    talk.say("who owns [1]")
    assert talk.choices("who owns the other one") == ["31", "18"]


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("correction", "text"),
    [
        ("no, the first one", "who owns incident 40"),
        ("sorry, [3]", "who owns incident 18"),
        ("I meant incident 34", "who owns incident 34"),
        ("not that one, the third", "who owns incident 18"),
        ("not [2], [3]", "who owns incident 18"),
        ("actually #18", "who owns incident 18"),
        ("the first one, I meant", "who owns incident 40"),
        ("no, the last one", "who owns incident 18"),
    ],
)
def test_a_correction_asks_the_last_question_about_the_other_thing(talk: Talk, correction: str, text: str) -> None:
    talk.say("who owns [2]")
    assert talk.text(correction) == text


@pytest.mark.requirement("CHAT-6")
def test_a_correction_counts_in_the_list_that_was_pointed_into(talk: Talk) -> None:
    talk.say("details of [2]", alert("a", 31), alert("b", 31))
    assert talk.text("no, the first one", alert("c", 40)) == "details of incident 40"
    assert talk.text("no, [3]") == "details of incident 18"


@pytest.mark.requirement("CHAT-6")
def test_not_that_one_alone_is_asked_back_or_is_the_other_of_two(talk: Talk) -> None:
    talk.say("who owns [2]")
    assert talk.choices("not that one") == ["40", "18"]
    assert talk.text("[3]") == "who owns incident 18"
    talk.say("list closed incidents", incident(7), incident(23))
    talk.say("status of [1]")
    assert talk.text("wrong one") == "status of incident 23"


@pytest.mark.requirement("CHAT-6")
def test_and_the_next_asks_the_same_again(talk: Talk) -> None:
    talk.say("who owns [1]")
    assert talk.text("and [2]?") == "who owns incident 31"
    assert talk.text("what about the next one?") == "who owns incident 18"


@pytest.mark.requirement("CHAT-6")
def test_the_same_number_of_two_lists_is_asked_back_when_a_question_is_asked_again(talk: Talk) -> None:
    talk.say("details of [1]", incident(90), incident(91))
    assert talk.choices("and [2]?") == ["91", "31"]


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("[3]", "who owns incident 18"),
        ("the second one", "who owns incident 18"),
        ("18", "who owns incident 18"),
        ("incident 40", "who owns incident 40"),
        ("both", "who owns incident 40 and incident 18"),
    ],
)
def test_a_choice_completes_the_question_that_was_asked_back(talk: Talk, answer: str, text: str) -> None:
    assert talk.choices("who owns the high one") == ["40", "18"]
    assert talk.text(answer) == text


@pytest.mark.requirement("CHAT-6")
def test_another_question_drops_the_choice(talk: Talk) -> None:
    talk.choices("who owns the high one")
    assert talk.text("list incidents") == "list incidents"
    assert talk.references.choices is None


@pytest.mark.requirement("CHAT-6")
def test_lists_of_before_are_reached_by_their_kind_and_place(talk: Talk) -> None:
    talk.say("newest alerts", alert("a", 7), alert("b", 8))
    talk.say("top accounts", entity_item("account", "m.keller"), entity_item("account", "svc-backup"))
    assert talk.text("[1]") == 'account "m.keller"'
    assert talk.text("[2] of the first list") == "incident 31"
    assert talk.text("details of [2] of the alert list") == "details of alert b"
    assert talk.text("who owns [3] of the list of incidents") == "who owns incident 18"
    assert talk.text("[1] of the previous list") == "alert a"
    assert talk.text("alerts of the incidents from before") == "alerts of incident 40, incident 31 and incident 18"


@pytest.mark.requirement("CHAT-6")
def test_a_noun_finds_the_newest_list_of_its_kind(talk: Talk) -> None:
    talk.say("top hosts", entity_item("host", "web-03"), entity_item("host", "dc-01"))
    assert talk.text("alerts of the second incident") == "alerts of incident 31"
    assert talk.text("alerts of the second host") == 'alerts of host "dc-01"'


@pytest.mark.requirement("CHAT-6")
def test_an_entity_of_an_answer_can_be_pointed_at_if_it_is_the_only_one(talk: Talk) -> None:
    talk.say("details of [2]")
    talk.references.mention(
        [entity_item("host", "web-03"), entity_item("account", "m.keller"), entity_item("account", "x")]
    )
    assert talk.text("alerts for that host") == 'alerts for host "web-03"'
    assert talk.choices("alerts for that account") == ["m.keller", "x"]
    assert talk.text("m.keller") == 'alerts for account "m.keller"'


def test_the_next_page_goes_on_numbering(talk: Talk) -> None:
    talk.say("show more", incident(12), incident(7), first=3)
    assert talk.text("who owns [4]") == "who owns incident 12"
    assert talk.text("who owns [1]") == "who owns incident 40"


def test_a_number_that_is_a_place_and_an_incident_is_asked_back(talk: Talk) -> None:
    talk.say("list", incident(2), incident(31), incident(18))
    assert talk.choices("who owns 2") == ["31", "2"]
    assert talk.text("incident 2") == "who owns incident 2"


def test_an_alert_where_an_incident_is_meant_is_asked_back(talk: Talk) -> None:
    fresh = Talk()
    fresh.say("newest alerts", alert("a", 40), alert("b", 31))
    assert fresh.choices("who owns incident [2]") == ["31"]
    assert fresh.text("yes") == "who owns incident 31"


def test_memory_is_bounded_in_every_direction() -> None:
    references = References()
    for turn in range(200):
        remember("q", resolve("q", references, now=NOW), references)
        references.show_list([incident(number) for number in range(turn * 50, turn * 50 + 50)])
        references.focus_on(incident(turn))
        references.mention(entity_item("host", f"h{turn}-{place}") for place in range(20))
    assert len(references.lists) <= 30
    assert sum(len(each.items) for each in references.lists) <= 1_200
    assert len(references.focused) <= 60
    assert len(references.mentioned) <= 200
    assert references.screen_number == 200
    assert resolve("[1] of the first list", references, now=NOW).ask
    assert resolve("[1]", references, now=NOW).text == "incident 9950"


def test_an_id_of_any_length_ends_in_no_line_of_its_own() -> None:
    references = References()
    references.show_list([entity_item("process", "x" * 5_000), entity_item("process", "cmd.exe")])
    assert resolve("alerts of [1]", references, now=NOW).ask
    assert resolve("alerts of [2]", references, now=NOW).text == 'alerts of process "cmd.exe"'


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("details of [2] from the very first list", "details of incident 31"),
        ("details of the last in the list", "details of alert b"),
        ("alerts of the last in the list", "alerts of incident 18"),
        ("details of [2] of the list at the beginning", "details of incident 31"),
        ("what incident is the alert part of", "what incident is alert a part of"),
        ("when did the alert happen", "when did alert a happen"),
    ],
)
def test_things_and_lists_inside_a_sentence(talk: Talk, question: str, text: str) -> None:
    talk.say("newest alerts", alert("a", 7), alert("b", 8))
    talk.say("details of [1]")
    assert talk.text(question) == text


@pytest.mark.requirement("CHAT-6")
def test_a_list_that_is_named_in_words_nobody_knows_is_asked_back(talk: Talk) -> None:
    assert talk.say("details of [2] of the list with the servers").ask
    assert talk.say("details of [2] in yesterday's big list").ask
    assert talk.text("compare [1] of the first list with [2]") == "compare incident 40 with incident 31"


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    "question", ["status of m.keller's one", "status of the one m.keller owns", "the one m.keller has"]
)
def test_an_owner_in_other_words(question: str) -> None:
    talk = Talk()
    rows = [{"number": 1, "title": "A", "owner": "m.keller"}, {"number": 2, "title": "B", "owner": "Ines Duarte"}]
    talk.say("list incidents", *map(incident_item, rows))
    assert talk.text(question).endswith("incident 1")


@pytest.mark.requirement("CHAT-6")
def test_unlike_things_are_not_set_side_by_side(talk: Talk) -> None:
    talk.say("details of [2]", alert("a", 31), alert("b", 31))
    asked = talk.say("is it worse than [1]")
    assert "different kinds" in asked.ask
    assert "alert a" in asked.ask


def test_no_with_a_full_stop_and_a_number_is_a_number(talk: Talk) -> None:
    assert talk.text("who owns no. 2") == "who owns incident 31"
    assert talk.text("no. 3") == "incident 18"
    assert talk.text("no, 1") == "incident 40"
