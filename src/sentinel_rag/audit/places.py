"""Where a journal is: a file of SQLite with its segments beside it, or a schema of a PostgreSQL database.

Either has a folder on this machine, with the signing key, its public half and the file of checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """The schema `schema` of the database at `url`, which holds a password and never prints. `folder` holds what must
    not lie in the database: the signing key and checkpoints."""

    url: str = field(repr=False)
    schema: str
    folder: Path


JournalPlace = Path | PostgresPlace


def folder_of(place: JournalPlace) -> Path:
    """The folder of the signing key and the checkpoints."""
    return place.folder if isinstance(place, PostgresPlace) else place.parent


def checkpoints_of(place: JournalPlace) -> Path:
    """The file of checkpoints beside the signing key; one for each journal, since one folder can have had two."""
    name = f"checkpoints-{place.schema}.jsonl" if isinstance(place, PostgresPlace) else "checkpoints.jsonl"
    return folder_of(place) / name


def name_of(place: JournalPlace) -> str:
    """What a person calls the journal, without a secret."""
    return f"the schema {place.schema}" if isinstance(place, PostgresPlace) else place.name
