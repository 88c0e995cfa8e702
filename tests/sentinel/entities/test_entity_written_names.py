"""Providers that write a person's name where others write the login: the reader is told both."""

from __future__ import annotations

import pytest

from sentinel_rag.sentinel.entities.entities import Entity, shown_properties


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ({"Name": "Ana Lima", "AccountName": "ana"}, {"account_name": "ana", "display_name": "Ana Lima"}),
        (
            {"Name": "Ana Lima", "AccountName": "ana", "DisplayName": "Ana M. Lima"},
            {"account_name": "ana", "display_name": "Ana M. Lima"},
        ),
        ({"Name": "ana"}, {"account_name": "ana"}),
    ],
)
def test_a_name_with_a_space_is_a_display_name(written: dict[str, str], shown: dict[str, str]) -> None:
    assert shown_properties(Entity("account", written)) == shown
