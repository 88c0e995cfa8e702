"""The text of a key and what is kept of it.

A key is `sr_<id>_<secret>` with 256 random bits of secret. Kept is HMAC-SHA256 under the pepper over the secret's
SHA-256; the pepper lies in a file of its own, so that a copy of the database alone cannot even check a guess. A slow
hash for passwords would buy nothing here: a secret of 256 random bits cannot be guessed at any speed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError

_FORM = re.compile(r"sr_([0-9a-f]{12})_([0-9a-f]{64})")
_PEPPER = re.compile(r"[0-9a-f]{64}\n?")

PEPPER_FILE = "keys.pepper"
"""Where the pepper lies, in the folder of the gateway."""

NOBODY = bytes(32)
"""Compared with where no key has the id; no HMAC is ever known to be this."""


def new_key_id() -> str:
    return secrets.token_hex(6)


def new_secret() -> str:
    return secrets.token_hex(32)


def key_text(key_id: str, secret: str) -> str:
    return f"sr_{key_id}_{secret}"


def split_key(header: str | None) -> tuple[str, str] | None:
    """Id and secret of a key's text; None for every other text."""
    match = _FORM.fullmatch(header or "")
    return (match[1], match[2]) if match else None


class Pepper:
    """The secret half of every stored hash, 256 random bits."""

    def __init__(self, pepper: bytes) -> None:
        self._pepper = pepper

    def digest(self, secret: str) -> bytes:
        """What is stored of a secret, 32 bytes."""
        return self.strengthen(hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest())

    def strengthen(self, plain: bytes) -> bytes:
        """`digest` of the secret whose plain SHA-256 is `plain`: what files of version 0 hold."""
        return hmac.digest(self._pepper, plain, "sha256")

    def fingerprint(self) -> bytes:
        """Tells one pepper from another and nothing else about it."""
        return hmac.digest(self._pepper, b"sentinel-rag key store", "sha256")

    def authenticate(self, text: bytes) -> bytes:
        """What only who has the pepper can tell of a text, 32 bytes; it is no digest of a key."""
        derived = hmac.digest(self._pepper, b"sentinel-rag authenticated texts", "sha256")
        return hmac.digest(derived, text, "sha256")


def parse_pepper(content: bytes) -> Pepper | None:
    """The pepper that a file holds; None if it holds none."""
    text = content.decode("ascii", "replace")
    return Pepper(bytes.fromhex(text.strip())) if _PEPPER.fullmatch(text) else None


def read_pepper(path: Path) -> Pepper | None:
    """The pepper in `path`; None if there is no such file. Raises UnavailableError for a file that holds none, or that
    others may read."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            pepper = parse_pepper(file.read(128))
    except FileNotFoundError:
        return None
    if mode & 0o077:
        raise UnavailableError(
            f"The file {path.name} may be read by others than its owner, so the stored keys are not as safe as they "
            "should be.",
            next_step=f"Run: chmod 600 {path}; then rotate the keys if somebody may have read it.",
        )
    if pepper is None:
        raise UnavailableError(
            f"The file {path.name} is damaged: it should hold 64 hexadecimal digits.",
            next_step="Restore it from a backup, or move it and keys.sqlite away and make new keys.",
        )
    return pepper


def make_pepper(path: Path) -> Pepper:
    """A new pepper in `path`, whole or not at all. The caller sees to it that one process does this at a time."""
    pepper = secrets.token_bytes(32)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(pepper.hex() + "\n")
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    return Pepper(pepper)
