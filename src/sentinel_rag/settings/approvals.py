"""How approvals are asked for: how long one waits, and the webhook that is told of it."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.settings.shapes import Secret
from sentinel_rag.settings.workspace_file import http_url


def approval_ttl(text: str) -> float:
    """60 to 86,400 whole seconds."""
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
    """A secret of at least 32 characters."""
    if len(text) < 32:
        raise ValueError("is shorter than 32 characters, so it could be guessed")
    return Secret(text)


def webhook_form_name(text: str) -> str:
    """`json` or `teams`."""
    if text not in ("json", "teams"):
        raise ValueError(f"{text!r} is not one of json, teams")
    return text


def card_problems(form: str, values: Mapping[str, str]) -> list[str]:
    """What else is set that a card in a channel must not do."""
    told = {
        "SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS": "a card in a channel holds no arguments; leave it out",
        "SENTINEL_APPROVAL_WEBHOOK_DECIDES": "a channel decides nothing; leave it out",
    }
    return [
        f"{name}: {why}" for name, why in told.items() if form == "teams" and values.get(name, "").strip() == "true"
    ]
