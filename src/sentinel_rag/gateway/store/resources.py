"""Labels of resources: what a call wrote carries its label to whoever reads it later (TAINT-6).

A resource is a text such as `incident/55`; `incident/*` is the join over all below it. Whoever reads one reads its
parts, and a part belongs to its whole: `doc/5` hears of `doc/5/notes`, and the other way round. Labels only rise. None
is kept in memory, so neither a start nor a process grows with what was ever written; a call that was decided by a label
which has risen since is refused in its transaction (`ContextMoved`).
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

from sentinel_rag.audit import RecordConnection, StateDatabase, Work
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.gateway.store.sessions import ContextMoved

_ONE = "SELECT sensitivity, integrity FROM resource_label WHERE resource = ?"
_RAISE = (
    "UPDATE resource_label SET sensitivity = CASE WHEN sensitivity < ? THEN ? ELSE sensitivity END, "
    "integrity = CASE WHEN integrity < ? THEN ? ELSE integrity END WHERE resource = ?"
)
MAX_TERMS = 64
"""Names in one statement; SQLite takes 500."""


class ResourceLabels:
    """The labels in `database`, whose tables the session store made."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    async def of(self, resources: Collection[str]) -> Label:
        """The join of what is stored with them."""
        if not resources:
            return BOTTOM
        return await self._database.look(lambda connection: _stored(connection, resources))

    def confirm(self, resources: Collection[str], decided: Label) -> Work[object]:
        """The check, in the transaction of an intent, that the file knows no more than the call was decided by."""

        def check(connection: RecordConnection) -> None:
            if not _stored(connection, resources).flows_to(decided):
                raise ContextMoved

        return check

    def raise_to(self, resources: Collection[str], label: Label) -> Work[object]:
        """The write that raises the labels of what a call writes, and of all that they are part of."""
        names = sorted({name for resource in resources for name in _with_parents(resource)})

        def write(connection: RecordConnection) -> None:
            high, low = label.sensitivity.value, label.integrity.value
            for name in names:
                if not connection.execute(_RAISE, [high, high, low, low, name]).rowcount:
                    connection.execute("INSERT INTO resource_label VALUES (?, ?, ?)", [name, high, low])

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


def _stored(connection: RecordConnection, resources: Collection[str]) -> Label:
    """What a reader of them hears: their own labels, those of their parts, and of what they are part of."""
    names: list[str] = []
    for resource in resources:
        parts = resource.removesuffix("/*").split("/")
        names += ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
        names.append(f"{names[-1]}/*")
    label = BOTTOM
    for start in range(0, len(names), MAX_TERMS):
        asked = names[start : start + MAX_TERMS]
        for sensitivity, integrity in connection.execute(" UNION ALL ".join([_ONE] * len(asked)), asked).fetchall():
            label = label.join(Label(Sensitivity(sensitivity), Integrity(integrity)))
    return label
