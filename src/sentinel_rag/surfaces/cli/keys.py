"""`sentinel keys`: make, list, rotate and revoke the API keys of this home's gateway, whether or not it runs.

It works on the key file itself; a running gateway sees a change at its next request and puts it on record. The text
of a key is printed once, when it is made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.app.zones import key_store
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import KeyInfo, KeyStore, Scope
from sentinel_rag.gateway.store.keys import RUN_KEY_IDS
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.rendering.visible import safe_cell

MAX_DAYS = 3_650
MAX_OVERLAP_MINUTES = 43_200


def create(
    name: str,
    scope: Sequence[str],
    *,
    clearance: str | None,
    expires: int | None,
    rate: Rate | None,
    for_key: str | None,
    reader: Sequence[str],
    as_json: bool,
) -> int:
    """Make a key and print its text."""
    user = Scope.USER in scope
    if name in RUN_KEY_IDS:
        raise UsageError(
            f"The name {name!r} belongs to a key that each run makes by itself.", next_step="Choose another name."
        )
    if clearance is not None and not user:
        raise UsageError(
            "A clearance is for keys that speak for a person.", next_step="Add --scope user, or leave --clearance out."
        )
    _in_range("--expires", expires, MAX_DAYS)
    with _keys() as keys:
        agent = _id_of_agent(keys, for_key or RUN_KEY_IDS[0]) if user or for_key else None
        text, info = keys.create(
            list(map(Scope, scope)),
            name=name,
            clearance=Sensitivity[clearance or Sensitivity.MEDIUM.name],
            rate=rate,
            expires_in=None if expires is None else timedelta(days=expires),
            for_key=agent,
            readers=reader,
            unique_name=True,
            by=_who(),
        )
    _print_text(text, info, "is made", as_json)
    return 0


def show_all(*, as_json: bool) -> int:
    """Print every key ever made, oldest first; 3 if there is none."""
    with _keys() as keys:
        found = keys.list()
    now = utc_now()
    if as_json:
        print_json([_as_json(info, now) for info in found])
    elif found:
        columns = (
            "key",
            "name",
            "scopes",
            "state",
            "clearance",
            "rate",
            "for",
            "reads as",
            "created",
            "rotated",
            "expires",
        )
        print_table(columns, [_row(info, now) for info in found])
    else:
        print("No key is stored. Each run of sentinel makes the keys that it needs by itself.")
    return 0 if found else 3


def rotate(key: str, *, overlap: int, as_json: bool) -> int:
    """Give a key a new secret and print its text; the old one works for the overlap."""
    if not 0 <= overlap <= MAX_OVERLAP_MINUTES:
        raise UsageError(f"--overlap takes 0 to {MAX_OVERLAP_MINUTES} minutes.", next_step="Give such a number.")
    with _keys() as keys:
        found = _find(keys, key)
        rotated = keys.rotate(found.key_id, overlap=timedelta(minutes=overlap), by=_who())
    if rotated is None:
        raise _ended(found)
    old = f"the old text works for {overlap} min more" if overlap else "the old text works no more"
    _print_text(*rotated, f"is rotated; {old}", as_json)
    return 0


def revoke(key: str, *, as_json: bool) -> int:
    """End a key at once and for good."""
    with _keys() as keys:
        found = _find(keys, key)
        if not keys.revoke(found.key_id, by=_who()):
            raise _ended(found)
        now_revoked = keys.find(found.key_id) or found
    if as_json:
        print(json.dumps(_as_json(now_revoked, utc_now())))
    else:
        print(f"The key {_label(found)} is revoked. A running gateway refuses it from its next request on.")
    return 0


@contextmanager
def _keys() -> Iterator[KeyStore]:
    settings = load_settings()
    if settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set: the keys of a gateway that runs elsewhere lie on its machine.",
            next_step="Run sentinel keys there, or unset SENTINEL_URL for the gateway of this home.",
        )
    with closing(key_store(settings)) as keys:
        yield keys


def _find(keys: KeyStore, text: str) -> KeyInfo:
    """The key with that id, or the live one with that name."""
    by_id = keys.find(text)
    if by_id is not None:
        return by_id
    named = [info for info in keys.list() if info.name == text]
    live = [info for info in named if info.state(utc_now()) == "live"]
    if len(live) == 1:
        return live[0]
    if live:
        ids = ", ".join(info.key_id for info in live)
        raise UsageError(f"Several keys are named {text!r}.", next_step=f"Give the id of one: {ids}.")
    if named:
        raise _ended(named[-1])
    raise UsageError(f"There is no key {text!r}.", next_step="See sentinel keys list for ids and names.")


def _id_of_agent(keys: KeyStore, text: str) -> str:
    if text in RUN_KEY_IDS[:1]:
        return text
    found = _find(keys, text)
    if Scope.EXECUTE not in found.scopes:
        raise UsageError(
            f"The key {_label(found)} runs no tools, so it has no sessions to open.",
            next_step="Name a key with the scope execute.",
        )
    return found.key_id


def _ended(info: KeyInfo) -> UsageError:
    state = info.state(utc_now())
    return UsageError(
        f"The key {_label(info)} is {state} and does not come back.",
        next_step="Make a new one with sentinel keys create.",
    )


def _in_range(option: str, value: int | None, largest: int) -> None:
    if value is not None and not 1 <= value <= largest:
        raise UsageError(f"{option} takes a whole number from 1 to {largest}.", next_step="Give such a number.")


def _who() -> str:
    return f"command line, user {os.getuid()}"


def _label(info: KeyInfo) -> str:
    return f"{info.key_id} ({info.name})" if info.name else info.key_id


def _print_text(text: str, info: KeyInfo, what: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**_as_json(info, utc_now()), "key": text}))
        return
    print(f"The key {_label(info)} {what}. Scopes: {', '.join(sorted(info.scopes))}.\n\n{text}\n")
    print("Keep it now: it is not stored and cannot be shown again. Send it in the header X-API-Key.")


def _as_json(info: KeyInfo, now: datetime) -> dict[str, Any]:
    return {
        "key_id": info.key_id,
        "name": info.name,
        "state": info.state(now),
        **info.terms(),
        "created_at": info.created_at,
        "rotated_at": info.rotated_at,
        "revoked_at": info.revoked_at,
    }


def _row(info: KeyInfo, now: datetime) -> tuple[str, ...]:
    user = Scope.USER in info.scopes
    rate = "default" if info.rate is None else f"{info.rate.calls}/{info.rate.seconds:g} s"
    return tuple(
        safe_cell(text or "-")
        for text in (
            info.key_id,
            info.name,
            " ".join(sorted(info.scopes)),
            info.state(now),
            info.clearance.name if user else "",
            rate,
            info.for_key,
            ", ".join(sorted(info.readers)),
            info.created_at,
            info.rotated_at,
            info.expires_at,
        )
    )
