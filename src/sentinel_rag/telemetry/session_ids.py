"""The ids of sessions: how one is made, and what a span may tell of it.

Who calls may name a session as they like, so the name of one is a place to write in. An id that was made here carries
a mark over its random half, keyed for the zones of one run: it is told as it is. Every other text is told as a keyed
hash, which keeps two sessions apart and says nothing that its author chose.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from hmac import compare_digest

HASHED = "hashed-"
_RANDOM_BYTES, _MARK_BYTES, _HASH_BYTES = 16, 8, 8
_LENGTH = 2 * (_RANDOM_BYTES + _MARK_BYTES)

_key = secrets.token_bytes(32)


def set_session_key(key: bytes) -> None:
    """The key of this process from now on, 16 to 64 bytes: the zones of one run share it. Until then it is one that
    nobody else has."""
    global _key
    _key = key


def new_session_id() -> str:
    """An id that nobody can guess, 48 hex digits: 16 random bytes and their mark."""
    random = secrets.token_bytes(_RANDOM_BYTES)
    return (random + _digest(b"made", random, _MARK_BYTES)).hex()


def told_session_id(session_id: str) -> str:
    """`session_id` if it was made here with this process's key, else `hashed-` and 16 hex digits."""
    if len(session_id) == _LENGTH:
        try:
            whole = bytes.fromhex(session_id)
        except ValueError:
            whole = b""
        random, mark = whole[:_RANDOM_BYTES], whole[_RANDOM_BYTES:]
        # The spelling is compared too: upper case would be 24 letters of a caller's choice.
        if whole.hex() == session_id and compare_digest(mark, _digest(b"made", random, _MARK_BYTES)):
            return session_id
    return HASHED + _digest(b"named", session_id.encode("utf-8", "surrogatepass"), _HASH_BYTES).hex()


def _digest(purpose: bytes, content: bytes, size: int) -> bytes:
    return blake2b(content, digest_size=size, key=_key, person=purpose).digest()
