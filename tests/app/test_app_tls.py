"""A zone's certificate: which names it gives, what is refused, and how a renewed one is taken up."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.private_authority import Authority

from sentinel_rag.app.tls import Certificate, connection_here, trusting
from sentinel_rag.contracts.errors import ConfigurationError

pytestmark = pytest.mark.requirement("OPS-5")


def certificate(authority: Authority, name: str, *hosts: str) -> Certificate:
    files = authority.issue(name, *hosts)
    return Certificate(Path(files["SENTINEL_TLS_CERTIFICATE"]), Path(files["SENTINEL_TLS_KEY"]))


def proven_names(server: Certificate, authority: Authority) -> set[str]:
    """The names in the certificate that a client is shown now, in a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusted = trusting(authority.file)
    assert trusted is not None
    trusted.check_hostname = False
    client = trusted.wrap_bio(to_client, to_server)
    served = server.context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, served, client, served, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = client.getpeercert()
    assert shown
    return {str(name) for _, name in shown["subjectAltName"]}  # type: ignore[misc,has-type]  # pairs, as documented


def test_it_answers_to_the_names_and_addresses_it_is_made_out_to(tmp_path: Path) -> None:
    made = certificate(
        Authority(tmp_path), "interceptor", "Interceptor", "interceptor.soc.svc", "10.0.0.7", "fd00::0:7"
    )
    assert set(made.names) == {"interceptor", "interceptor.soc.svc", "10.0.0.7", "fd00::7"}


def test_a_wildcard_alone_does_not_say_who_this_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="made out to no host of its own") as caught:
        certificate(Authority(tmp_path), "any", "*.soc.svc")
    assert "wildcard" in caught.value.next_step


def test_a_key_of_another_certificate_and_a_file_that_is_none_are_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.issue("one"), authority.issue("other")
    with pytest.raises(ConfigurationError, match="cannot be used together"):
        Certificate(Path(one["SENTINEL_TLS_CERTIFICATE"]), Path(other["SENTINEL_TLS_KEY"]))
    with pytest.raises(ConfigurationError, match="is no PEM certificate"):
        Certificate(Path(one["SENTINEL_TLS_KEY"]), Path(one["SENTINEL_TLS_KEY"]))
    with pytest.raises(ConfigurationError, match="The authorities in"):
        trusting(one["SENTINEL_TLS_KEY"])


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    files = Authority(tmp_path).issue("locked")
    path = Path(files["SENTINEL_TLS_KEY"])
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"a passphrase"),
    )
    path.write_bytes(locked)
    with pytest.raises(ConfigurationError, match="it needs a passphrase"):
        Certificate(Path(files["SENTINEL_TLS_CERTIFICATE"]), path)


def test_a_renewed_certificate_is_taken_up_and_a_half_written_one_is_not(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    served = certificate(authority, "zone", "old.example")
    assert not served.renew(), "nothing has changed"
    assert proven_names(served, authority) == {"old.example"}

    (tmp_path / "zone.key").write_text("-----BEGIN PRIVATE KEY-----\nhalf of a")
    assert not served.renew()
    assert proven_names(served, authority) == {"old.example"}, "what is wrong changes nothing"

    authority.issue("zone", "new.example")
    assert served.renew()
    assert proven_names(served, authority) == {"new.example"}
    assert set(served.names) == {"new.example"}


def test_a_renewed_certificate_with_another_kind_of_key_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    served = certificate(authority, "zone", "old.example")
    authority.issue("zone", "new.example", key=rsa.generate_private_key(65_537, 2_048))
    assert served.renew()
    assert proven_names(served, authority) == {"new.example"}
    authority.issue("zone", "newest.example")
    assert served.renew()
    assert proven_names(served, authority) == {"newest.example"}


def test_this_machines_own_zone_is_known_by_its_very_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.issue("zone", "tools.soc.svc")
    assert type(connection_here("http://127.0.0.1:1", "", timeout=1)).__name__ == "HTTPConnection"
    made = connection_here("https://127.0.0.1:1", str(tmp_path / "zone.crt"), timeout=1)
    assert type(made).__name__ == "HTTPSConnection"


@pytest.mark.parametrize(("days", "said"), [(-3, "ended at "), (3, "begins only at ")])
def test_a_certificate_that_no_caller_would_take_now_is_told_at_the_start(tmp_path: Path, days: int, said: str) -> None:
    authority = Authority(tmp_path)
    served = certificate(authority, "zone", "good.example")
    Authority(tmp_path, authority.key, timedelta(days=days)).issue("zone", "other.example")
    with pytest.raises(ConfigurationError, match=said) as caught:
        Certificate(tmp_path / "zone.crt", tmp_path / "zone.key")
    assert "renewed" in caught.value.next_step
    assert not served.renew(), "the one that still holds goes on"
    assert proven_names(served, authority) == {"good.example"}
