"""The hash chain: how a record becomes bytes, and what its hash covers.

A record is one canonical JSON object; its hash is the SHA-256 of exactly those bytes, and each record holds the hash of
the one before. The chain alone finds every edit, insertion, deletion and reordering *before* a head that the verifier
knows from elsewhere; without such a head it cannot tell a cut tail or a rewritten end. Signed heads are the next step.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sentinel_rag.contracts.json_values import JsonValue, canonical_json

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
