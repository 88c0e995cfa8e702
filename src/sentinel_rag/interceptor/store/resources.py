"""Labels of resources: what a call wrote carries its label to whoever reads it later (TAINT-6).

A resource is a text such as `incident/55`; `incident/*` is the join over all below it. Whoever reads one reads its
parts, and a part belongs to its whole: `doc/5` hears of `doc/5/notes`, and the other way round. Labels only rise. None
is kept in memory, so neither a start nor a process grows with what was ever written; a call that was decided by a label
which has risen since is refused in its transaction (`ContextMoved`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from urllib.parse import quote

from sentinel_rag.audit import Database
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity, join_all
from sentinel_rag.interceptor.store.sessions import ContextMoved, Work


class ResourceLabels:
    """The labels in `database`, whose tables the session store made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, resources: Collection[str]) -> Label:
        """The join of what is stored with them."""
        if not resources:
            return BOTTOM
        return await self._database.run(
            lambda connection: join_all(_stored(connection, resource) for resource in resources)
        )

    def confirm(self, resources: Collection[str], decided: Label) -> Work:
        """The check, in the transaction of an intent, that the file knows no more than the call was decided by."""

        def check(connection: sqlite3.Connection) -> None:
            if not all(_stored(connection, resource).flows_to(decided) for resource in resources):
                raise ContextMoved

        return check

    def raise_to(self, resources: Collection[str], label: Label) -> Work:
        """The write that raises the labels of what a call writes, and of all that they are part of."""
        names = sorted({name for resource in resources for name in _with_parents(resource)})

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO resource_label VALUES (?, ?, ?) ON CONFLICT (resource) DO UPDATE SET "
                "sensitivity = max(sensitivity, excluded.sensitivity), integrity = max(integrity, excluded.integrity)",
                [(name, label.sensitivity.value, label.integrity.value) for name in names],
            )

        return write


def resources_of(templates: Collection[str], arguments: JsonObject) -> list[str]:
    """The resources that a call speaks about. An argument that is left out stands for all of that place."""
    found: list[str] = []
    for template in templates:
        parts: list[str] = []
        for part in template.split("/"):
            if part.startswith("{"):
                value = arguments.get(part[1:-1])
                if value is None:
                    parts.append("*")
                    break
                part = quote(str(value).strip().casefold(), safe="")
            parts.append(part)
        found.append("/".join(parts))
    return found


def _with_parents(resource: str) -> list[str]:
    parts = resource.split("/")
    return [resource, *("/".join([*parts[:length], "*"]) for length in range(1, len(parts)))]


def _stored(connection: sqlite3.Connection, resource: str) -> Label:
    """What a reader of `resource` hears: its own label, that of its parts, and those of what it is part of."""
    parts = resource.removesuffix("/*").split("/")
    wholes = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    label = BOTTOM
    for name in (*wholes, f"{wholes[-1]}/*"):
        row = connection.execute(
            "SELECT sensitivity, integrity FROM resource_label WHERE resource = ?", [name]
        ).fetchone()
        if row is not None:
            label = label.join(Label(Sensitivity(row[0]), Integrity(row[1])))
    return label
