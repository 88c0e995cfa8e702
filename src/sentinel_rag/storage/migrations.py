"""How tables are brought up to date: numbered steps of each component, each done once in the life of a database."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.port import Migration, RecordConnection

VERSIONS = "CREATE TABLE IF NOT EXISTS schema_version (component TEXT PRIMARY KEY, version INTEGER NOT NULL)"


def bring_up(
    component: str, steps: Sequence[Migration], name: str, connection: RecordConnection, *, make: bool = True
) -> None:
    """Do the steps that the database `name` lacks, in the transaction of `connection`. `make`: the table of the
    versions too, if there is none.

    Raises UnavailableError if a newer version of the product wrote it.
    """
    if make:
        connection.execute(VERSIONS)
    row = connection.execute("SELECT version FROM schema_version WHERE component = ?", [component]).fetchone()
    version = 0 if row is None else row[0]
    if version > len(steps):
        raise UnavailableError(
            f"{name} was written by a newer version of Sentinel RAG ({component} schema {version}, this one knows "
            f"{len(steps)}).",
            next_step="Install the newer version, or point the state folder elsewhere.",
        )
    if version == len(steps):
        return
    for step in steps[version:]:
        step(connection)
    connection.execute(
        "INSERT INTO schema_version VALUES (?, ?) ON CONFLICT (component) DO UPDATE SET version = excluded.version",
        [component, len(steps)],
    )
