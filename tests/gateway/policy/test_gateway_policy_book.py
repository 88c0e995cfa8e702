"""Another policy comes into force while the gateway runs, or a bad one does not, and says so."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

from sentinel_rag.audit.events import PolicyLoaded, PolicyRefused
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.policy.loading import PolicyArchive, PolicyBook, changed_servers, parse_policy
from sentinel_rag.gateway.store import Scope, State, new_audit_id
from sentinel_rag_testing.fake_tool_server import FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

RULE = """
tools:
  - name: list_tables
    taint_rules: [{{rule_id: {rule}, condition: "true", taint_level: {level}{more}}}]
"""
OPEN = RULE.format(rule="open", level="LOW", more="")
SHUT = RULE.format(rule="shut", level="HIGH", more=", deny: true")
BAD = OPEN.replace("taint_level", "taint_levl")


def replace_file(path: Path, text: str) -> None:
    """As an editor does: another file in its place."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(OPEN)
    return path


@pytest.fixture
def served(file: Path, executor: FakeToolServer, tmp_path: Path) -> Iterator[RunningGateway]:
    def book(state: State) -> PolicyBook:
        archive = PolicyArchive(tmp_path / "state" / "policies")
        return PolicyBook(file, archive=archive, record=state.journal.append, new_id=new_audit_id)

    with running_gateway(load_policy(file), tmp_path / "state", executor, policies=book) as running:
        yield running


def admin(gateway: RunningGateway) -> Callable[[str, str], Any]:
    key, _ = gateway.state.keys.create([Scope.ADMIN], name="ci")
    return lambda method, path: gateway.request(method, path, key=key, body=b"" if method == "POST" else None)


@pytest.mark.requirement("GATE-2")
def test_a_reload_brings_the_new_file_into_force_and_a_bad_one_leaves_the_last_good(
    served: RunningGateway, file: Path, tmp_path: Path
) -> None:
    ask = admin(served)
    assert served.call("list_tables", {}).status == 200
    replace_file(file, SHUT)
    assert served.call("list_tables", {}).status == 200, "nothing changes before it is read"
    loaded = ask("POST", "/v1/policy/reload")
    assert (loaded.status, loaded.body["status"], loaded.body["policy"]) == (200, "loaded", sha256(SHUT))
    assert served.call("list_tables", {}).body["rule_id"] == "shut"
    assert served.last_record()["policy_sha256"] == sha256(SHUT)
    assert ask("POST", "/v1/policy/reload").body["status"] == "unchanged"

    replace_file(file, BAD)
    refused = ask("POST", "/v1/policy/reload")
    assert (refused.status, refused.body["reason"]) == (422, "invalid_argument")
    assert refused.body["policy"] == sha256(SHUT)
    [first, second] = refused.body["refused"]["problems"]
    assert "unknown key 'taint_levl' in a taint rule; did you mean 'taint_level'?" in first + second
    assert served.call("list_tables", {}).body["rule_id"] == "shut"
    assert "last good" in served.request("GET", "/readyz").body["checks"]["policy"]
    shown = ask("GET", "/v1/policy").body
    assert (shown["policy"], shown["text"], shown["refused"]["sha256"]) == (sha256(SHUT), SHUT, sha256(BAD))

    replace_file(file, OPEN)
    assert ask("POST", "/v1/policy/reload").status == 200
    assert served.request("GET", "/readyz").body["checks"]["policy"] == "ok"
    story = [
        (record["kind"], record["by"] == "start", record["policy_sha256"], record.get("refused_sha256"))
        for record in served.records()
        if record["kind"].startswith("policy_")
    ]
    assert story == [
        ("policy_loaded", True, sha256(OPEN), None),
        ("policy_loaded", False, sha256(SHUT), None),
        ("policy_refused", False, sha256(SHUT), sha256(BAD)),
        ("policy_loaded", False, sha256(OPEN), None),
    ]
    archive = PolicyArchive(tmp_path / "state" / "policies")
    assert [archive.find(sha256(text)) for text in (OPEN, SHUT, BAD)] == [OPEN.encode(), SHUT.encode(), None]


def test_a_call_in_flight_keeps_the_policy_it_began_with(served: RunningGateway, file: Path) -> None:
    release = threading.Event()
    served.executor.on("list_tables", Waits(release, {"rows": []}))
    ask = admin(served)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(served.call, "list_tables", {})
        assert served.executor.arrived.acquire(timeout=WAIT_S)
        replace_file(file, SHUT)
        assert ask("POST", "/v1/policy/reload").status == 200
        assert served.call("list_tables", {}).status == 403
        release.set()
        assert running.result().status == 200


@pytest.mark.parametrize("scopes", [[Scope.EXECUTE], [Scope.AUDIT, Scope.APPROVE]])
def test_only_an_admin_key_may_see_or_load_the_policy(served: RunningGateway, scopes: list[Scope]) -> None:
    key, _ = served.state.keys.create(scopes)
    for method, path in (("GET", "/v1/policy"), ("POST", "/v1/policy/reload")):
        assert served.request(method, path, key=key).body["reason"] == "missing_scope"
        assert served.request(method, path).status == 401
        assert served.last_record()["kind"] == "authentication_failed"


class Watched:
    """A book that is watched with a short poll; `events` are its records."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.events: list[PolicyLoaded | PolicyRefused] = []
        self._arrived = anyio.Event()
        self.broken = False
        self.book = PolicyBook(
            file, archive=PolicyArchive(file.parent / "kept"), record=self._record, new_id=new_audit_id
        )

    async def _record(self, event: PolicyLoaded | PolicyRefused) -> None:
        if self.broken:
            self._arrived.set()
            raise UnavailableError("The journal is full.")
        self.events.append(event)
        self._arrived.set()

    async def next_event(self) -> PolicyLoaded | PolicyRefused:
        with anyio.fail_after(WAIT_S):
            await self._arrived.wait()
        self._arrived = anyio.Event()
        return self.events[-1]


@pytest.mark.anyio
async def test_the_watcher_sees_every_way_in_which_a_file_changes(file: Path) -> None:
    watched = Watched(file)
    book = watched.book
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: book.watch(poll_s=0.005))
        replace_file(file, SHUT)
        loaded = await watched.next_event()
        assert (loaded.by, loaded.policy_sha256) == ("file", sha256(SHUT))
        assert isinstance(loaded, PolicyLoaded)
        assert loaded.previous_sha256 == sha256(OPEN)
        file.write_text("")  # a writer that truncates first, and is killed
        refused = await watched.next_event()
        assert isinstance(refused, PolicyRefused)
        assert "the file is empty" in refused.problems[0]
        file.unlink()
        refused = await watched.next_event()
        assert isinstance(refused, PolicyRefused)
        assert refused.refused_sha256 is None
        assert book.current.sha256 == sha256(SHUT)
        file.write_text(OPEN)
        await watched.next_event()
        assert book.current.sha256 == sha256(OPEN)
        assert book.refused is None
        group.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_policy_that_cannot_be_recorded_is_not_in_force(file: Path) -> None:
    watched = Watched(file)
    watched.broken = True
    replace_file(file, SHUT)
    with pytest.raises(UnavailableError):
        await watched.book.reload()
    assert watched.book.current.sha256 == sha256(OPEN)
    watched.broken = False
    assert (await watched.book.reload()).changed
    assert watched.book.current.sha256 == sha256(SHUT)


@pytest.mark.anyio
async def test_the_same_refused_file_is_told_once_and_touching_a_good_one_not_at_all(file: Path) -> None:
    watched = Watched(file)
    os.utime(file, (1, 1))
    assert not (await watched.book.reload()).changed
    replace_file(file, BAD)
    for _ in range(3):
        assert (await watched.book.reload()).refused is not None
    assert [event.kind for event in watched.events] == ["policy_refused"]


def test_a_book_does_not_open_without_a_good_file(file: Path) -> None:
    file.write_text(BAD)
    with pytest.raises(ConfigurationError):
        Watched(file)


def test_a_policy_with_servers_that_are_not_connected_waits_for_a_new_start() -> None:
    servers = "servers: [{{name: stranger, url: 'https://{}.example/mcp'}}]\n"
    before, after = parse_policy(servers.format("one") + OPEN), parse_policy(servers.format("two") + OPEN)
    assert changed_servers(before, before) == []
    assert changed_servers(before, after) == [
        "the tool server 'stranger' is declared differently: start the gateway again to bring it in"
    ]
    assert changed_servers(parse_policy(OPEN), before) == [
        "the tool server 'stranger' is new: start the gateway again to bring it in"
    ]
    assert changed_servers(before, parse_policy(OPEN)) == []


def test_a_kept_policy_that_was_changed_since_is_no_evidence(tmp_path: Path) -> None:
    archive = PolicyArchive(tmp_path)
    archive.keep(OPEN.encode())
    archive.keep(OPEN.encode())
    [kept] = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_text(SHUT)
    assert archive.find(sha256(OPEN)) is None
    assert archive.find("../" + sha256(OPEN)[3:]) is None
