"""Addresses of PostgreSQL, which hold a password and are never quoted, and the database of the gateway's state."""

from __future__ import annotations

import re

from sentinel_rag.settings.shapes import PostgresSettings, Secret
from sentinel_rag.settings.values import SettingReader

_AUTHORITY = re.compile(r"(?:[^@/?#]*@)?[^@/?#]*(?:[/?#][^@]*)?\Z")
_SCHEMA_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_BESIDE = ("_web", "_chat")
"""What stands behind the name of the state's schema in those of people and of the agent's memory."""
LONGEST_STATE_SCHEMA = 58
"""PostgreSQL cuts a name at 63 characters and says nothing: three schemas would become one."""


def read_database(reader: SettingReader) -> PostgresSettings:
    """Where the gateway's state is kept; without an address in SQLite files of the home."""
    return PostgresSettings(
        url=reader.read("SENTINEL_DATABASE_URL", postgres_url, None),
        schema=reader.read("SENTINEL_DATABASE_SCHEMA", state_schema_name, "sentinel"),
    )


def postgres_url(text: str) -> Secret:
    """The address, never quoted: it holds a password."""
    if not text.isprintable() or " " in text:
        raise ValueError("holds a blank or a control character: copy it again")
    scheme, _, rest = text.partition("://")
    if scheme not in ("postgresql", "postgres") or not rest:
        raise ValueError("is no address like postgresql://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full")
    # Else a part of the password could be taken for the host, and be shown as such.
    if _AUTHORITY.match(rest) is None:
        raise ValueError("has an @, / or ? that is part of no address: percent-encode special characters in it")
    return Secret(text)


def schema_name(text: str) -> str:
    """A name that PostgreSQL takes as it is."""
    if not _SCHEMA_NAME.fullmatch(text) or text.startswith("pg_"):
        raise ValueError(f"{text!r} is not 1 to 63 lower-case letters, digits and underscores, a letter first")
    return text


def state_schema_name(text: str) -> str:
    """A name behind which those of the schemas beside it fit, and that is none of those itself."""
    name = schema_name(text)
    if len(name) > LONGEST_STATE_SCHEMA:
        raise ValueError(f"{name!r} is longer than {LONGEST_STATE_SCHEMA} characters: _web and _chat stand behind it")
    if name.endswith(_BESIDE):
        raise ValueError(f"{name!r} ends as a schema beside another one does: choose a name without _web or _chat")
    return name
