"""`sentinel audit`: read and verify the Interceptor's journal; it reads the file, so nothing needs to run."""

from __future__ import annotations

import json
from typing import Any

from sentinel_rag.assembly.zones import journal_reader
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._safe_text import safe_cell


def show(audit_id: str | None, *, last: int, as_json: bool) -> int:
    """Print one call's records, or the newest `last`; 3 if there are none."""
    if last < 1:
        raise UsageError(f"--last {last} shows nothing.", next_step="Give a number from 1 on.")
    reader = journal_reader(load_settings())
    entries = reader.find(audit_id) if audit_id is not None else reader.last(last)
    for entry in entries:
        if as_json:
            print(json.dumps(entry.to_dict()))
        elif audit_id is not None:
            print(json.dumps(entry.to_dict(), indent=2))
        else:
            print(audit_line(entry.to_dict()))
    return 0 if entries else 3


def verify(*, as_json: bool) -> int:
    """Recompute the chain; 1 if it does not hold."""
    found = journal_reader(load_settings()).verify()
    if as_json:
        print(
            json.dumps(
                {
                    "intact": found.intact,
                    "records": found.records,
                    "head": found.head.digest.hex(),
                    "broken_at": found.broken_at,
                    "problem": found.problem,
                }
            )
        )
    elif found.intact:
        print(f"The chain of {found.records} records holds. Head: {found.head.digest.hex()}")
    else:
        print(f"The chain breaks at record {found.broken_at}: {found.problem}.")
    return 0 if found.intact else 1


def audit_line(entry: dict[str, Any]) -> str:
    """One record on one line, for people."""
    record = entry["record"]
    parts = [str(record["seq"]), record["at"], record["kind"]]
    parts += [
        f"{name}={record[name]}"
        for name in ("tool", "change", "decision", "rule_id", "reason", "status")
        if record.get(name)
    ]
    if entry["outcome"] is not None:
        parts.append(f"outcome={entry['outcome']}")
    parts += [f"audit_id={record['audit_id']}", f"hash={entry['hash'][:12]}"]
    return safe_cell("  ".join(parts))
