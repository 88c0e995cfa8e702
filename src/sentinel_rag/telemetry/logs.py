"""What may be said of a process: log lines with scrubbing, and session ids as a hash that another cannot follow."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
from datetime import UTC, datetime
from hashlib import blake2b
from hmac import compare_digest

from sentinel_rag.telemetry.spans import current_span

# A log line may name rules, tools, ids and sizes; it never holds rows, arguments or credentials. The scrubber is the
# net below that rule: it knows the shapes of our keys, bearer tokens and Azure's, wherever they turn up in a message.
_SECRETS = re.compile(
    r"sr_[A-Za-z0-9-]+_[A-Za-z0-9_-]{20,}"  # our own keys
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"  # JSON web tokens
    r"|(?i:client_secret|x-api-key|api[-_]key|password|x-identity-header)[\"']?\s*[:=]\s*[\"']?[^\s\"',;]{4,}"
)


def scrub(text: str) -> str:
    """`text` with everything that looks like a credential replaced by `[secret]`."""
    return _SECRETS.sub("[secret]", text)


def looks_secret(text: str) -> bool:
    """Whether something in `text` looks like a credential."""
    return _SECRETS.search(text) is not None


class JsonFormatter(logging.Formatter):
    """One line of JSON for each record: time, zone, level, logger, message, the trace and span that it belongs to where
    there is one, and the traceback if there is one."""

    def __init__(self, zone: str) -> None:
        super().__init__()
        self._zone = zone

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "zone": self._zone,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        place = current_span().traceparent
        if place is not None:
            _, line["trace_id"], line["span_id"], _ = place.split("-")
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return scrub(json.dumps(line, ensure_ascii=False))


def configure_logging(zone: str, level: str) -> None:
    """Send this process's logs to standard error as JSON lines; libraries speak up from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(zone))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sentinel_rag").setLevel(level)


# Who calls may name a session as they like, so the name of one is a place to write in. An id that was made here carries
# a mark over its random half, keyed for the zones of one run: it is told as it is. Every other text is told as a keyed
# hash, which keeps two sessions apart and says nothing that its author chose.
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
