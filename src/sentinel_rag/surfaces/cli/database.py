"""`sentinel database prepare | move`: the gateway's state in PostgreSQL, before a gateway runs there."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sentinel_rag.app import database
from sentinel_rag.app.database import KeptStore, move_kept
from sentinel_rag.app.places import people_folder, prepare_people, record_file
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings, load_settings


def prepare(role: str | None, *, as_json: bool) -> int:
    """Make the schemas with their tables, as their owner; `role` may then run gateways and web surfaces there."""
    from sentinel_rag.surfaces.users.store import MIGRATIONS as PEOPLE_TABLES
    from sentinel_rag.surfaces.web.turns.record import MIGRATIONS as TURN_TABLES

    settings = load_settings()
    schema = database.prepare(settings, role)
    prepare_people(settings, {"people": PEOPLE_TABLES, "turns": TURN_TABLES}, role)
    if as_json:
        print(json.dumps({"schema": schema, "role": role}))
        return 0
    print(f"The schema {schema} has all tables of this version.")
    if role is not None:
        print(f"The role {role} may run gateways there; it adds to the journal and cannot change it.")
    return 0


def move(*, as_json: bool) -> int:
    """Move the state of this home's files into the schema, and what people left behind. Where that was cut short, doing
    it again moves the rest."""
    from sentinel_rag.surfaces.users.store import FILE
    from sentinel_rag.surfaces.users.store import MIGRATIONS as PEOPLE_TABLES
    from sentinel_rag.surfaces.web.turns.record import MIGRATIONS as TURN_TABLES

    settings = load_settings()
    people, turns = people_folder(settings.home) / FILE, record_file(settings.home)
    stores = [
        KeptStore("people", PEOPLE_TABLES, ("person", "sign_in"), people),
        KeptStore("turns", TURN_TABLES, ("conversation", "turn"), turns),
    ]
    with RunFolder(settings.home).undisturbed():
        if database.was_moved(settings):
            return _move_the_rest(settings, stores, as_json=as_json)
        moved = database.move(settings)
        kept = move_kept(settings, stores)
    if as_json:
        counts = {name: getattr(moved, name) for name in ("records", "keys", "sessions", "approvals")}
        print(json.dumps({**counts, **kept, "aside": str(moved.aside)}))
        return 0
    print(
        f"Moved {moved.records} records of the journal, {moved.keys} keys, {moved.sessions} sessions and "
        f"{moved.approvals} approvals; the journal was verified where it is now."
    )
    if kept:
        accounts, conversations = kept.get("people.person", 0), kept.get("turns.conversation", 0)
        print(f"Moved {accounts} accounts and {conversations} conversations of people, each file put aside beside it.")
    print(f"The files were put aside in {moved.aside}. Keep the rest of that folder's parent: it holds the secrets.")
    return 0


def _move_the_rest(settings: Settings, stores: Sequence[KeptStore], *, as_json: bool) -> int:
    """The state is in the schema already; what people left behind may not be."""
    kept = move_kept(settings, stores)
    if not kept:
        raise UsageError(
            "There is no state in files here any more: it was moved before.", next_step="Start it: sentinel up"
        )
    if as_json:
        print(json.dumps(kept))
        return 0
    print("The state was moved before. Moved now: " + ", ".join(f"{count} {name}" for name, count in kept.items()))
    return 0
