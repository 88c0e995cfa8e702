from __future__ import annotations

import pytest

from sentinel_rag.contracts.servers import Refused, RequestAuthenticator, is_own_host, is_own_origin, same_secret


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


TOKEN = "a-token-of-the-tests"
HERE = (b"host", b"127.0.0.1:8787")


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ([HERE, (b"authorization", b"Bearer a-token-of-the-tests")], None),
        ([HERE, (b"authorization", b"bearer a-token-of-the-tests")], None),
        ([HERE, (b"origin", b"http://localhost:1"), (b"authorization", b"Bearer a-token-of-the-tests")], None),
        ([HERE], Refused.BEARER),
        ([HERE, (b"authorization", b"Basic a-token-of-the-tests")], Refused.BEARER),
        ([HERE, (b"authorization", b"a-token-of-the-tests")], Refused.BEARER),
        ([HERE, (b"authorization", b"Bearer a-token-of-the-test\xff")], Refused.BEARER),
        ([HERE, *[(b"authorization", b"Bearer a-token-of-the-tests")] * 2], Refused.BEARER),
        ([HERE, (b"origin", b"https://attacker.example")], Refused.ORIGIN),
        ([(b"host", b"attacker.example"), (b"authorization", b"Bearer a-token-of-the-tests")], Refused.HOST),
        ([], Refused.HOST),
    ],
)
def test_a_request_must_come_from_here_and_bear_the_token(
    headers: list[tuple[bytes, bytes]], refused: Refused | None
) -> None:
    assert RequestAuthenticator(token=TOKEN).refused(headers) is refused


@pytest.mark.parametrize("token", ["", "short"])
def test_no_server_starts_with_a_token_that_could_be_guessed(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        RequestAuthenticator(token=token)


def test_an_empty_secret_is_nobodys() -> None:
    assert same_secret("secret", "secret")
    assert not same_secret("", "")
