"""Which list and which number a correction means, and that choices nobody picked are no topic."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sentinel_rag.agent.references import ListItem, References, Resolution, incident_item, remember, resolve

pytestmark = pytest.mark.requirement("CHAT-6")
NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)


def incident(number: int, title: str = "", created: str = "") -> ListItem:
    return incident_item(
        {"number": number, "title": title or f"Case {number}", "severity": "High", "created_time": created}
    )


def say(references: References, question: str, *shown: ListItem, focus: ListItem | None = None) -> Resolution:
    resolution = resolve(question, references, now=NOW)
    remember(question, resolution, references)
    if shown:
        references.show_list(shown)
    if focus is not None:
        references.focus_on(focus)
    return resolution


@pytest.mark.parametrize("between", [(), ("thanks",), ("who closed 125?",)])
@pytest.mark.parametrize("correction", ["no, the second one", "no, [2]", "sorry, the second", "I meant [2]"])
def test_a_list_that_a_later_question_brought_is_the_one_that_a_correction_counts_in(
    between: tuple[str, ...], correction: str
) -> None:
    references = References()
    say(references, "list open incidents", incident(126), incident(127), incident(124))
    say(references, "details of [1]")
    say(references, "list high incidents", incident(124), incident(116), incident(108))
    for question in between:
        say(references, question)
    corrected = say(references, correction)
    assert [item.value for item in corrected.items] == ["116"]
    assert "127" not in corrected.text


def test_a_list_about_the_thing_that_was_pointed_at_does_not_take_the_place_of_its_list() -> None:
    references = References()
    say(references, "list open incidents", incident(126), incident(127))
    say(references, "incidents like [1]", incident(9), incident(10))
    assert say(references, "no, [2]").text == "incidents like incident 127"


@pytest.mark.parametrize(
    "correction",
    ["not 55, 38", "38, not 55", "no, not 55, 38", "not #55 but 38", "sorry, 38", "not 55 - 38", "I meant 38"],
)
@pytest.mark.parametrize("question", ["is incident {} closed?", "who owns incident {}?", "alerts of case {}"])
def test_numbers_that_correct_an_incident_number_are_incidents(correction: str, question: str) -> None:
    references = References()
    say(references, question.format(55))
    corrected = say(references, correction)
    assert [item.value for item in corrected.items] == ["38"]
    assert "55" not in corrected.text
    assert "incident 38" in corrected.text


def test_numbers_that_correct_a_line_are_lines() -> None:
    references = References()
    say(references, "list open incidents", incident(126), incident(127), incident(124))
    say(references, "who owns [2]")
    assert say(references, "not [2], [3]").text == "who owns incident 124"
    assert "incident 3" not in say(references, "not 2, 3").text


def test_a_number_is_no_incident_where_the_last_question_named_none() -> None:
    references = References()
    say(references, "how many alerts are there?")
    assert say(references, "not 55, 38").items == ()


def test_them_are_the_two_that_were_spoken_of_one_after_the_other() -> None:
    references = References()
    say(references, "is incident 55 closed?")
    say(references, "not 55, 38")
    assert say(references, "compare them").text == "compare incident 55 and incident 38"


def test_them_are_asked_back_where_two_others_were_spoken_of_since_the_list() -> None:
    references = References()
    say(references, "list closed incidents", incident(7), incident(9))
    say(references, "is incident 55 closed?")
    say(references, "not 55, 38")
    asked = say(references, "compare them")
    assert [item.value for item in asked.choices] == ["55", "38", "7", "9"]
    say(references, "list closed incidents", incident(7), incident(9))
    say(references, "who owns [1]")
    say(references, "who owns [2]")
    assert say(references, "compare them").text == "compare incident 7 and incident 9"


@pytest.mark.parametrize("pronoun", ["its owner?", "who owns it?", "who owns that one?"])
def test_choices_that_nobody_picked_do_not_become_the_topic(pronoun: str) -> None:
    references = References()
    say(references, "list incidents", incident(4, "Click here"), incident(2, "Incident 9 is benign"), incident(7))
    say(references, "details of the click one", incident(4, "Click here"))
    say(references, "list closed incidents", incident(7))
    say(references, "who owns incident 4?")
    asked = say(references, "details of the benign one")
    assert [item.value for item in asked.choices] == ["2"]
    again = say(references, pronoun)
    assert again.ask
    assert [item.value for item in again.choices] == ["2", "4"]
    assert say(references, "[2]").items[0].value == "4"


def test_a_choice_that_is_picked_is_the_topic() -> None:
    references = References()
    say(references, "list incidents", incident(4, "Click here"), incident(2, "Port scan"))
    say(references, "list closed incidents", incident(7))
    assert say(references, "details of the scan one").choices
    assert say(references, "[1]").text == "details of incident 2"
    assert say(references, "who owns it").text == "who owns incident 2"


@pytest.mark.parametrize(("picked", "means"), [("[2]", "4"), ("[1]", "2"), ("incident 2", "2"), ("4", "4"), ("1", "2")])
def test_a_number_in_brackets_is_a_line_also_where_an_incident_has_that_number(picked: str, means: str) -> None:
    references = References()
    say(references, "list incidents", incident(2, "Mail forwarded"), incident(4, "Mail deleted"))
    say(references, "list closed incidents", incident(7))
    say(references, "who owns incident 7")
    references.ask_to_choose((incident(2), incident(4)), (1, 2), references.asked)
    assert [item.value for item in say(references, picked).items] == [means]


def test_a_bare_number_that_is_both_a_line_and_an_incident_is_asked_back() -> None:
    references = References()
    say(references, "list incidents", incident(2), incident(4))
    say(references, "who owns [1]")
    references.ask_to_choose((incident(2), incident(4)), (1, 2), references.asked)
    asked = say(references, "2")
    assert asked.ask
    assert {item.value for item in asked.choices} == {"2", "4"}
