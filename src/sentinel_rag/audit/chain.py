"""The hash chain and its signed checkpoints: how a record becomes bytes, what its hash covers, which key signs.

The chain alone finds every edit before a head that the verifier knows from elsewhere; a checkpoint is such a head. It
stands in the journal, and again in files outside it, so that neither can be cut without the other showing it. Whoever
reads the private key can rewrite the journal and sign it again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.storage.sqlite import create_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


RECORD_VERSION = 1


@dataclass(frozen=True, slots=True)
class ChainHead:
    """A place in the chain: the sequence number of a record (1 is the first) and its hash, 32 bytes.

    Whoever keeps one outside the file (a signed checkpoint, a printed line) can prove later that the file up to it is
    as it was.
    """

    seq: int
    digest: bytes


GENESIS = ChainHead(0, bytes(32))
"""Before the first record."""


def seal(previous: ChainHead, fields: dict[str, JsonValue]) -> tuple[ChainHead, bytes]:
    """The record that follows `previous`: its place and its bytes. Raises ValueError for what JSON cannot hold."""
    record = canonical_json({**fields, "v": RECORD_VERSION, "seq": previous.seq + 1, "previous": previous.digest.hex()})
    return ChainHead(previous.seq + 1, digest(record)), record


def digest(record: bytes) -> bytes:
    return hashlib.sha256(record).digest()


# Keep a copy of the public half, or an anchor, where the account that runs the gateway cannot write.
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


VERSION = 1
_DOMAIN = b"sentinel-rag audit checkpoint\n"
_MAX_LINE = 2_048


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`head` as `key` (a fingerprint) signed it at `at`. Nothing is proved until `is_signed_by` said so."""

    head: ChainHead
    at: str
    key: str
    signature: bytes

    @classmethod
    def sign(cls, head: ChainHead, at: str, key: SigningKey) -> Checkpoint:
        fingerprint = key.public.fingerprint
        return cls(head, at, fingerprint, key.sign(_DOMAIN + canonical_json(_fields(head, at, fingerprint))))

    @classmethod
    def parse(cls, line: bytes) -> Checkpoint:
        """The checkpoint of a line without its end. Raises ValueError for anything that `line` does not produce."""
        try:
            data = json.loads(line)
            fields = data["checkpoint"]
            found = cls(
                ChainHead(fields["seq"], bytes.fromhex(fields["hash"])),
                fields["at"],
                fields["key"],
                base64.b64decode(data["signature"], validate=True),
            )
            if found.line() != line:
                raise ValueError("the line is not in its one form")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"no checkpoint: {error}") from error
        return found

    def line(self) -> bytes:
        """The one form of it, without an end of line."""
        return canonical_json(
            {
                "checkpoint": _fields(self.head, self.at, self.key),
                "signature": base64.b64encode(self.signature).decode(),
            }
        )

    def is_signed_by(self, key: PublicKey) -> bool:
        """True if `key`, and no other, signed exactly this."""
        signed = _DOMAIN + canonical_json(_fields(self.head, self.at, self.key))
        return self.key == key.fingerprint and key.accepts(self.signature, signed)


def _fields(head: ChainHead, at: str, key: str) -> dict[str, str | int]:
    return {"v": VERSION, "seq": head.seq, "hash": head.digest.hex(), "at": at, "key": key}


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """An append-only file of checkpoints, one a line."""

    path: Path

    def create(self) -> None:
        """Make it if it is not there. Raises OSError if it cannot be written."""
        create_private(self.path)
        os.close(os.open(self.path, os.O_WRONLY | os.O_APPEND))

    def append(self, checkpoint: Checkpoint) -> None:
        """Add one and wait for the disk. Raises OSError, also if the file was removed: it is not made anew, because
        a file that begins in the middle is how a removed one is recognised."""
        line = checkpoint.line() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            size = os.fstat(descriptor).st_size
            if os.write(descriptor, line) < len(line):
                os.ftruncate(descriptor, size)
                raise OSError("the disk is full")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def size(self) -> int | None:
        """Bytes; None if there is no such file."""
        with suppress(OSError):
            return self.path.stat().st_size
        return None

    def lines(self, size: int) -> Iterator[bytes]:
        """Its lines within the first `size` bytes. A last line without an end, cut by a crash, is not one."""
        with self.path.open("rb") as stream:
            left = size
            while left > 0:
                line = stream.readline(min(left, _MAX_LINE))
                left -= len(line)
                if not line.endswith(b"\n") and (left <= 0 or not line):
                    return
                yield line.rstrip(b"\n")

    def last(self, key: PublicKey) -> Checkpoint | None:
        """The newest of its last lines that `key` signed; reads the end of the file only."""
        size = self.size() or 0
        if not size:
            return None
        with self.path.open("rb") as stream:
            stream.seek(max(0, size - 16 * _MAX_LINE))
            lines = stream.read().split(b"\n")
        readable: list[Checkpoint] = []
        for line in lines:
            with suppress(ValueError):
                readable.append(Checkpoint.parse(line))
        readable.sort(key=lambda checkpoint: checkpoint.head.seq, reverse=True)
        return next((checkpoint for checkpoint in readable if checkpoint.is_signed_by(key)), None)
