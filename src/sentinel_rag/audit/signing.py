"""The key that signs the journal: made on first start, 0600, in the state folder; its public half in a file beside it.

Whoever reads the private key can rewrite the journal and sign it again. Therefore keep a copy of the public half, or an
anchor, where the account that runs the gateway cannot write.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import SentinelError, UnavailableError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_FILE = "audit-signing.key"
PUBLIC_FILE = "audit-signing.pub"


class SigningKeyLost(SentinelError):
    """The journal was signed before, and the key that did it is gone or is another one."""

    code = "signing_key_lost"


class PublicKey:
    """Checks signatures. `pem` is the text of the file, `fingerprint` the SHA-256 of the raw 32 bytes, in hex."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._key = key
        self.pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        self.fingerprint = hashlib.sha256(key.public_bytes_raw()).hexdigest()

    @classmethod
    def load(cls, path: Path) -> PublicKey:
        """The key in a PEM file. Raises UnavailableError."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        try:
            key = load_pem_public_key(path.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise UnavailableError(
                f"The public key {path.name} cannot be read: {_reason(error)}.",
                next_step="Give the file that `sentinel audit key` printed, in PEM form.",
            ) from error
        if not isinstance(key, Ed25519PublicKey):
            raise UnavailableError(
                f"{path.name} holds a key of another kind; the journal is signed with Ed25519.",
                next_step="Give the file that `sentinel audit key` printed.",
            )
        return cls(key)

    def accepts(self, signature: bytes, message: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """Signs. Never prints."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    @classmethod
    def open(cls, folder: Path) -> SigningKey:
        """The key of `folder`; a new one if it has none yet. Two processes that start at once get the same.

        Raises SigningKeyLost if there is a public half without its key, UnavailableError if it cannot be read.
        """
        private, public = folder / KEY_FILE, folder / PUBLIC_FILE
        try:
            if not private.exists():
                if public.exists():
                    raise SigningKeyLost(
                        f"{KEY_FILE} is gone, but {PUBLIC_FILE} is there: this journal was signed before.",
                        next_step="Put the key back from a copy, or move the whole folder away to begin a new journal.",
                    )
                _publish(private, _new_pem())
            key = cls(_load(private))
            if not public.exists():
                _publish(public, key.public.pem.encode())
        except OSError as error:
            raise UnavailableError(
                f"The signing key in {folder.name} cannot be used: {_reason(error)}.",
                next_step="Check the folder's permissions and free space.",
            ) from error
        if PublicKey.load(public).fingerprint != key.public.fingerprint:
            raise SigningKeyLost(
                f"{KEY_FILE} and {PUBLIC_FILE} are not halves of one key.",
                next_step="Put back the pair that signed this journal.",
            )
        return key

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""
        return self._key.sign(message)


def _new_pem() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _load(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise UnavailableError(
            f"The signing key {path.name} is damaged.", next_step="Put it back from a copy."
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UnavailableError(f"{path.name} is no Ed25519 key.", next_step="Put the right one back from a copy.")
    return key


def _publish(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; one that another process made first stays."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()


def _reason(error: BaseException) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not a PEM key"
