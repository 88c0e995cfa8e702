"""In which list a correction counts, after a question that pointed into an earlier one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sentinel_rag.agent.references import ListItem, References, Resolution, remember, resolve

pytestmark = pytest.mark.requirement("CHAT-6")
NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)


def say(references: References, question: str, *shown: ListItem) -> Resolution:
    resolution = resolve(question, references, now=NOW)
    remember(question, resolution, references)
    if shown:
        references.show_list(shown)
    return resolution


def incidents(*numbers: str) -> tuple[ListItem, ...]:
    return tuple(ListItem("incident", number, incident=number) for number in numbers)


@pytest.mark.parametrize("correction", ["sorry, [2]", "wrong one, [2]", "no, the second one", "I meant [2]"])
def test_a_correction_counts_in_the_list_that_has_things_of_its_kind(correction: str) -> None:
    references = References()
    say(references, "list incidents", *incidents("23", "7"))
    say(references, "list the newest alerts", *(ListItem("alert", f"a{place}") for place in range(1, 4)))
    say(references, "who owns the first one of the first list")
    corrected = say(references, correction)
    assert [(item.kind, item.value) for item in corrected.items] == [("incident", "7")]
    assert corrected.text == "who owns incident 7"


def test_where_both_lists_have_such_a_thing_it_is_asked_back() -> None:
    references = References()
    say(references, "list incidents", *incidents("23", "7"))
    say(references, "list high incidents", *incidents("40", "18"))
    say(references, "who owns the first one of the first list")
    corrected = say(references, "sorry, [2]")
    assert not corrected.items
    assert {item.value for item in corrected.choices} == {"7", "18"}
