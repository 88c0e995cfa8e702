"""What the web surface's process is told, and where the accounts and conversations of people lie in a home."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.app.state_place import journal_place
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.audit import Verification

OWNER_SCOPES = ("user", "approver", "audit", "admin")
"""The run's keys that whoever started it uses, as at the terminal."""


KEPT_OF_PEOPLE = 10_000
"""How many conversations the agent remembers where many people have theirs."""


def people_folder(home: Path) -> Path:
    """Where accounts and sign-ins lie."""
    return home / "people"


def record_file(home: Path) -> Path:
    """Where what people asked and were answered lies."""
    return home / "web" / "conversations.sqlite"


def web_configuration(settings: Settings, keys: Mapping[str, str]) -> dict[str, Any]:
    """The web surface's share of its configuration line. Raises UsageError where the gateway is elsewhere: then no
    key for a person can be made here."""
    if settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set: people's keys are made on the machine where that gateway runs.",
            next_step="Run sentinel up --web there, or unset SENTINEL_URL.",
        )
    oidc = settings.oidc
    return {
        "people": str(people_folder(settings.home)),
        "record": str(record_file(settings.home)) if settings.chat_keep_days else None,
        "keep_days": settings.chat_keep_days or 1,
        "public_url": settings.web_url,
        "owner_keys": {key_id: keys[key_id] for key_id in OWNER_SCOPES},
        "anchor": None if settings.audit_anchor is None else str(settings.audit_anchor),
        "oidc": None
        if oidc is None
        else {
            "issuer": oidc.issuer,
            "client_id": oidc.client_id,
            "client_secret": None if oidc.client_secret is None else oidc.client_secret.reveal(),
            "claim": oidc.claim,
        },
    }


def journal_check(configuration: Mapping[str, Any]) -> Callable[[], Verification]:
    """What checks the journal of a home, from where it is."""
    from sentinel_rag.audit import JournalReader

    reader = JournalReader(journal_place(configuration["database"], Path(configuration["state_folder"])))
    anchor = None if configuration["anchor"] is None else Path(configuration["anchor"])
    return lambda: reader.verify(public_key=None, anchor=anchor)
