"""What people left behind, from the files of a home into the database that its settings name: once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.app.conversations import CONVERSATIONS_FILE, agent_folder
from sentinel_rag.app.record_places import chat_database, people_database, record_schema
from sentinel_rag.app.state_place import database_configuration
from sentinel_rag.settings import Settings
from sentinel_rag.storage import Migration, RecordFile


@dataclass(frozen=True, slots=True)
class KeptStore:
    """A store whose records can be moved: its tables, those that others refer to first, and the file they were in."""

    component: str
    steps: Sequence[Migration]
    tables: tuple[str, ...]
    file: Path


def move_kept(settings: Settings, stores: Sequence[KeptStore]) -> dict[str, int]:
    """Move the files of people's `stores`, and what the agent remembers if that has a database; how many rows of each
    table, named with its component. A file that was moved is put aside.

    Raises UsageError if the tables hold something already, UnavailableError if a place cannot be used.
    """
    from sentinel_rag.agent.conversations.store import MIGRATIONS
    from sentinel_rag.storage.file import move_records

    remembered = agent_folder(settings.home) / CONVERSATIONS_FILE
    memory = KeptStore("conversations", MIGRATIONS, ("conversation", "turn"), remembered)
    people = people_database(database_configuration(settings))
    moved: dict[str, int] = {}
    for store, database in [*((each, people) for each in stores), (memory, chat_database(settings))]:
        target = record_schema(database, store.component, store.steps, what=f"The database of {store.component}")
        if target is None or not store.file.exists():
            continue
        source = RecordFile(store.file, store.steps, what=f"The file {store.file}")
        with closing(source), closing(target):
            counted = move_records(source, target, store.tables)
        moved |= {f"{store.component}.{table}": count for table, count in counted.items()}
        aside = store.file.parent / "moved-to-postgresql"
        aside.mkdir(mode=0o700, exist_ok=True)
        for part in store.file.parent.glob(f"{store.file.name}*"):
            part.rename(aside / part.name)
    return moved
