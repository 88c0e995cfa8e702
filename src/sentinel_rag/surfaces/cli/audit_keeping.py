"""`sentinel audit export | rotate | prune`: take records out of the journal, and keep it small, provably."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

from sentinel_rag.app.zones import journal_reader, open_journal
from sentinel_rag.audit import Exported, export_records
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._moments import moment

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


def prune(*, days: float, as_json: bool) -> int:
    """Remove segments whose newest record is older than `days`; 3 if there are none."""
    if not 0 <= days <= MAX_DAYS:
        raise UsageError(f"--older-than {days} is outside 0 to {MAX_DAYS} days.", next_step="Give an age in days.")
    with open_journal(load_settings()) as journal:
        gone = journal.archive.prune(utc_now() - timedelta(days=days))
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
