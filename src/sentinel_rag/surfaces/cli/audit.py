"""`sentinel audit`: show, verify and export the gateway's record, rotate its signing key, and prune what is old."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.app.zones import journal_reader, key_store, open_journal
from sentinel_rag.audit import (
    PUBLIC_FILE,
    Exported,
    PublicKey,
    RecordFilter,
    Verification,
    export_records,
    verify_export,
)
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.storage.port import folder_of
from sentinel_rag.surfaces.cli._moments import moment
from sentinel_rag.surfaces.cli._output import print_json
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell


def show(
    audit_id: str | None,
    *,
    last: int,
    session: str | None,
    person: str | None,
    incident: str | None,
    tool: str | None,
    decision: str | None,
    reason: str | None,
    since: str | None,
    as_json: bool,
) -> int:
    """Print one call's records, or the newest `last` that the filters leave; 3 if there are none."""
    if not 1 <= last <= 1_000:
        raise UsageError(f"--last {last} is outside 1 to 1000.", next_step="Use sentinel audit export for all records.")
    settings = load_settings()
    reader = journal_reader(settings)
    keys = None if person is None else _keys_of(person, settings)
    wanted = RecordFilter(
        session_id=session,
        keys=keys,
        sessions=frozenset() if keys is None else reader.sessions_of(keys),
        incident=incident,
        tool=tool,
        decision=decision,
        reason=reason,
        since=None if since is None else moment("--since", since),
    )
    if audit_id is not None and wanted != RecordFilter():
        raise UsageError(
            "An audit id names one call, so there is nothing to filter.", next_step="Leave out the id or the filters."
        )
    entries = reader.find(audit_id) if audit_id is not None else reader.search(wanted, last)
    for entry in entries:
        if as_json:
            print(json.dumps(entry.to_dict()))
        elif audit_id is not None:
            print_json(entry.to_dict())
        else:
            print(audit_line(entry.to_dict()))
    if not entries and not as_json:
        print("No record has this id." if audit_id is not None else "No record is like that.", file=sys.stderr)
        print("  Next: sentinel audit show, which lists the newest ones", file=sys.stderr)
    return 0 if entries else 3


def _keys_of(person: str, settings: Settings) -> frozenset[str]:
    """A name with the keys that have it, ended ones too."""
    with closing(key_store(settings)) as keys:
        return frozenset({person, *(each.key_id for each in keys.list() if each.name == person)})


def verify(*, public_key: str | None, file: str | None, anchor: str | None, as_json: bool) -> int:
    """Check the journal, or an exported file; 1 if something does not hold."""
    settings = load_settings()
    reader = journal_reader(settings)
    key = None if public_key is None else PublicKey.load(Path(public_key))
    if file is not None:
        found = _verify_file(Path(file), key or _own_key(folder_of(reader.path)))
    else:
        found = reader.verify(public_key=key, anchor=Path(anchor) if anchor is not None else settings.audit_anchor)
    print(json.dumps(found.to_dict()) if as_json else "\n".join(map(safe, verdict(found))))
    return 0 if found.intact else 1


def key(*, as_json: bool) -> int:
    """Print the public key and its fingerprint."""
    found = _own_key(folder_of(journal_reader(load_settings()).path))
    if as_json:
        print(json.dumps({"algorithm": "Ed25519", "fingerprint": found.fingerprint, "pem": found.pem}))
    else:
        print(found.pem, end="")
        print(f"Fingerprint (SHA-256 of the raw key): {found.fingerprint}")
    return 0


def verdict(found: Verification) -> list[str]:
    """What a check found, in sentences; also what it cannot say."""
    if not found.intact:
        lines = [f"The journal does not hold at record {found.broken_at}: {found.problem}."]
        if found.records:
            lines.append(f"Before that, {_range(found)} hold.")
        return lines
    lines = [f"{_range(found)[0].upper()}{_range(found)[1:]} hold. Head: {found.head.digest.hex()}"]
    if found.pruned_through:
        lines.append(f"Records 1 to {found.pruned_through} were pruned; a signed record says so.")
    if found.sealed is None:
        lines.append("Nothing is signed, so a cut tail or a rewritten end would not show. The next start signs it.")
        return lines
    unsealed = f"{found.unsealed} after it not sealed yet" if found.unsealed else "none after it"
    lines.append(f"Sealed up to record {found.sealed}; {unsealed}. Key: {found.key}")
    lines.append(
        f"The anchor proves records up to {found.anchored}."
        if found.anchored is not None
        else "No anchor was checked: a copy of the whole folder from an earlier time would look the same."
    )
    return lines


def audit_line(entry: dict[str, Any]) -> str:
    """One record on one line, for people."""
    record = {**entry["record"], "incident": (entry["record"].get("arguments") or {}).get("incident")}
    parts = [str(record["seq"]), record["at"], record["kind"]]
    parts += [
        f"{name}={record[name]}"
        for name in (
            "tool",
            "incident",
            "store",
            "change",
            "name",
            "state",
            "bytes",
            "key_state",
            "decision",
            "rule_id",
            "reason",
            "status",
            "place",
            "problem",
            "first",
            "last",
            "through",
        )
        if record.get(name)
    ]
    if entry["outcome"] is not None:
        parts.append(f"outcome={entry['outcome']}")
    parts += [f"audit_id={record['audit_id']}", f"hash={entry['hash'][:12]}"]
    return safe_cell("  ".join(parts))


def _verify_file(path: Path, key: PublicKey) -> Verification:
    try:
        with path.open("rb") as stream:
            return verify_export(stream, key)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", next_step="Give a file that sentinel audit export wrote."
        ) from error


def _own_key(folder: Path) -> PublicKey:
    path = folder / PUBLIC_FILE
    if not path.exists():
        raise UnavailableError(
            "There is no signing key yet: no gateway of this version has run with this home folder.",
            next_step="Start one with `sentinel up`, or give --public-key FILE.",
        )
    return PublicKey.load(path)


def _range(found: Verification) -> str:
    if not found.records:
        return "no records"
    return f"{found.records} records ({found.first} to {found.head.seq})"


MAX_DAYS = 36_500


def export(file: str, *, since: str | None, until: str | None) -> int:
    """Write records to a new file or standard output; 3 if none lies in the window."""
    start = None if since is None else moment("--since", since)
    end = None if until is None else moment("--until", until)
    if start is not None and end is not None and start >= end:
        raise UsageError("--since is not before --until.", next_step="Give the earlier time to --since.")
    journal = journal_reader(load_settings()).path
    if file == "-":
        done = export_records(journal, sys.stdout.buffer, since=start, until=end)
        sys.stdout.buffer.flush()
    else:
        path = Path(file)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise UsageError(f"{path} is there already.", next_step="Give the name of a new file.") from None
        except OSError as error:
            raise UnavailableError(
                f"{path} cannot be written: {error.strerror}.", next_step="Give a file in a folder that is yours."
            ) from error
        try:
            with os.fdopen(descriptor, "wb") as stream:
                done = export_records(journal, stream, since=start, until=end)
        except BaseException:
            path.unlink(missing_ok=True)  # a half of an export would only be taken for a whole one
            raise
    print(_exported(done), file=sys.stderr)
    return 0 if done.records else 3


def rotate(*, as_json: bool) -> int:
    """Move all sealed records into a segment; 3 if there is nothing to move."""
    with open_journal(load_settings()) as journal:
        segment = journal.archive.rotate()
    if as_json:
        print(
            json.dumps(
                None if segment is None else {"file": segment.file, "first": segment.first, "last": segment.last}
            )
        )
    elif segment is not None:
        print(f"Records {segment.first} to {segment.last} are in the segment {segment.file}.")
    else:
        print("There are no records yet.")
    return 0 if segment is not None else 3


def prune(*, older_than: float, as_json: bool) -> int:
    """Remove segments whose newest record is older than so many days; 3 if there are none."""
    if not 0 <= older_than <= MAX_DAYS:
        raise UsageError(
            f"--older-than {older_than} is outside 0 to {MAX_DAYS} days.", next_step="Give an age in days."
        )
    with open_journal(load_settings()) as journal:
        gone = journal.archive.prune(utc_now() - timedelta(days=older_than))
    if as_json:
        print(
            json.dumps(
                {"segments": sum(bool(each.file) for each in gone), "pruned_through": gone[-1].last if gone else None}
            )
        )
    elif gone and not gone[-1].file:
        print(f"The records {gone[0].first} to {gone[-1].last} were removed, on record.")
    elif gone:
        print(f"{len(gone)} segment(s) with the records {gone[0].first} to {gone[-1].last} were removed, on record.")
    else:
        print("No segment is that old. Records leave the live file with `sentinel audit rotate`, or by themselves.")
    return 0 if gone else 3


def _exported(done: Exported) -> str:
    if done.first is None:
        return "No record lies in that window."
    unsealed = done.head.seq - (done.first - 1 if done.sealed is None else done.sealed)
    tail = f", {unsealed} after it not sealed yet" if unsealed else ""
    sealed = "none of them sealed yet" if done.sealed is None else f"sealed up to record {done.sealed}{tail}"
    return f"{done.records} records ({done.first} to {done.head.seq}), {sealed}."
