"""How an account stands in the place where accounts are kept; read here alone, by accounts and sign-ins alike."""

from __future__ import annotations

import json
from typing import Any

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.surfaces.users.accounts import Account, Role

PERSON = (
    "p.user_id, p.name, p.roles, p.groups, p.clearance, p.created_at, p.disabled_at, p.password IS NOT NULL, "
    "p.oidc_name, p.key_id"
)
"""The columns of `account_of`, of a table or join in which accounts are `p`."""


def account_of(row: tuple[Any, ...]) -> Account:
    """The account of a row of `PERSON`."""
    user_id, name, roles, groups, clearance, created_at, disabled_at, has_password, oidc_name, key_id = row
    return Account(
        user_id,
        name,
        frozenset(map(Role, json.loads(roles))),
        tuple(json.loads(groups)),
        Sensitivity[clearance],
        created_at,
        disabled_at,
        bool(has_password),
        oidc_name,
        key_id,
    )
