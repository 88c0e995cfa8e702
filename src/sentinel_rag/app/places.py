"""Where things are kept with these settings: in folders of the home, or in PostgreSQL; and the id of a home.

A folder is needed for both: the signing key, the pepper and the checkpoints never lie in the database. The gateway's
database has a schema of its own for people (`_web`). The agent never learns that database's address, which would open
the labels and the keys: what it remembers goes to the database of `SENTINEL_CHAT_DATABASE_URL`, in a schema of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.audit import JournalPlace, PostgresPlace, Verification
    from sentinel_rag.storage import Migration, Records


SAMPLE_WORKSPACE = "sample"
"""The workspace that the demo makes anew, so that nothing of anybody's is put into it."""


def workspace_folder(home: Path, name: str) -> Path:
    """Where the embedded workspace of that name is stored."""
    return home / "workspaces" / name


def policies_folder(state_folder: Path) -> Path:
    """Where the gateway keeps every policy that was in force, below its state."""
    return state_folder / "policies"


def logs_folder(home: Path) -> Path:
    """Where each zone's log lies."""
    return home / "logs"


_NAME = "home-id"


def home_id(home: Path) -> UUID:
    """The id of the home folder `home`, made if there is none yet. Raises UnavailableError for a folder that cannot
    keep one, or a file that holds something else."""
    path = home / _NAME
    try:
        if not path.exists():
            _make(path)
        return UUID(path.read_text(encoding="ascii").strip())
    except (OSError, UnicodeError) as error:
        raise UnavailableError(
            f"The id of this home cannot be read or made in {path}: {error}.",
            next_step="Let this user write to the folder, or set SENTINEL_HOME to another one.",
        ) from None
    except ValueError:
        raise UnavailableError(
            f"{path} holds no id.", next_step="Restore the file from a backup, or delete it: then a new one is made."
        ) from None


def embedded_workspace_id(home: Path, name: str) -> str:
    """The GUID of the embedded workspace `name` of a home: another one than in any other home. Raises as `home_id`."""
    return str(uuid5(home_id(home), name))


def _make(path: Path) -> None:
    """Of two processes that make one, the first wins and both read the same."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f"{_NAME}-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(f"{uuid4()}\n")
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        Path(fresh).unlink(missing_ok=True)


def gateway_folder(home: Path) -> Path:
    """Where the gateway keeps its keys, sessions and journal, or what must not lie beside them in a database."""
    return home / "gateway"


def database_configuration(settings: Settings) -> dict[str, str] | None:
    """What a zone is told of the database: its address, which is a secret, and the schema. None for SQLite."""
    url = settings.database.url
    return None if url is None else {"url": url.reveal(), "schema": settings.database.schema}


def postgres_place(database: Mapping[str, Any] | None, folder: Path) -> PostgresPlace | None:
    """The place of a `database_configuration`; None for SQLite."""
    from sentinel_rag.audit import PostgresPlace

    return None if database is None else PostgresPlace(database["url"], database["schema"], folder)


def state_place(settings: Settings) -> PostgresPlace | None:
    """The place in PostgreSQL that these settings name; None for SQLite."""
    return postgres_place(database_configuration(settings), gateway_folder(settings.home))


def journal_place(database: Mapping[str, Any] | None, folder: Path) -> JournalPlace:
    """Where the journal is, in either. Raises UnavailableError if PostgreSQL's library is missing."""
    from sentinel_rag.gateway.store.state import JOURNAL_FILE, needs_postgres

    place = postgres_place(database, folder)
    if place is None:
        return folder / JOURNAL_FILE
    with needs_postgres():
        import psycopg  # noqa: F401  # said here, and not from inside the first question
    return place


def chat_database(settings: Settings) -> dict[str, str] | None:
    """What the agent's process is told of the database of its memory, a secret; None for a file."""
    url = settings.chat_database
    return (
        None
        if url is None
        else {
            "url": url.reveal(),
            "schema": f"{settings.database.schema}_chat",
            "setting": "SENTINEL_CHAT_DATABASE_URL",
        }
    )


def people_database(database: Mapping[str, str] | None) -> dict[str, str] | None:
    """The part of a `database_configuration` for accounts and conversations of people; None for files."""
    return None if database is None else {**database, "schema": f"{database['schema']}_web"}


def prepare_people(settings: Settings, stores: Mapping[str, Sequence[Migration]], role: str | None) -> None:
    """Make the tables of people's `stores`, by component, and let `role` use them. Raises UsageError for a role that
    there is not, UnavailableError if the database cannot be used."""
    database = people_database(database_configuration(settings))
    assert database is not None
    for component, steps in stores.items():
        records = record_schema(database, component, steps, what="The database of accounts and conversations")
        assert records is not None
        with closing(records), records.transaction(reads=True):
            pass
    if role is not None:
        from sentinel_rag.audit import PostgresPlace
        from sentinel_rag.storage.postgres.members import grant_to

        grant_to(PostgresPlace(database["url"], database["schema"], Path()), role)


def record_schema(
    database: Mapping[str, str] | None, component: str, steps: Sequence[Migration], *, what: str
) -> Records | None:
    """The records of a store in a database; None for files. Raises UnavailableError if PostgreSQL's library is
    missing."""
    if database is None:
        return None
    from sentinel_rag.audit import PostgresPlace
    from sentinel_rag.gateway.store.state import needs_postgres

    with needs_postgres():
        from sentinel_rag.storage.postgres import RecordSchema
    # Its folder is for what a journal signs with, and records sign nothing.
    place = PostgresPlace(database["url"], database["schema"], Path())
    return RecordSchema(place, component, steps, what=what, setting=database.get("setting", "SENTINEL_DATABASE_URL"))


OWNER_SCOPES = ("user", "approver", "audit", "admin")
"""The run's keys that whoever started it uses, as at the terminal."""


KEPT_OF_PEOPLE = 10_000
"""How many conversations the agent remembers where many people have theirs."""


def people_folder(home: Path) -> Path:
    """Where accounts and sign-ins lie."""
    return home / "people"


def record_file(home: Path) -> Path:
    """Where what people asked and were answered lies."""
    return home / "web" / "conversations.sqlite"


def web_configuration(settings: Settings, keys: Mapping[str, str]) -> dict[str, Any]:
    """The web surface's share of its configuration line. Raises UsageError where the gateway is elsewhere: then no
    key for a person can be made here."""
    if settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set: people's keys are made on the machine where that gateway runs.",
            next_step="Run sentinel up --web there, or unset SENTINEL_URL.",
        )
    oidc = settings.oidc
    return {
        "people": str(people_folder(settings.home)),
        "record": str(record_file(settings.home)) if settings.chat_keep_days else None,
        "keep_days": settings.chat_keep_days or 1,
        "public_url": settings.web_url,
        "owner_keys": {key_id: keys[key_id] for key_id in OWNER_SCOPES},
        "anchor": None if settings.audit_anchor is None else str(settings.audit_anchor),
        "oidc": None
        if oidc is None
        else {
            "issuer": oidc.issuer,
            "client_id": oidc.client_id,
            "client_secret": None if oidc.client_secret is None else oidc.client_secret.reveal(),
            "claim": oidc.claim,
        },
    }


def journal_check(configuration: Mapping[str, Any]) -> Callable[[], Verification]:
    """What checks the journal of a home, from where it is."""
    from sentinel_rag.audit import JournalReader

    reader = JournalReader(journal_place(configuration["database"], Path(configuration["state_folder"])))
    anchor = None if configuration["anchor"] is None else Path(configuration["anchor"])
    return lambda: reader.verify(public_key=None, anchor=anchor)
