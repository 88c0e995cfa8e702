"""`sentinel audit show | verify | key`: read and check the gateway's journal; nothing needs to run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sentinel_rag.app.zones import journal_reader
from sentinel_rag.audit import PUBLIC_FILE, PublicKey, RecordFilter, Verification, verify_export
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import load_settings
from sentinel_rag.storage.port import folder_of
from sentinel_rag.surfaces.cli._moments import moment
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell


def show(
    audit_id: str | None,
    *,
    last: int,
    session: str | None,
    tool: str | None,
    decision: str | None,
    reason: str | None,
    since: str | None,
    as_json: bool,
) -> int:
    """Print one call's records, or the newest `last` that the filters leave; 3 if there are none."""
    if not 1 <= last <= 1_000:
        raise UsageError(f"--last {last} is outside 1 to 1000.", next_step="Use sentinel audit export for all records.")
    reader = journal_reader(load_settings())
    wanted = RecordFilter(
        session_id=session,
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
            print(json.dumps(entry.to_dict(), indent=2))
        else:
            print(audit_line(entry.to_dict()))
    if not entries and not as_json:
        print("No record has this id." if audit_id is not None else "No record is like that.", file=sys.stderr)
        print("  Next: sentinel audit show, which lists the newest ones", file=sys.stderr)
    return 0 if entries else 3


def verify(*, public_key: str | None, export: str | None, anchor: str | None, as_json: bool) -> int:
    """Check the journal, or an exported file; 1 if something does not hold."""
    settings = load_settings()
    reader = journal_reader(settings)
    key = None if public_key is None else PublicKey.load(Path(public_key))
    if export is not None:
        found = _verify_file(Path(export), key or _own_key(folder_of(reader.path)))
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
    record = entry["record"]
    parts = [str(record["seq"]), record["at"], record["kind"]]
    parts += [
        f"{name}={record[name]}"
        for name in (
            "tool",
            "change",
            "name",
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
