"""`sentinel users`: the accounts of people who sign in to the web surface, whether or not it runs.

Each account has a key at the gateway with the scopes of its roles, made and revoked here; its text is sealed into
the file of accounts and never printed. A running surface and gateway see every change at their next request.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from sentinel_rag.app.places import database_configuration, people_database, people_folder, record_schema
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.app.zones import key_store
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import KeyStore, Scope
from sentinel_rag.gateway.store.keys import RUN_KEY_IDS
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.storage import Records
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.rendering.visible import safe_cell
from sentinel_rag.surfaces.users import (
    Account,
    AccountChanges,
    AccountTerms,
    Passwords,
    Role,
    UserStore,
    check_new_password,
    checked_groups,
    owner_link,
)

COLUMNS = ("name", "roles", "state", "clearance", "groups", "signs in with", "key", "created")


def add(
    name: str,
    *,
    roles: Sequence[str] | None,
    clearance: str,
    groups: Sequence[str] | None,
    oidc: str | None,
    password_stdin: bool,
    as_json: bool,
) -> int:
    """Make an account and its key."""
    with _stores() as (people, keys):
        people.check_free(name, oidc)  # before a password is asked for
        checked_groups(groups or ())
        if oidc is not None and password_stdin:
            raise UsageError(
                "Who signs in at the identity provider has no password here.", next_step="Leave out one of the two."
            )
        password = None if oidc is not None else _new_password(name, from_stdin=password_stdin)
        account = AccountChanges(people, keys).add(
            name,
            _terms(roles, clearance, groups),
            password=None if password is None else Passwords().hash(password),
            oidc_name=oidc,
        )
    _told(account, f"The account {account.name} is made: {_roles(account)}.", as_json)
    if oidc is None and not as_json:
        print("It signs in with this name and password where sentinel up --web serves.")
    if oidc is not None and load_settings().oidc is None:
        print("No identity provider is set yet: SENTINEL_OIDC_ISSUER, SENTINEL_OIDC_CLIENT_ID.", file=sys.stderr)
    return 0


def show_all(*, as_json: bool) -> int:
    """Print every account; 3 if there is none."""
    with _stores() as (people, _):
        found = [account.to_dict() for account in people.list()]
    if as_json:
        print_json(found)
    elif found:
        order = ("name", "roles", "state", "clearance", "groups", "signs_in_with", "key_id", "created_at")
        print_table(COLUMNS, [tuple(safe_cell(_text(each[key])) for key in order) for each in found])
    else:
        print("There are no accounts. Make one: sentinel users add NAME")
    return 0 if found else 3


def change(
    name: str, *, roles: Sequence[str] | None, clearance: str, groups: Sequence[str] | None, as_json: bool
) -> int:
    """Give an account other terms, and a new key that has their scopes."""
    with _stores() as (people, keys):
        was_disabled = people.find(name).disabled_at
        changed = AccountChanges(people, keys).change(name, _terms(roles, clearance, groups))
    live = " It was disabled and is live again." if was_disabled else ""
    _told(changed, f"The account {changed.name} has other terms: {_roles(changed)}.{live}", as_json)
    return 0


def disable(name: str, *, as_json: bool) -> int:
    """End an account, its sign-ins and its key."""
    with _stores() as (people, keys):
        ended = AccountChanges(people, keys).disable(name)
    _told(ended, f"The account {ended.name} is disabled; its sign-ins, tokens and key have ended.", as_json)
    return 0


def reset(name: str, *, password_stdin: bool, as_json: bool) -> int:
    """Set another password; every sign-in of the account ends."""
    with _stores() as (people, keys):
        changes = AccountChanges(people, keys)
        account = changes.check_reset(name)
        account = changes.reset(name, Passwords().hash(_new_password(account.name, from_stdin=password_stdin)))
    _told(account, f"The password of {account.name} is another one; every sign-in of the account has ended.", as_json)
    return 0


def link(*, as_json: bool) -> int:
    """Print a link that signs the owner in to the web surface of this home, once."""
    settings = load_settings()
    state = RunFolder(settings.home).read()
    zone = None if state is None else state.zone("web")
    if state is None or zone is None:
        raise UnavailableError("No web surface runs with this home folder.", next_step="Run: sentinel up --web")
    url = f"{settings.web_url or zone.url}{owner_link(state.web_secret, utc_now())}"
    print(json.dumps({"url": url}) if as_json else url)
    return 0


@contextmanager
def _stores() -> Iterator[tuple[UserStore, _StoredKeys]]:
    settings: Settings = load_settings()
    if settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set: accounts lie on the machine where that gateway runs.",
            next_step="Run sentinel users there, or unset SENTINEL_URL for the gateway of this home.",
        )
    with (
        closing(UserStore(people_folder(settings.home), clock=utc_now, records=_accounts(settings))) as people,
        closing(key_store(settings)) as keys,
    ):
        yield people, _StoredKeys(keys)


def _accounts(settings: Settings) -> Records | None:
    from sentinel_rag.surfaces.users.store import MIGRATIONS

    database = people_database(database_configuration(settings))
    return record_schema(database, "people", MIGRATIONS, what="The accounts")


def _terms(roles: Sequence[str] | None, clearance: str, groups: Sequence[str] | None) -> AccountTerms:
    return AccountTerms(frozenset(map(Role, roles or [Role.ANALYST])), Sensitivity[clearance], tuple(groups or ()))


@dataclass(frozen=True, slots=True)
class _StoredKeys:
    """The keys where they are stored, changed by whoever may write there."""

    store: KeyStore

    def make(
        self, name: str, scopes: Collection[Scope], clearance: Sensitivity, readers: Collection[str], replaces: str
    ) -> tuple[str, str]:
        text, info = self.store.create(
            scopes,
            name=name,
            clearance=clearance,
            for_key=RUN_KEY_IDS[0] if Scope.USER in scopes else None,
            readers=readers,
            unique_name=not replaces,
            by=_who(),
        )
        self.end(replaces)
        return text, info.key_id

    def rotate(self, key_id: str) -> str | None:
        made = self.store.rotate(key_id, by=_who())
        return None if made is None else made[0]

    def end(self, key_id: str) -> None:
        self.store.revoke(key_id, by=_who())


def _new_password(name: str, *, from_stdin: bool) -> str:
    """A password from the person at the terminal, or a line of standard input. Raises UsageError."""
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif not sys.stdin.isatty():
        raise UsageError(
            "There is no terminal to ask for a password.", next_step="Pipe it in and add --password-stdin."
        )
    else:
        from getpass import getpass

        password = getpass(f"Password for {name}: ")
        if getpass("The same again: ") != password:
            raise UsageError("The two are not the same.", next_step="Run the command again.")
    check_new_password(password, name)
    return password


def _who() -> str:
    return f"command line, user {os.getuid()}"


def _told(account: Account, sentence: str, as_json: bool) -> None:
    print(json.dumps(account.to_dict()) if as_json else safe_cell(sentence))


def _roles(account: Account) -> str:
    return ", ".join(sorted(account.roles))


def _text(value: object) -> str:
    return (", ".join(map(str, value)) if isinstance(value, list) else str(value)) or "-"
