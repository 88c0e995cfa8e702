"""Pinned tools: what a server says of a tool is held to what it said first, until a person accepts a change.

A definition is one document with one hash: all that its server says of it and that may steer a model or the check of a
call. A changed one puts the tool into quarantine. The servers are asked at start, on their own word that something
changed, and about every minute; a call asks memory only, unless its server was never listed. A definition that no
listing has shown reaches no model, so a tool that its server does not list is the server's own to refuse.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from sentinel_rag.audit import Journal, RecordConnection, StateDatabase
from sentinel_rag.audit.events import ToolAccepted, ToolPinned, ToolQuarantined
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.json_values import JsonObject, canonical_json
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.gateway.policy import Policies, ToolPolicy
from sentinel_rag.gateway.upstream import Upstream, UpstreamTool


@dataclass(frozen=True, slots=True)
class Definition:
    """`document` has name, description, inputSchema, outputSchema and annotations; `sha256` is over its canonical
    JSON, in hex."""

    sha256: str
    document: JsonObject = field(repr=False)

    @property
    def encoded(self) -> bytes:
        return canonical_json(self.document)


def definition_of(tool: UpstreamTool) -> Definition:
    """The definition that a server gives now. Raises ValueError for what JSON cannot hold."""
    document: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }
    return Definition(hashlib.sha256(canonical_json(document)).hexdigest(), document)


Key = tuple[str, str]
"""Server and tool."""

Write = Callable[[RecordConnection], object]


def _tables(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE pin (server TEXT NOT NULL, tool TEXT NOT NULL, sha256 TEXT NOT NULL, definition BLOB NOT NULL, "
        "waiting_sha256 TEXT, waiting_definition BLOB, PRIMARY KEY (server, tool)) STRICT, WITHOUT ROWID"
    )


def _accepted_by_a_person(connection: RecordConnection) -> None:
    """Whether an administrator has read and accepted the definition, and not only the first listing."""
    connection.execute("ALTER TABLE pin ADD COLUMN vouched INTEGER NOT NULL DEFAULT 0")


MIGRATIONS = (_tables, _accepted_by_a_person)


@dataclass(frozen=True, slots=True)
class Stored:
    """The accepted definitions, those that wait, and of which accepted ones a person has said so."""

    accepted: dict[Key, Definition]
    waiting: dict[Key, Definition]
    vouched: set[Key]


class PinTable:
    """The table in `database`."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database
        database.migrate("pins", MIGRATIONS)

    def load(self) -> Stored:
        """What is stored. Blocks; for the start."""
        return self._database.run_now(_read)

    async def read(self) -> Stored:
        """The same, as another gateway with this database may have left it."""
        return await self._database.run(_read)

    async def run(self, write: Write) -> None:
        """A write that no record goes with."""
        await self._database.run(write)

    @staticmethod
    def accept(key: Key, definition: Definition, *, vouched: bool = False) -> Write:
        """Make this the accepted definition; nothing waits any more. `vouched`: a person says so."""
        return lambda connection: connection.execute(
            "INSERT INTO pin (server, tool, sha256, definition, vouched) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (server, tool) DO UPDATE SET sha256 = excluded.sha256, definition = excluded.definition, "
            "vouched = excluded.vouched, waiting_sha256 = NULL, waiting_definition = NULL",
            [*key, definition.sha256, definition.encoded, int(vouched)],
        )

    @staticmethod
    def wait(key: Key, definition: Definition | None) -> Write:
        """Keep a changed definition for a person to look at; None if it changed back."""
        values = [None, None] if definition is None else [definition.sha256, definition.encoded]
        return lambda connection: connection.execute(
            "UPDATE pin SET waiting_sha256 = ?, waiting_definition = ? WHERE server = ? AND tool = ?", [*values, *key]
        )


def _read(connection: RecordConnection) -> Stored:
    rows = connection.execute(
        "SELECT server, tool, sha256, definition, waiting_sha256, waiting_definition, vouched FROM pin"
    ).fetchall()
    return Stored(
        accepted={(row[0], row[1]): Definition(row[2], json.loads(row[3])) for row in rows},
        waiting={(row[0], row[1]): Definition(row[4], json.loads(row[5])) for row in rows if row[4] is not None},
        vouched={(row[0], row[1]) for row in rows if row[6]},
    )


LIST_SECONDS = 5.0
FIRST_LIST_SECONDS = 15.0
"""For a server that was not listed yet: its program may have to start first."""

RELIST_SECONDS = 60.0
MIN_GAP_SECONDS = 1.0
"""Between two rounds, however often a server says that its tools have changed."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The tool may not be called: `served_sha256` is not the `pinned_sha256`."""

    pinned_sha256: str
    served_sha256: str


@dataclass(frozen=True, slots=True)
class Pin:
    """One tool as a person sees it; `waiting` is the changed definition that is not accepted yet."""

    server: str
    tool: str
    accepted: Definition
    waiting: Definition | None = None
    vouched: bool = True
    """Whether the agent is shown the server's own words: one of the product's servers, or an administrator said so."""


class NotWaiting(SentinelError):
    """There is no such changed definition: it is another by now, or none."""

    code = "conflict"


class Pins:
    """Reads and writes the pins of `database`. `own` servers belong to the product: what they say at the first listing
    of a run is taken, because an upgrade may have changed it; later in the run they are held to it like all others."""

    def __init__(
        self,
        policies: Policies,
        upstreams: Mapping[str, Upstream],
        database: StateDatabase,
        journal: Journal,
        *,
        own: Collection[str] = OWN_SERVERS,
    ) -> None:
        self._policies = policies
        self._upstreams = upstreams
        self._journal = journal
        self._table = PinTable(database)
        self._take(self._table.load())
        self._own = own
        self._listed: set[str] = set()
        self._listed_at: dict[str, float] = {}
        self._finished: Counter[str] = Counter()
        self._listing: dict[str, anyio.Lock] = {}
        self._observing = anyio.Lock()
        self._news = anyio.Event()

    def vouches(self, tool: ToolPolicy) -> bool:
        """Whether the words of the tool's pinned definition may be shown to an agent: they are the product's own, or a
        person has read and accepted them. A stranger's are input like any other."""
        return tool.server in self._own or (tool.server, tool.name) in self._vouched

    def _take(self, stored: Stored) -> None:
        self._accepted, self._waiting, self._vouched = stored.accepted, stored.waiting, stored.vouched

    def sha256_of(self, tool: ToolPolicy) -> str | Quarantined | None:
        """The hash of the tool's pinned definition; None if none is known: then `learn` its server, once."""
        key = (tool.server, tool.name)
        pinned = self._accepted.get(key)
        if pinned is None or tool.server not in self._listed:
            return None
        waiting = self._waiting.get(key)
        return pinned.sha256 if waiting is None else Quarantined(pinned.sha256, waiting.sha256)

    async def learn(self, server: str) -> bool:
        """List a server, unless that was done a moment ago; False if it does not answer. Those who ask at once share
        one listing.

        Raises UnavailableError if what was learnt cannot be recorded.
        """
        upstream = self._upstreams.get(server)
        if upstream is None:
            return False
        before = self._finished[server]
        async with self._listing.setdefault(server, anyio.Lock()):
            if self._finished[server] != before or self._is_fresh(server):
                return server in self._listed
            try:
                patience = LIST_SECONDS if server in self._listed else FIRST_LIST_SECONDS
                tools = await upstream.list_tools(timeout_s=patience)
            except UnavailableError as error:
                _log.info("the tools of %s are not known: %s", server, error)
                return server in self._listed
            finally:
                self._finished[server] += 1
            await self.observe(server, tools)
            self._listed_at[server] = anyio.current_time()
            return True

    async def observe(self, server: str, tools: Iterable[UpstreamTool]) -> None:
        """Compare what a server has listed with the pins. Raises UnavailableError if it cannot be recorded."""
        served = {tool.name: tool for tool in tools}
        async with self._observing:
            self._take(await self._table.read())
            for tool in self._policies.current.tools.values():
                if tool.server == server and tool.name in served:
                    try:
                        definition = definition_of(served[tool.name])
                    except ValueError:
                        continue  # it cannot be shown to anybody either
                    await self._compare((server, tool.name), definition)
            self._listed.add(server)

    async def accept(self, server: str, tool: str, sha256: str, *, key_id: str) -> Pin:
        """Make the changed definition with that hash the pinned one. Raises NotWaiting."""
        key = (server, tool)
        async with self._observing:
            self._take(await self._table.read())
            accepted, waiting = self._accepted.get(key), self._waiting.get(key)
            if waiting is None and server not in self._own and key not in self._vouched:
                waiting = accepted  # as it was first seen: nobody has read it yet
            if accepted is None or waiting is None or waiting.sha256 != sha256:
                raise NotWaiting(
                    "The tool has no definition with this hash that waits to be accepted.",
                    next_step="Look at its definition again: GET /v1/pins, or sentinel tools pins.",
                )
            event = ToolAccepted(
                audit_id=_story(key),
                key_id=key_id,
                server=server,
                tool=tool,
                sha256=sha256,
                previous_sha256=accepted.sha256,
            )
            await self._journal.append(event, alongside=self._table.accept(key, waiting, vouched=True))
            self._accepted[key] = waiting
            self._waiting.pop(key, None)
            self._vouched.add(key)
        return Pin(server, tool, waiting)

    def all(self) -> list[Pin]:
        """Every pin, by server and tool."""
        return [
            Pin(*key, accepted, self._waiting.get(key), key[0] in self._own or key in self._vouched)
            for key, accepted in sorted(self._accepted.items(), key=lambda item: item[0])
        ]

    def look_again(self) -> None:
        """List the servers soon: one has said that its tools changed, or the policy is another."""
        self._news.set()

    async def watch(self) -> None:
        """Keep what is known fresh, for as long as it is not cancelled."""
        for upstream in self._upstreams.values():
            upstream.on_tools_changed(self.look_again)
        pause = MIN_GAP_SECONDS
        while True:
            self._news = anyio.Event()
            async with anyio.create_task_group() as group:
                for server in self._policies.current.servers() & self._upstreams.keys():
                    group.start_soon(self._look, server)
            pause = RELIST_SECONDS if self._all_listed() else min(2 * pause, RELIST_SECONDS)
            await anyio.sleep(MIN_GAP_SECONDS)
            with anyio.move_on_after(pause):
                await self._news.wait()

    def _is_fresh(self, server: str) -> bool:
        return anyio.current_time() - self._listed_at.get(server, float("-inf")) < MIN_GAP_SECONDS

    async def _look(self, server: str) -> None:
        try:
            await self.learn(server)
        except Exception as error:  # one server, or a full disk, must not end the watch over the others
            _log.warning("the tools of %s could not be pinned: %s", server, error)

    def _all_listed(self) -> bool:
        return self._policies.current.servers() & self._upstreams.keys() <= self._listed

    async def _compare(self, key: Key, served: Definition) -> None:
        server, tool = key
        accepted, waiting = self._accepted.get(key), self._waiting.get(key)
        upgraded = server in self._own and server not in self._listed
        if accepted is None or (upgraded and accepted.sha256 != served.sha256):
            previous = None if accepted is None else accepted.sha256
            event = ToolPinned(
                audit_id=_story(key), server=server, tool=tool, sha256=served.sha256, previous_sha256=previous
            )
            await self._journal.append(event, alongside=self._table.accept(key, served))
            self._accepted[key] = served
            self._waiting.pop(key, None)
        elif accepted.sha256 == served.sha256:
            if waiting is not None:
                await self._table.run(self._table.wait(key, None))
                del self._waiting[key]
        elif waiting is None or waiting.sha256 != served.sha256:
            self._waiting[key] = served  # in force before it is on record: no call slips through meanwhile
            change = ToolQuarantined(
                audit_id=_story(key),
                server=server,
                tool=tool,
                pinned_sha256=accepted.sha256,
                served_sha256=served.sha256,
            )
            await self._journal.append(change, alongside=self._table.wait(key, served))


def _story(key: Key) -> str:
    return f"tool:{key[0]}/{key[1]}"
