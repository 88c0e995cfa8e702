"""What the attacker controls: the medium of a backup, all of it, list of files included; and when the power goes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.app.backup import MANIFEST, make_backup
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import open_state
from sentinel_rag.surfaces.cli import main

pytestmark = pytest.mark.requirement("OPS-5")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made") / "home"
    open_state(made / "gateway").close()
    (made / "people").mkdir()
    (made / "people" / "accounts.json").write_text('{"mallory": "analyst"}')
    return made


@pytest.fixture
def home(made_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = Path(shutil.copytree(made_once, tmp_path / "home"))
    monkeypatch.setenv("SENTINEL_HOME", str(home))
    for name in ("SENTINEL_AUDIT_ANCHOR", "SENTINEL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> tuple[Path, str]:
    """A backup, and its seal."""
    target = tmp_path / "copy"
    return target, make_backup(home, target, now=utc_now(), workspaces=False).seal


def list_anew(copy: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
    """As somebody does who can write to the backup and knows its form: files and digests together."""
    manifest = json.loads((copy / MANIFEST).read_text())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((copy / name).read_bytes()).hexdigest()
    change(manifest)
    (copy / MANIFEST).write_text(json.dumps(manifest))


def more_rights(copy: Path) -> None:
    (copy / "people" / "accounts.json").write_text('{"mallory": "administrator"}')


def restored(copy: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["restore", str(copy), *options])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_an_account_that_was_exchanged_with_its_digest_is_not_put_back(
    home: Path, copied: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    copy, seal = copied
    more_rights(copy)
    list_anew(copy)
    for options in ((), ("--check",), ("--seal", seal), ("--check", "--seal", seal)):
        code, said = restored(copy, capsys, *options)
        assert code == 1
        assert "seal" in said
        assert "Take another backup" in said
    assert json.loads((home / "people" / "accounts.json").read_text()) == {"mallory": "analyst"}
    assert not list(home.glob("replaced-*"))


@pytest.mark.parametrize("field", ["made_at", "journal_head", "with_workspaces"])
def test_no_word_of_the_list_is_changed_unseen(
    copied: tuple[Path, str], capsys: pytest.CaptureFixture[str], field: str
) -> None:
    other = {"made_at": "2020-01-01T00:00:00Z", "journal_head": 77, "with_workspaces": True}[field]
    list_anew(copied[0], lambda manifest: manifest.update({field: other}))
    code, said = restored(copied[0], capsys, "--check")
    assert (code, "its seal does not hold" in said) == (1, True)


def test_a_backup_holds_by_its_home_or_by_the_seal_that_was_kept(
    home: Path, copied: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    copy, seal = copied
    assert "Its seal holds by this home's pepper" in restored(copy, capsys, "--check")[1]
    assert json.loads(restored(copy, capsys, "--check", "--json")[1])["seal"] == "home"
    assert not list(home.glob("replaced-*")), "--check changes nothing"

    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "new"))
    code, said = restored(copy, capsys, "--check")
    assert (code, "Only the seal that was printed" in said) == (0, True)
    code, said = restored(copy, capsys, "--seal", seal.upper())
    assert (code, "it is as it was made" in said) == (0, True)
    assert (tmp_path / "new" / "people" / "accounts.json").exists()


def test_a_backup_of_a_home_with_another_pepper_wants_its_seal(
    copied: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """What the attacker makes instead: a whole home of their own, sealed in order."""
    copy, seal = copied
    other = tmp_path / "other"
    open_state(other / "gateway").close()
    monkeypatch.setenv("SENTINEL_HOME", str(other))
    code, said = restored(copy, capsys)
    assert (code, "another pepper" in said, "--seal SEAL" in said) == (1, True, True)
    for wrong in ("", "0" * 64, "é"):
        code, said = restored(copy, capsys, "--seal", wrong)
        assert (code, "does not have the seal that was given" in said) == (1, True)
    assert restored(copy, capsys, "--seal", seal)[0] == 0


def test_a_home_without_a_pepper_has_a_checksum_and_no_more(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent's container, with conversations alone."""
    shutil.rmtree(home / "gateway")
    copy = tmp_path / "copy"
    seal = make_backup(home, copy, now=utc_now(), workspaces=False).seal
    code, said = restored(copy, capsys, "--check")
    assert (code, "made of a home without a pepper" in said) == (0, True)
    more_rights(copy)
    list_anew(copy)
    assert restored(copy, capsys)[0] == restored(copy, capsys, "--seal", seal)[0] == 1


def test_whoever_reads_the_pepper_in_it_cannot_make_one_of_the_seal_that_was_kept(
    copied: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    copy, seal = copied
    forged = tmp_path / "forged"
    more_rights(copy)
    (copy / MANIFEST).unlink()
    made = make_backup(copy, forged, now=utc_now(), workspaces=False)
    assert made.seal != seal
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "new"))
    list_anew(forged, lambda manifest: manifest.update({"seal": seal}))
    for options in ((), ("--seal", seal)):
        code, said = restored(forged, capsys, *options)
        assert (code, "seal" in said) == (1, True)


def test_an_older_backup_without_a_seal_is_put_back_with_a_warning(
    home: Path, copied: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    copy, seal = copied

    def older(manifest: dict[str, Any]) -> None:
        manifest["version"] = 1
        del manifest["seal"], manifest["pepper"]

    list_anew(copy, older)
    code, said = restored(copy, capsys, "--seal", seal)
    assert (code, "does not have the seal that was given" in said) == (1, True)
    code, said = restored(copy, capsys)
    assert (code, "WARNING: this backup has no seal" in said) == (0, True)


@pytest.mark.parametrize("seal", [7, "", "zz", None])
def test_a_seal_of_another_form_is_no_manifest(
    copied: tuple[Path, str], capsys: pytest.CaptureFixture[str], seal: Any
) -> None:
    list_anew(copied[0], lambda manifest: manifest.update({"seal": seal}))
    code, said = restored(copied[0], capsys)
    assert (code, "is no backup" in said) == (2, True)


def test_a_backup_has_its_name_only_once_all_of_it_is_on_the_disk(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut after `N files are copied` leaves a copy that can be put back."""
    done: list[str] = []
    sync, move = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        done.append(f"named {target.name}")
        return move(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    named = done.index("named copy")
    before = {Path(text).name for text in done[:named]}
    entries = list((tmp_path / "copy").rglob("*"))
    assert {path.name for path in entries} <= before
    assert ".copy.unfinished" in before
    assert done[named + 1 :] == [str(tmp_path)], "the name itself"


@pytest.mark.parametrize(("fault", "made"), [(errno.EINVAL, True), (errno.EIO, False)])
def test_a_folder_that_cannot_be_synced_is_told_from_a_disk_that_fails(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int, made: bool
) -> None:
    """A network file system may know no sync of folders; a disk that fails, be it at the very last, leaves nothing."""
    sync = os.fsync

    def synced(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(tmp_path):
            raise OSError(fault, os.strerror(fault))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    if made:
        make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    else:
        with pytest.raises(UnavailableError, match="Input/output error"):
            make_backup(home, tmp_path / "copy", now=utc_now(), workspaces=False)
    assert (tmp_path / "copy").exists() is made
    assert not (tmp_path / ".copy.unfinished").exists()


def test_a_restore_is_on_the_disk_before_it_takes_the_place(
    home: Path, copied: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    sync, move = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        done.append("moved")
        return move(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    shutil.rmtree(home / "people")
    assert restored(copied[0], capsys)[0] == 0
    assert {"accounts.json", "journal.sqlite", "people"} <= set(done[: done.index("moved")])
