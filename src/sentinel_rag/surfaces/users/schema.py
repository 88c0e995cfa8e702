"""The tables of the accounts, as numbered steps."""

from __future__ import annotations

from sentinel_rag.storage import Migration, RecordConnection


def _first(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE person (user_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, roles TEXT NOT NULL, "
        "groups TEXT NOT NULL, clearance TEXT NOT NULL, created_at TEXT NOT NULL, disabled_at TEXT, "
        "password TEXT, oidc_name TEXT UNIQUE, oidc_issuer TEXT, oidc_subject TEXT, "
        "key_id TEXT NOT NULL, sealed_key BLOB, UNIQUE (oidc_issuer, oidc_subject)) STRICT"
    )
    # Kept is the SHA-256 of a token: it is 256 random bits, which nobody guesses at any speed.
    connection.execute(
        "CREATE TABLE sign_in (digest BLOB PRIMARY KEY, sign_in_id TEXT NOT NULL UNIQUE, "
        "user_id TEXT NOT NULL REFERENCES person ON DELETE CASCADE, program INTEGER NOT NULL, name TEXT NOT NULL, "
        "csrf TEXT NOT NULL, created_at TEXT NOT NULL, used_at TEXT NOT NULL, ends_at TEXT NOT NULL, "
        "idle_s REAL) STRICT"
    )
    connection.execute("CREATE INDEX sign_in_person ON sign_in (user_id, program)")


MIGRATIONS: tuple[Migration, ...] = (_first,)
