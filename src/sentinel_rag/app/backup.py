"""A home copied whole while its zones run, and put back: state, accounts, conversations, knowledge, audit journal.

Each SQLite file is copied as of one moment, by SQLite itself, so nobody who writes has to stop. The moments of two
files differ, and the order makes that harmless: accounts come before the keys that they name, the journal before its
checkpoints, of which the copy keeps those that its journal bears out. What PostgreSQL holds its own tools copy. A copy
has its name only once all of it is on the disk. Its list of files is sealed, keyed by the home's pepper, which lies in
the backup too: against somebody who can read and write it only a seal that was kept elsewhere helps.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sentinel_rag.app.places import gateway_folder
from sentinel_rag.audit import Checkpoint
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.store.keys import PEPPER_FILE, Pepper, parse_pepper
from sentinel_rag.gateway.store.state import INSTANCES_FOLDER, JOURNAL_FILE
from sentinel_rag.storage.port import checkpoints_of
from sentinel_rag.storage.sqlite import connect, create_private

_CHANGED = "Take another backup; this one was damaged or changed."


class SealHolds(Enum):
    """By what a backup was found to be as it was made; the value is a sentence for whoever restores it."""

    GIVEN = "Its seal is the one that was given: it is as it was made."
    HOME = (
        "Its seal holds by this home's pepper: it was made of this home, and changed by nobody who could not read it."
    )
    ITSELF = (
        "Its seal holds by the pepper in the backup itself, since this home has none yet: it is not damaged. Only the "
        "seal that was printed when it was made (--seal) tells that nobody has made it anew."
    )
    CHECKSUM = (
        "It is not damaged. It was made of a home without a pepper, so only the seal that was printed when it was made "
        "(--seal) tells that nobody has made it anew."
    )
    NONE = (
        "WARNING: this backup has no seal, as one of an older version. Its files are those of its list, but whoever "
        "can write to it can have changed both."
    )


def pepper_of(home: Path) -> Pepper | None:
    """The pepper of a home, or of a copy of one, whatever modes the copy has; None if there is none."""
    try:
        return parse_pepper((gateway_folder(home) / PEPPER_FILE).read_bytes()[:128])
    except OSError:
        return None


def fingerprint_of(pepper: Pepper | None) -> str:
    """Tells one home's pepper from another's; empty for none."""
    return "" if pepper is None else pepper.fingerprint().hex()


def seal_of(manifest: Mapping[str, Any], pepper: Pepper | None) -> str:
    """The seal of a manifest, 64 hexadecimal digits; without a pepper a checksum that anybody can make."""
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    text = b"sentinel-rag backup\x00" + canonical
    return (hmac.digest(b"", text, "sha256") if pepper is None else pepper.authenticate(text)).hex()


def check_seal(
    manifest: Mapping[str, Any], seal: str, source: Path, home: Path, *, given: str | None = None
) -> SealHolds:
    """Whether the seal of the backup in `source` holds for `home`; `given` is the one that its maker kept elsewhere.

    Raises UnavailableError where it does not, or the backup was made of a home with another pepper and no seal of it
    was given.
    """
    if given is not None:
        # Under the backup's own pepper: no other pepper and manifest have that seal.
        if not seal or seal_of(manifest, pepper_of(source)) != given.strip().lower():
            raise UnavailableError("The backup does not have the seal that was given.", next_step=_CHANGED)
        return SealHolds.GIVEN
    if not seal:
        return SealHolds.NONE
    own, its = pepper_of(home), pepper_of(source)
    if own is not None and fingerprint_of(own) != fingerprint_of(its):
        raise UnavailableError(
            "The backup was made of a home with another pepper than this one, or by somebody who has not this one.",
            next_step="If it is one of yours, give the seal that was printed when it was made: --seal SEAL.",
        )
    if not hmac.compare_digest(seal_of(manifest, own or its), seal):
        raise UnavailableError("The backup is not as it was made: its seal does not hold.", next_step=_CHANGED)
    if own is not None:
        return SealHolds.HOME
    return SealHolds.CHECKSUM if its is None else SealHolds.ITSELF


MANIFEST = "backup.json"
VERSION, UNSEALED = 2, 1
"""The form of the manifest, and the older one that has no seal."""

_OF_THE_DISK = "lost+found"
"""At the top of a volume that is the home; it is not ours to move."""
_NOT_COPIED = ("run", "logs", "tool-servers", _OF_THE_DISK)
"""Of a run, or made anew by it."""
WORKSPACES = "workspaces"
_BESIDE_SQLITE = ("-wal", "-shm", "-journal")
_SQLITE_HEAD = b"SQLite format 3\x00"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds: when it was made, its files with their SHA-256, and the head of its journal (0: none).
    `pepper` is the fingerprint of the pepper that `seal` was made with; both are empty for one of an older version."""

    made_at: str
    files: Mapping[str, str]
    journal_head: int
    with_workspaces: bool
    pepper: str = ""
    seal: str = ""

    @property
    def size(self) -> int:
        """How many files it is."""
        return len(self.files)

    def check(self, source: Path, home: Path, *, given: str | None = None) -> SealHolds:
        """By what its seal holds for `home`; see `backup_seal.check_seal`. Raises UnavailableError if it does not."""
        return check_seal(_sealed(self), self.seal, source, home, given=given)


def make_backup(home: Path, target: Path, *, now: datetime, workspaces: bool) -> Backup:
    """Copy `home` into the new folder `target`, readable by its owner only. `workspaces` copies the embedded ones too,
    whose files nobody may have open.

    Raises UsageError for a target that holds something, UnavailableError if something cannot be read or written, or
    lies behind a symbolic link; then nothing named `target` is left.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is there already.", next_step="Name a new folder for each backup.")
    if target.resolve().is_relative_to(home.resolve()):
        raise UsageError(f"{target} lies in the home folder itself.", next_step="Name a folder on another disk.")
    if not gateway_folder(home).is_dir() and not any(home.glob("*")):
        raise UnavailableError(f"{home} holds nothing yet.", next_step="Set SENTINEL_HOME to the folder that you mean.")
    for path in home.rglob("*"):
        if path.is_symlink() and _is_copied(path, home, workspaces=workspaces):
            raise UnavailableError(
                f"{path} is a symbolic link, so a copy would lack what it leads to.",
                next_step="Put there what it leads to, or mount it at that place.",
            )
    fresh = target.with_name(f".{target.name}.unfinished")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700, parents=True)
        for path in _in_order(home, workspaces=workspaces):
            _copy(path, fresh / path.relative_to(home))
        head = _agree(fresh)
        files = {path.relative_to(fresh).as_posix(): _digest(path) for path in _files(fresh)}
        pepper = pepper_of(fresh)
        backup = Backup(format_time(now), files, head, workspaces, fingerprint_of(pepper))
        backup = replace(backup, seal=seal_of(_sealed(backup), pepper))
        create_private(fresh / MANIFEST)
        (fresh / MANIFEST).write_text(json.dumps({**_sealed(backup), "seal": backup.seal}, indent=1))
        _settle(fresh)
        if target.exists():
            target.rmdir()
        fresh = fresh.replace(target)
        _sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise UnavailableError(
            f"The backup was not made: {_reason(error)}.",
            next_step="Check the disk's space and the folder's permissions.",
        ) from None
    return backup


def read_backup(source: Path) -> Backup:
    """The backup in a folder, each file of it checked. Raises UsageError for a folder that is none, UnavailableError
    for one that is not as it was made."""
    try:
        told: dict[str, Any] = json.loads((source / MANIFEST).read_text())
        version = told.pop("version")
        backup = _parsed(told, sealed=version == VERSION) if version in (VERSION, UNSEALED) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError(
            f"{source} is no backup: it has no {MANIFEST} that can be read.",
            next_step="Name a folder that sentinel backup made.",
        ) from None
    if backup is None:
        raise UsageError(
            f"{source} was made by another version of Sentinel RAG (form {str(version)[:20]!r}).",
            next_step="Install that version.",
        )
    _check(source, backup)
    return backup


def put_back(source: Path, home: Path, *, now: datetime, backup: Backup | None = None) -> Path | None:
    """Put a backup in the place of what `home` holds, checked once more as it was copied: to be `backup`, where the
    caller has looked at that. What was there is moved to the folder which is returned. Nobody may use the home
    meanwhile. Raises as `read_backup`, and UnavailableError if something cannot be written; then the home is as it
    was."""
    backup = read_backup(source) if backup is None else backup
    aside = home / f"replaced-{now:%Y%m%dT%H%M%SZ}"
    fresh = home / ".restoring"
    moved: list[Path] = []
    placed: list[Path] = []
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(source, fresh, symlinks=True)
        _check(fresh, backup)  # the very bytes that will be used: who can write to the source had time
        _make_private(fresh)  # before anything is changed there: a read-only medium passes on its modes
        (fresh / MANIFEST).unlink()
        _settle(fresh)
        stays = (fresh.name, "run", _OF_THE_DISK)
        old = [path for path in home.iterdir() if path.name not in stays and not _is_aside(path)]
        if not (fresh / WORKSPACES).exists():
            old = [path for path in old if path.name != WORKSPACES]  # the backup does not speak of them
        if old:
            aside.mkdir(mode=0o700)
        for path in old:
            path.replace(aside / path.name)
            moved.append(path)
        for path in list(fresh.iterdir()):
            path.replace(home / path.name)
            placed.append(home / path.name)
        fresh.rmdir()
    except BaseException as error:  # Ctrl-C amid it, too
        _undo(placed, moved, aside)
        shutil.rmtree(fresh, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise UnavailableError(
            f"The backup was not put back: {_reason(error)}.",
            next_step="Check the disk's space and the folder's permissions.",
        ) from None
    return aside if old else None


class _Unsealed(msgspec.Struct, forbid_unknown_fields=True):
    made_at: str
    files: dict[str, str]
    journal_head: int
    with_workspaces: bool


class _Sealed(_Unsealed, forbid_unknown_fields=True):
    pepper: str
    seal: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


def _parsed(told: dict[str, Any], *, sealed: bool) -> Backup:
    """The manifest's values. Raises ValueError for ones of another form."""
    try:
        found = msgspec.convert(told, _Sealed if sealed else _Unsealed)
    except msgspec.ValidationError as error:
        raise ValueError("no manifest") from error
    if not found.made_at.isprintable():
        raise ValueError("no time")
    return Backup(**msgspec.structs.asdict(found))


def _check(folder: Path, backup: Backup) -> None:
    """Raise UnavailableError unless `folder` holds the files of `backup` and nothing else, links included."""
    entries = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    links = {path.relative_to(folder).as_posix() for path in entries if path.is_symlink() or not path.is_file()}
    found = {path.relative_to(folder).as_posix() for path in entries} - links - {MANIFEST}
    wrong = sorted(links | (found ^ set(backup.files))) + [
        name for name in sorted(found & set(backup.files)) if _digest(folder / name) != backup.files[name]
    ]
    if wrong:
        others = f" and {len(wrong) - 1} more files" if len(wrong) > 1 else ""
        raise UnavailableError(
            f"The backup is not as it was made: {wrong[0]!r}{others}.",
            next_step="Take another backup; this one was damaged or changed.",
        )


def _make_private(folder: Path) -> None:
    """For its owner alone, whatever became of the modes on the way: keys lie there."""
    folder.chmod(0o700)
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _undo(placed: Sequence[Path], moved: Sequence[Path], aside: Path) -> None:
    for path in placed:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    for path in moved:
        (aside / path.name).replace(path)
    with suppress(OSError):
        aside.rmdir()


def _is_copied(path: Path, home: Path, *, workspaces: bool) -> bool:
    parts = path.relative_to(home).parts
    return (
        parts[0] not in _NOT_COPIED
        and (workspaces or parts[0] != WORKSPACES)
        and not parts[0].startswith(("replaced-", ".restoring"))
        and parts[:2] != (gateway_folder(home).name, INSTANCES_FOLDER)
        and not path.name.endswith(_BESIDE_SQLITE)
    )


def _in_order(home: Path, *, workspaces: bool) -> Iterator[Path]:
    """What is copied, in the order in which it may be: see above."""
    files = [path for path in _files(home) if _is_copied(path, home, workspaces=workspaces)]
    gateway = gateway_folder(home)
    last: Sequence[Path] = (
        gateway / JOURNAL_FILE,
        *sorted((gateway / "segments").glob("*")),
        checkpoints_of(gateway / JOURNAL_FILE),
    )
    first = [path for path in files if path.is_relative_to(home / "people")]
    yield from first
    yield from (path for path in files if path not in first and path not in last)
    yield from (path for path in last if path.is_file() and not path.name.endswith(_BESIDE_SQLITE))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_private(target)
    with source.open("rb") as stream:
        is_database = stream.read(len(_SQLITE_HEAD)) == _SQLITE_HEAD
    if not is_database:
        shutil.copyfile(source, target)
        return
    with (
        closing(connect(source, "read")) as live,
        closing(connect(target)) as copy,
    ):
        live.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, until it is used again


def _agree(fresh: Path) -> int:
    """Keep those checkpoints that the copied journal bears out: it was copied before them. The head of the journal."""
    journal = gateway_folder(fresh) / JOURNAL_FILE
    checkpoints = checkpoints_of(journal)
    if not journal.exists():
        return 0
    with closing(connect(journal, "read")) as connection:
        head: int = connection.execute("SELECT coalesce(max(seq), 0) FROM journal").fetchone()[0]
        sealed: int = connection.execute("SELECT coalesce(max(seq), 0) FROM checkpoint").fetchone()[0]
    if checkpoints.exists():
        kept = [line for line in checkpoints.read_bytes().splitlines(keepends=True) if _seq(line) <= max(head, sealed)]
        checkpoints.write_bytes(b"".join(kept))
    return max(head, sealed)


def _seq(line: bytes) -> int:
    try:
        return Checkpoint.parse(line.rstrip(b"\n")).head.seq
    except ValueError:
        return 0  # whatever it is, it is kept: `sentinel audit verify` judges it


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _sealed(backup: Backup) -> dict[str, Any]:
    """What the seal is of, as the manifest has it."""
    return {
        "version": VERSION,
        "made_at": backup.made_at,
        "journal_head": backup.journal_head,
        "with_workspaces": backup.with_workspaces,
        "pepper": backup.pepper,
        "files": dict(backup.files),
    }


def _settle(folder: Path) -> None:
    """Leave nothing of a folder to a power cut: its files, and their names in it."""
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems have no such thing for a folder; its names are the server's business there.
        if not (path.is_dir() and error.errno in (errno.EINVAL, errno.ENOTSUP)):
            raise
    finally:
        os.close(descriptor)


def _is_aside(path: Path) -> bool:
    return path.name.startswith("replaced-")


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
