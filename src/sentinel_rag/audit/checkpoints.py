"""Signed checkpoints: a place in the chain, the moment, and an Ed25519 signature over both.

A checkpoint is one line of canonical JSON. It stands in the journal, and again in files outside it, so that neither can
be cut or rewritten without the other showing it. Whoever holds the public key needs nothing else to check one.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.audit.chain import ChainHead
from sentinel_rag.audit.signing import PublicKey, SigningKey
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.storage.sqlite import create_private

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
