"""How people reach the web surface and sign in: its public address, and an identity provider of OpenID Connect."""

from __future__ import annotations

from urllib.parse import urlsplit

from sentinel_rag.settings.shapes import OidcSettings, Secret
from sentinel_rag.settings.values import Reader
from sentinel_rag.settings.workspace_file import http_url


def public_url(text: str) -> str:
    """An address without a path, https unless it is this machine's. Raises ValueError."""
    url = http_url(text)
    parts = urlsplit(url)
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it is to be no more than https://HOST or https://HOST:PORT")
    return url


def _issuer(text: str) -> str:
    """`http_url`, and unchanged: an ID token names its issuer letter by letter."""
    http_url(text)
    return text


def _one_word(text: str) -> str:
    if len(text) > 500 or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("holds a blank or a character that cannot be sent: copy it again")
    return text


def read_oidc(reader: Reader) -> OidcSettings | None:
    """The identity provider; None where none is set."""
    read = reader.read
    issuer = read("SENTINEL_OIDC_ISSUER", _issuer, "")
    client_id = read("SENTINEL_OIDC_CLIENT_ID", _one_word, "")
    secret = read("SENTINEL_OIDC_CLIENT_SECRET", lambda text: Secret(_one_word(text)), None)
    claim = read("SENTINEL_OIDC_CLAIM", _one_word, "email")
    if not issuer and not client_id:
        return None
    if not (issuer and client_id):
        missing = "SENTINEL_OIDC_CLIENT_ID" if issuer else "SENTINEL_OIDC_ISSUER"
        reader.problems.append(f"{missing}: is missing; an identity provider needs its address and our client id there")
        return None
    return OidcSettings(issuer, client_id, secret, claim)
