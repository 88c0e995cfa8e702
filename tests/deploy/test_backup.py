"""A home is copied while it is used and put back whole; what was changed, cut or is too old is told."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sentinel_rag.app.backup import MANIFEST, make_backup, put_back, read_backup
from sentinel_rag.app.run_state import AlreadyRunningError, RunFolder
from sentinel_rag.audit import JournalCut, JournalReader
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.store import KeyStore, open_state
from sentinel_rag.surfaces.cli import main
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("OPS-5")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    monkeypatch.setenv("SENTINEL_HOME", str(made))
    for name in ("SENTINEL_AUDIT_ANCHOR", "SENTINEL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def running(shipped_policy: Policy, executor: FakeToolServer, home: Path) -> Iterator[RunningGateway]:
    """A gateway that serves over the gateway's folder of the home."""
    with running_gateway(shipped_policy, home / "gateway", executor) as gateway:
        (home / "agent").mkdir()
        (home / "agent" / "notes.json").write_text("{}")
        (home / "run").mkdir()
        (home / "run" / "zones.json").write_text('{"secret": "of a run"}')
        yield gateway


def call(gateway: RunningGateway, times: int = 1) -> None:
    session = gateway.request("POST", "/v1/sessions", key=gateway.key).body["session_id"]
    for _ in range(times):
        answer = gateway.call("query_incidents", {"time_window": "last_7d"}, session_id=session)
        assert answer.status == 200, answer.content


def records(home: Path) -> int:
    found = JournalReader(home / "gateway" / "journal.sqlite").verify()
    assert found.intact, found.problem
    return found.records


def test_a_copy_of_a_running_home_is_whole_and_goes_on_where_it_was(
    running: RunningGateway, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(running, 5)
    target = tmp_path / "copy"
    assert main(["backup", str(target), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    call(running, 3)
    assert told["journal_head"] >= 10
    assert not list(target.rglob("zones.json")), "the secrets of a run end with it"
    assert not list(target.rglob("*-wal")), "each database is one file"
    assert {path.stat().st_mode & 0o077 for path in target.rglob("*")} == {0}
    assert records(home) > told["journal_head"], "the copy changed nothing of what it was made of"

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    put_back(target, elsewhere, now=utc_now())
    assert records(elsewhere) == told["journal_head"]
    assert (elsewhere / "agent" / "notes.json").read_text() == "{}"
    with closing(KeyStore(elsewhere / "gateway" / "keys.sqlite")) as keys:
        assert keys.verify(running.key) is not None, "a key opens what was put back"


def test_a_copy_under_load_is_always_one_that_holds(running: RunningGateway, home: Path, tmp_path: Path) -> None:
    """Copies that are taken between calls and in the middle of them; each verifies, checkpoints included."""
    import threading

    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            call(running, 2)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for place in range(4):
            target = tmp_path / f"copy-{place}"
            made = make_backup(home, target, now=utc_now(), workspaces=False)
            assert records(target) == made.journal_head
            assert read_backup(target) == made
    finally:
        stop.set()
        thread.join()


def test_what_was_there_is_moved_aside_and_never_deleted(
    running: RunningGateway, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(running)
    assert main(["backup", str(tmp_path / "copy")]) == 0
    stopped = tmp_path / "stopped"
    make_backup(home, stopped, now=utc_now(), workspaces=False)
    (stopped / MANIFEST).unlink()
    (stopped / "workspaces" / "default").mkdir(parents=True)
    (stopped / "agent" / "notes.json").write_text('{"newer": true}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SENTINEL_HOME", str(stopped))
        capsys.readouterr()
        assert main(["restore", str(tmp_path / "copy"), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
    assert told["journal"] == "ok"
    assert (Path(told["moved_aside"]) / "agent" / "notes.json").read_text() == '{"newer": true}'
    assert (stopped / "agent" / "notes.json").read_text() == "{}"
    assert (stopped / "workspaces" / "default").is_dir(), "a backup without workspaces says nothing of them"


@pytest.mark.requirement("AUD-2")
def test_an_old_copy_is_told_by_the_anchor(
    shipped_policy: Policy,
    executor: FakeToolServer,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the attacker controls: the home folder, which is set back to a true but older copy. Only a place elsewhere
    knows better; a restore says so, and a gateway does not start on it."""
    anchor = tmp_path / "elsewhere.jsonl"
    monkeypatch.setenv("SENTINEL_AUDIT_ANCHOR", str(anchor))
    with running_gateway(shipped_policy, home / "gateway", executor) as gateway:
        call(gateway, 2)
        assert main(["backup", str(tmp_path / "old")]) == 0
        call(gateway, 2)
    shutil.copy(home / "gateway" / "checkpoints.jsonl", anchor)  # what an anchor holds by now
    capsys.readouterr()
    assert main(["restore", str(tmp_path / "old")]) == 1
    assert "The journal does not hold" in capsys.readouterr().out
    with pytest.raises(JournalCut):
        open_state(home / "gateway", anchor=anchor)
    aside = next(home.glob("replaced-*"))
    assert records(aside) > 0, "the newer journal is kept as evidence"


@pytest.mark.parametrize("harm", ["changed", "gone", "more", "no manifest", "another version"])
def test_a_damaged_backup_is_not_put_back(running: RunningGateway, home: Path, tmp_path: Path, harm: str) -> None:
    call(running)
    copy = tmp_path / "copy"
    make_backup(home, copy, now=utc_now(), workspaces=False)
    journal, manifest = copy / "gateway" / "journal.sqlite", copy / MANIFEST
    if harm == "changed":
        with journal.open("r+b") as stream:
            stream.seek(4_096)
            stream.write(b"x")
    elif harm == "gone":
        journal.unlink()
    elif harm == "more":
        (copy / "gateway" / "policies" / "planted.yaml").parent.mkdir(exist_ok=True)
        (copy / "gateway" / "policies" / "planted.yaml").write_text("tools: []")
    elif harm == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text(manifest.read_text().replace('"version": 2', '"version": 9'))
    with pytest.raises((UsageError, UnavailableError)) as caught:
        read_backup(copy)
    assert caught.value.next_step


def test_a_backup_goes_into_a_new_folder_elsewhere(
    running: RunningGateway, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "something").write_text("mine")
    assert main(["backup", str(taken)]) == 2
    assert main(["backup", str(home / "inside")]) == 2
    said = capsys.readouterr().err
    assert "is there already" in said
    assert "lies in the home folder itself" in said
    assert (taken / "something").read_text() == "mine"


def test_a_full_disk_leaves_no_half_a_backup(
    running: RunningGateway, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(UnavailableError, match="No space left on device"):
        make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    assert not list(tmp_path.glob("*copy*"))


def test_a_restore_that_fails_leaves_the_home_as_it_was(
    running: RunningGateway, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    make_backup(home, copy, now=utc_now(), workspaces=False)
    other = tmp_path / "other"
    (other / "agent").mkdir(parents=True)
    (other / "agent" / "mine").write_text("kept")
    replace = Path.replace

    def breaking(self: Path, target: Path) -> Path:
        if self.parent.name == ".restoring":
            raise OSError(5, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", breaking)
    with pytest.raises(UnavailableError, match="Input/output error"):
        put_back(copy, other, now=utc_now())
    assert (other / "agent" / "mine").read_text() == "kept"
    assert not (other / ".restoring").exists()


def test_a_database_that_is_locked_by_a_writer_is_copied_all_the_same(home: Path, tmp_path: Path) -> None:
    (home / "agent").mkdir(parents=True)
    with closing(sqlite3.connect(home / "agent" / "conversations.db", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE turn (text TEXT)")
        writer.execute("INSERT INTO turn VALUES ('acknowledged')")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO turn VALUES ('not yet')")
        make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    with closing(sqlite3.connect(tmp_path / "copy" / "agent" / "conversations.db")) as copy:
        assert copy.execute("SELECT text FROM turn").fetchall() == [("acknowledged",)]


def test_a_symbolic_link_is_refused_in_a_home_and_in_a_backup(home: Path, tmp_path: Path) -> None:
    """What the attacker controls: the folder of a backup. A link in it is no file of the manifest, and would be
    followed with the rights of whoever restores."""
    (home / "agent").mkdir(parents=True)
    (home / "agent" / "notes.json").write_text("{}")
    secret = tmp_path / "of-somebody-else"
    secret.mkdir()
    (secret / "key").write_text("canary")
    (home / "people").symlink_to(secret)
    with pytest.raises(UnavailableError, match="is a symbolic link") as refused:
        make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    assert str(home / "people") in str(refused.value)
    assert not (tmp_path / "copy").exists()

    (home / "people").unlink()
    make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    for link, leads_to in (("people", secret), ("agent/more.json", secret / "key")):
        (tmp_path / "copy" / link).symlink_to(leads_to)
        for attempt in (read_backup, lambda copy: put_back(copy, home, now=utc_now())):
            with pytest.raises(UnavailableError, match="not as it was made"):
                attempt(tmp_path / "copy")
        (tmp_path / "copy" / link).unlink()
    assert "canary" not in [path.read_text() for path in home.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "told",
    ["[]", "7", '{"version": 1}', "[" * 9_000]
    + [
        json.dumps({"version": 1, "made_at": made_at, "files": files, "journal_head": head, "with_workspaces": False})
        for made_at, files, head in (
            (7, {}, 0),
            ("\x1b[2J", {}, 0),
            ("2026-11-28T12:00:00Z", ["a"], 0),
            ("2026-11-28T12:00:00Z", {"a": 7}, 0),
            ("2026-11-28T12:00:00Z", {}, "1"),
        )
    ],
)
def test_a_manifest_of_another_form_is_one_sentence(tmp_path: Path, told: str) -> None:
    (tmp_path / MANIFEST).write_text(told)
    with pytest.raises(UsageError, match="no backup"):
        read_backup(tmp_path)


def test_what_is_put_back_is_private_again_and_leaves_the_disk_s_own_folder_alone(home: Path, tmp_path: Path) -> None:
    """A copy that came over a medium without modes; a home that is a volume of its own."""
    (home / "people").mkdir(parents=True)
    (home / "people" / "people.key").write_text("secret")
    copy = tmp_path / "copy"
    make_backup(home, copy, now=utc_now(), workspaces=False)
    for path in copy.rglob("*"):
        path.chmod(0o777)
    (home / "lost+found").mkdir()
    aside = put_back(copy, home, now=utc_now())
    assert aside is not None
    assert [path.name for path in aside.iterdir()] == ["people"]
    assert {path.stat().st_mode & 0o077 for path in (home / "people").rglob("*")} == {0}
    assert (home / "people").stat().st_mode & 0o077 == 0


def test_a_restore_that_is_interrupted_leaves_the_home_as_it_was(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("agent", "people", "knowledge"):
        (home / name).mkdir(parents=True)
        (home / name / "file").write_text(name)
    copy = tmp_path / "copy"
    make_backup(home, copy, now=utc_now(), workspaces=False)
    other = tmp_path / "other"
    (other / "agent").mkdir(parents=True)
    (other / "agent" / "mine").write_text("kept")
    replace, done = Path.replace, []

    def interrupted(self: Path, target: Path) -> Path:
        if self.parent.name == ".restoring":
            if len(done) == 2:
                raise KeyboardInterrupt
            done.append(self)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put_back(copy, other, now=utc_now())
    assert [path.relative_to(other).as_posix() for path in sorted(other.rglob("*"))] == ["agent", "agent/mine"]


def test_a_restore_is_on_record(
    running: RunningGateway,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    call(running, 2)
    assert main(["backup", str(tmp_path / "copy"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "elsewhere"))
    assert main(["restore", str(tmp_path / "copy")]) == 0
    journal = JournalReader(tmp_path / "elsewhere" / "gateway" / "journal.sqlite")
    [record] = [entry.record for entry in journal.last(5) if entry.kind == "restored"]
    assert (record["head"], record["made_at"]) == (told["journal_head"], told["made_at"])
    assert records(tmp_path / "elsewhere") > told["journal_head"]


def test_a_home_that_a_role_is_served_from_is_not_replaced(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the served gateway would go on writing, acknowledged, into files that were moved aside."""
    (home / "agent").mkdir(parents=True)
    (home / "agent" / "notes.json").write_text("{}")
    make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    with RunFolder(home).serve(), RunFolder(home).serve():  # the web surface beside the gateway
        assert main(["restore", str(tmp_path / "copy")]) == 1
        assert main(["backup", str(tmp_path / "other"), "--workspaces"]) == 1
        said = capsys.readouterr().err
        assert said.count("A role is served from this home folder") == 2
        assert not list(home.glob("replaced-*"))
    with RunFolder(home).undisturbed(), pytest.raises(AlreadyRunningError), RunFolder(home).serve():
        pass
    assert main(["restore", str(tmp_path / "copy")]) == 0
