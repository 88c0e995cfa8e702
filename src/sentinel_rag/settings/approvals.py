"""How approvals are asked for: how long one waits, and the webhook that is told of it."""

from __future__ import annotations

from sentinel_rag.settings.shapes import Secret
from sentinel_rag.settings.workspace_file import http_url


def approval_ttl(text: str) -> float:
    if not text.isascii() or not text.isdecimal() or not 60 <= int(text[:9]) <= 86_400:
        raise ValueError(f"{text!r} is not a whole number of seconds from 60 to 86400")
    return float(text)


def webhook_address(text: str) -> str:
    """`http_url`, and unchanged: a receiver may tell `/hook/` from `/hook`."""
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise ValueError("it holds a user name or password, which would stand in logs; sign with the secret instead")
    http_url(text)
    return text


def webhook_signing_secret(text: str) -> Secret:
    if len(text) < 32:
        raise ValueError("is shorter than 32 characters, so it could be guessed")
    return Secret(text)
