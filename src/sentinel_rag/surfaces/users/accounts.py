"""An account and a sign-in as values. Times are ISO 8601 in UTC."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.reader_names import READER_NAMES, is_reader_name
from sentinel_rag.gateway.store import Scope

OWNER = "owner"
"""Id and name of whoever runs `sentinel up` on this machine; no other account is named so."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?")


class Role(StrEnum):
    """What a person does here: ask, decide approvals, read the audit, look after the policy."""

    ANALYST = "analyst"
    APPROVER = "approver"
    AUDITOR = "auditor"
    ADMIN = "admin"


_SCOPES = {
    Role.ANALYST: Scope.USER,
    Role.APPROVER: Scope.APPROVE,
    Role.AUDITOR: Scope.AUDIT,
    Role.ADMIN: Scope.ADMIN,
}


def scopes_of(roles: Collection[Role]) -> frozenset[Scope]:
    """The scopes that the person's key at the gateway has."""
    return frozenset(_SCOPES[role] for role in roles)


@dataclass(frozen=True, slots=True)
class Account:
    """A person. `groups` are the names under which the person reads knowledge; `key_id` is the person's key at the
    gateway, empty for the owner, whose keys are made for each run. `oidc_name` is what the identity provider calls
    a person who signs in there."""

    user_id: str
    name: str
    roles: frozenset[Role]
    groups: tuple[str, ...] = ()
    clearance: Sensitivity = Sensitivity.MEDIUM
    created_at: str = ""
    disabled_at: str | None = None
    has_password: bool = False
    oidc_name: str | None = None
    key_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The form of `sentinel users list --json`."""
        return {
            "name": self.name,
            "roles": sorted(self.roles),
            "groups": list(self.groups),
            "clearance": self.clearance.name,
            "state": "disabled" if self.disabled_at else "live",
            "signs_in_with": [
                *(["password"] if self.has_password else []),
                *([] if self.oidc_name is None else [f"identity provider as {self.oidc_name}"]),
            ],
            "key_id": self.key_id,
            "created_at": self.created_at,
        }


@dataclass(frozen=True, slots=True)
class SignIn:
    """A browser that is signed in, or a program's token (`program`). `csrf` is what a browser's page sends back with
    each change; a program, which no other site can make send its token, needs none."""

    sign_in_id: str
    account: Account
    program: bool
    name: str
    csrf: str
    created_at: str
    used_at: str
    ends_at: str


def checked_name(text: str) -> str:
    """`text` as an account's name, in lower case. Raises UsageError."""
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{text!r} is no name for an account.",
            next_step="Use 1 to 64 letters a to z, digits or . _ @ -, with a letter or digit at both ends.",
        )
    if name == OWNER:
        raise UsageError(
            f"The name {OWNER!r} is that of whoever runs sentinel up here.", next_step="Choose another name."
        )
    return name


def checked_groups(texts: Collection[str]) -> tuple[str, ...]:
    """The groups, each once, in order. Raises UsageError."""
    for text in texts:
        if not is_reader_name(text):
            raise UsageError(f"{text[:80]!r} is no name for a group. {READER_NAMES}", next_step="Choose such a name.")
    return tuple(sorted(set(texts)))
