"""The people's keys at the gateway as they lie in the file of accounts: sealed with AES-256-GCM.

The sealing key lies in a file of its own beside it, so that a copy of the database alone opens nothing. What it does
not buy: whoever can read all of this home's files can read both.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sentinel_rag.contracts.errors import UnavailableError

_NONCE = 12


class Seal:
    """Seals and opens texts, each bound to the account that it belongs to."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def close(self, text: str, owner: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, text.encode(), owner.encode())

    def open(self, sealed: bytes, owner: str) -> str:
        """The text. Raises UnavailableError for what this key did not seal, or sealed for another account."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], owner.encode()).decode()
        except (InvalidTag, ValueError):
            raise UnavailableError(
                "A stored key does not open with the sealing key beside it.",
                next_step="Restore people.sqlite and people.key from one backup, or add the accounts anew.",
            ) from None


def seal_at(path: Path) -> Seal:
    """The seal whose key lies in `path`, readable by its owner only; made if there is none."""
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(fresh, path)  # of two processes that make one, the first wins and both read the same
        fresh.unlink()
    key = path.read_bytes()
    if len(key) != 32 or path.stat().st_mode & 0o077:
        raise UnavailableError(
            f"The file {path.name} is damaged or may be read by others than its owner.",
            next_step=f"Restore it from a backup, or run: chmod 600 {path}",
        )
    return Seal(key)
