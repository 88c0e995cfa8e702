"""The policy in force (`Policies` of a file), how another one takes its place while calls run, and the past ones.

A file that does not load changes nothing: the last good policy stays, and log, journal and `/readyz` say so. A call
holds the `Policy` it began with; sessions and their labels do not change with the policy. Every text that was ever in
force is kept by the hash that audit records name, so that a decision can be replayed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import anyio
import anyio.to_thread

from sentinel_rag.audit.events import PolicyLoaded, PolicyRefused
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.gateway.policy.loading import parse_policy_bytes, read_policy_file
from sentinel_rag.gateway.policy.model import Policies, Policy

_SHA256 = re.compile(r"[0-9a-f]{64}")


class PolicyArchive:
    """The folder `folder`: one file a version, readable by its owner only, never written twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: bytes) -> None:
        """Store the bytes of a policy file under their hash. Raises UnavailableError if they cannot be written."""
        path = self._path(hashlib.sha256(content).hexdigest())
        if path.exists():
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="new-")
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(name).replace(path)
        except OSError as error:
            raise UnavailableError(
                f"The policy cannot be kept for later replays: {error.strerror or error}.",
                next_step="Check the permissions and free space of the state folder.",
            ) from error

    def find(self, sha256: str) -> bytes | None:
        """The bytes with that hash; None if that version was never kept here, or its file was changed since."""
        if not _SHA256.fullmatch(sha256):
            return None
        try:
            content = self._path(sha256).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == sha256 else None

    def _path(self, sha256: str) -> Path:
        return self._folder / f"{sha256}.yaml"


POLL_SECONDS = 1.0
MOST_PROBLEMS = 50
MAX_PROBLEM = 300

START, FILE = "start", "file"
"""Who loads a policy, where it is no person: the gateway as it starts, and the watched file."""

logger = logging.getLogger(__name__)

Record = Callable[[PolicyLoaded | PolicyRefused], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """Why the file on disk is not in force. `sha256` is None where it could not be read."""

    sha256: str | None
    problems: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Reload:
    """What a reload did: `changed` if another policy is in force now; `refused` if the file did not load."""

    policy: Policy
    changed: bool
    refused: RefusedFile | None = None


class PolicyBook:
    """The policy of the file at `path`. The constructor loads it and raises ConfigurationError if it cannot be.

    `record` writes to the journal; a policy comes into force only after its record. `objections` may refuse a policy
    that is right in itself (it names a server that is not connected), with a sentence for each reason.
    """

    def __init__(
        self,
        path: Path,
        *,
        archive: PolicyArchive,
        record: Record,
        new_id: Callable[[], str],
        objections: Callable[[Policy], Sequence[str]] = lambda _: (),
        clock: Clock = utc_now,
    ) -> None:
        self._path = path
        self._archive = archive
        self._record = record
        self._new_id = new_id
        self._objections = objections
        self._clock = clock
        self._lock = anyio.Lock()
        self._first_signature = _signature(path)  # before the file is read, so that no change after it is missed
        self._text = read_policy_file(path)
        self._current = parse_policy_bytes(self._text, source=str(path))
        self._loaded_at = clock()
        self._refused: RefusedFile | None = None
        archive.keep(self._text)

    @property
    def current(self) -> Policy:
        return self._current

    @property
    def text(self) -> str:
        """The file of the policy in force, as it was read."""
        return self._text.decode()

    @property
    def loaded_at(self) -> datetime:
        return self._loaded_at

    @property
    def refused(self) -> RefusedFile | None:
        """The newest version of the file, if it did not load; None if it is in force."""
        return self._refused

    async def announce(self) -> None:
        """Put on record which policy this process starts with. Raises UnavailableError if that cannot be."""
        await self._record(self._loaded(self._current, None, START))

    async def reload(self, by: str = FILE) -> Reload:
        """Read the file now. Raises UnavailableError if the change cannot be recorded; then nothing changed."""
        async with self._lock:
            content: bytes | None = None
            try:
                content = await anyio.to_thread.run_sync(read_policy_file, self._path)
                if hashlib.sha256(content).hexdigest() == self._current.sha256:
                    self._refused = None
                    return Reload(self._current, changed=False)
                policy = await anyio.to_thread.run_sync(lambda: parse_policy_bytes(content, source=str(self._path)))
            except ConfigurationError as error:
                return await self._refuse(content, error.problems or (str(error),), by)
            objections = tuple(self._objections(policy))
            if objections:
                return await self._refuse(content, objections, by)
            await anyio.to_thread.run_sync(self._archive.keep, content)
            await self._record(self._loaded(policy, self._current.sha256, by))
            self._current, self._text, self._loaded_at, self._refused = policy, content, self._clock(), None
            logger.info("policy %s is in force, from %s", policy.sha256[:12], self._path.name)
            return Reload(policy, changed=True)

    async def watch(self, *, poll_s: float = POLL_SECONDS) -> None:
        """Reload whenever the file has changed and then stayed the same for one poll. Runs until it is cancelled."""
        seen = read = self._first_signature
        while True:
            await anyio.sleep(poll_s)
            now = _signature(self._path)
            if now == seen != read:
                try:
                    await self.reload()
                    read = now
                except UnavailableError as error:  # not on record, so not in force: tried again at the next poll
                    logger.error("the policy was not reloaded: %s", error)
                except Exception:  # a fault of ours in a new file must not end the gate that judges by the old one
                    logger.exception("the policy was not reloaded")
                    read = now
            seen = now

    async def _refuse(self, content: bytes | None, problems: Sequence[str], by: str) -> Reload:
        sha256 = None if content is None else hashlib.sha256(content).hexdigest()
        refused = RefusedFile(
            sha256, tuple(problem[:MAX_PROBLEM] for problem in problems[:MOST_PROBLEMS]), self._clock()
        )
        known = self._refused
        if known is None or (known.sha256, known.problems) != (refused.sha256, refused.problems) or by != FILE:
            await self._record(
                PolicyRefused(
                    audit_id=self._new_id(),
                    by=by,
                    policy_sha256=self._current.sha256,
                    refused_sha256=sha256,
                    source=str(self._path),
                    problems=refused.problems,
                    problems_in_all=len(problems),
                )
            )
            logger.warning(
                "the policy file %s was refused (%d problems; first: %s); policy %s stays in force",
                self._path.name,
                len(problems),
                problems[0],
                self._current.sha256[:12],
            )
        self._refused = refused
        return Reload(self._current, changed=False, refused=refused)

    def _loaded(self, policy: Policy, previous: str | None, by: str) -> PolicyLoaded:
        return PolicyLoaded(
            audit_id=self._new_id(),
            by=by,
            policy_sha256=policy.sha256,
            previous_sha256=previous,
            source=str(self._path),
            tools=len(policy.tools),
            rules=sum(len(tool.rules) for tool in policy.tools.values()),
        )


@contextlib.asynccontextmanager
async def watching(policies: Policies) -> AsyncIterator[None]:
    """While it is open, a file that changes is read again. Fixed policies need nothing."""
    if not isinstance(policies, PolicyBook):
        yield
        return
    await policies.announce()
    async with anyio.create_task_group() as group:
        group.start_soon(policies.watch)
        yield
        group.cancel_scope.cancel()


def changed_servers(before: Policy, after: Policy) -> list[str]:
    """Why `after` needs a new start: servers are connected when the gateway starts, and stay as they are then."""
    known = before.servers() | before.server_specs.keys() | set(OWN_SERVERS)
    changed = {
        name
        for name, spec in after.server_specs.items()
        if name in before.server_specs and replace(spec, line=0) != replace(before.server_specs[name], line=0)
    }
    sentence = "the tool server {!r} is {}: start the gateway again to bring it in"
    return [
        *(sentence.format(name, "new") for name in sorted((after.servers() | after.server_specs.keys()) - known)),
        *(sentence.format(name, "declared differently") for name in sorted(changed)),
    ]


def _signature(path: Path) -> tuple[int, ...]:
    """Changes with the file: its content, its permissions, another file in its place. Empty where there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
