"""The people who may sign in: their accounts, passwords, sign-ins and tokens, and each one's key at the gateway.

Shared by the surfaces: `sentinel users` manages accounts, `surfaces.web` signs people in. What a person may do is
decided by the gateway, by the scopes of the person's own key; roles are the names of those scopes.
"""

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.surfaces.users.store import (
    OWNER,
    Account,
    AccountChanges,
    AccountDisabled,
    AccountInChange,
    AccountTerms,
    Opened,
    OwnerLinks,
    Role,
    SignIn,
    UserStore,
    checked_groups,
    owner_link,
    scopes_of,
)

__all__ = [
    "OWNER",
    "Account",
    "AccountChanges",
    "AccountDisabled",
    "AccountInChange",
    "AccountTerms",
    "Opened",
    "OwnerLinks",
    "Passwords",
    "Role",
    "SignIn",
    "UserStore",
    "check_new_password",
    "checked_groups",
    "owner_link",
    "scopes_of",
]


LEAST_CHARACTERS = 12
MOST_CHARACTERS = 256


class Passwords:
    """`hasher` sets what a guess costs; the default is the library's (RFC 9106, 64 MiB)."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._nobody = self._hasher.hash("the password of nobody")

    def hash(self, password: str) -> str:
        """What is stored of a password: algorithm, parameters, salt and hash in one text."""
        return self._hasher.hash(password)

    def is_right(self, stored: str | None, password: str) -> bool:
        """Whether `password` is the one of `stored`; None stands for an account that is not there, and never is."""
        try:
            self._hasher.verify(stored or self._nobody, password[: MOST_CHARACTERS + 1])
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None

    def is_weaker(self, stored: str) -> bool:
        """Whether `stored` was made with less than today's parameters, so that it should be made anew."""
        return self._hasher.check_needs_rehash(stored)


def check_new_password(password: str, name: str) -> None:
    """Raise UsageError for a password that is too short, too long, or guessed at once."""
    if not LEAST_CHARACTERS <= len(password) <= MOST_CHARACTERS:
        raise UsageError(
            f"A password has {LEAST_CHARACTERS} to {MOST_CHARACTERS} characters; this one has {len(password)}.",
            next_step="A few words that only you would put together make a good one.",
        )
    folded = password.lower()
    if name.lower() in folded or len(set(folded)) < 5 or folded in ("passwordpassword", "password1234", "123456789012"):
        raise UsageError(
            "This password would be guessed: it is the name, a pattern or a well-known one.",
            next_step="A few words that only you would put together make a good one.",
        )
