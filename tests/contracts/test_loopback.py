from __future__ import annotations

import pytest

from sentinel_rag.contracts.loopback import is_own_host, is_own_origin


@pytest.mark.parametrize(
    ("hosts", "own"),
    [
        (["127.0.0.1"], True),
        (["127.0.0.1:8787"], True),
        (["LOCALHOST:8787"], True),
        (["[::1]"], True),
        (["[::1]:8787"], True),
        ([], False),
        ([""], False),
        (["127.0.0.1", "127.0.0.1"], False),
        (["127.0.0.1", "attacker.example"], False),
        (["attacker.example"], False),
        (["127.0.0.1.attacker.example"], False),
        (["127.0.0.1@attacker.example"], False),
        (["attacker.example@127.0.0.1"], False),
        (["127.0.0.1/attacker.example"], False),
        (["127.0.0.1 attacker.example"], False),
        (["[::1"], False),
        (["[::ffff:203.0.113.1]"], False),
        (["127.0.0.1:99999999"], False),
        (["127.0.0.1\n"], False),
    ],
)
def test_only_one_host_that_names_this_machine_is_its_own(hosts: list[str], own: bool) -> None:
    assert is_own_host(hosts) is own


@pytest.mark.parametrize(
    ("origins", "own"),
    [
        ([], True),
        (["http://127.0.0.1:8787"], True),
        (["http://[::1]:8787"], True),
        (["null"], False),
        ([""], False),
        (["127.0.0.1"], False),
        (["https://attacker.example"], False),
        (["https://127.0.0.1.attacker.example"], False),
        (["http://127.0.0.1:8787", "https://attacker.example"], False),
    ],
)
def test_a_page_of_another_host_is_foreign(origins: list[str], own: bool) -> None:
    assert is_own_origin(origins) is own


def test_a_server_may_go_by_a_name_of_its_own() -> None:
    assert is_own_host(["gateway.example:443"], {"gateway.example"})
    assert not is_own_host(["127.0.0.1:443"], {"gateway.example"})
