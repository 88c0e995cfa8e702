"""A look at a database from outside: which server, whether the way to it is encrypted, whether the tables are there,
how many gateways use it. It changes nothing."""

from __future__ import annotations

import psycopg

from sentinel_rag.storage.port import PostgresPlace
from sentinel_rag.storage.postgres.connecting import Connector, StateConnection
from sentinel_rag.storage.postgres.members import living


def look_at(place: PostgresPlace) -> tuple[str, bool, bool, int]:
    """Version, encrypted, ready, gateways. Raises StateAway."""
    connector = Connector(place)
    raw = connector.connect(read_only=True)
    try:
        version = raw.info.parameter_status("server_version") or "of an unknown version"
        encrypted = raw.pgconn.ssl_in_use
        ready = raw.execute("SELECT to_regclass('journal')").fetchone() != (None,)
        return version.split(" ")[0], encrypted, ready, living(StateConnection(raw)) if ready else 0
    except psycopg.Error as error:
        raise connector.away(error) from None
    finally:
        raw.close()
