"""What stands beside a request: readers are a list of texts, or nobody's."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import is_reader_name
from sentinel_rag.contracts.servers import READERS, readers_in

pytestmark = pytest.mark.requirement("KNOW-4")


def test_readers_are_read_as_they_were_sent() -> None:
    assert readers_in({READERS: ["tier1", "hr", "hr"]}) == {"tier1", "hr"}


@pytest.mark.parametrize("value", [None, "hr", {"hr": True}, ["hr", 1], [["hr"]], [None], 7])
def test_anything_else_reads_as_nobody(value: Any) -> None:
    assert readers_in({READERS: value}) == frozenset()
    assert readers_in({"readers": ["hr"]}) == readers_in({}) == readers_in(None) == frozenset()


@pytest.mark.parametrize("name", ["tier1", "SOC Tier 2", "a.singh@contoso.example", "hr/legal", "é", "9"])
def test_names_of_people_teams_and_tiers_are_readers(name: str) -> None:
    assert is_reader_name(name)


@pytest.mark.parametrize("name", ["", "*", " hr", "hr ", "a,b", "a\nb", "-x", "_", "x" * 65, "a'b", "hr*"])
def test_what_stands_for_everybody_or_could_be_misread_is_no_reader(name: str) -> None:
    assert not is_reader_name(name)
