"""Records as JSON lines that prove themselves: with `verify_export` and the public key nothing else is needed.

The first line says what the file is, each record is the line that was hashed, each checkpoint follows the record it
seals, and the last line counts. Between its first and its last record an export is complete, because the chain is; that
it begins early enough only its reader can judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO

from sentinel_rag.audit.chain import GENESIS, ChainHead, PublicKey, digest
from sentinel_rag.audit.files import DamagedJournal, stream
from sentinel_rag.audit.verification import Broken, ChainCheck, Verification
from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.storage.port import JournalPlace

VERSION = 1


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: records `first` to `head`, sealed up to number `sealed` (None: not at all)."""

    records: int
    first: int | None
    head: ChainHead
    sealed: int | None


def export_records(
    path: JournalPlace, target: BinaryIO, *, since: datetime | None = None, until: datetime | None = None
) -> Exported:
    """Write the records of `[since, until)` of the journal at `path`, oldest first, and a few more: up to the one that
    the next checkpoint seals, because only a checkpoint proves what stands before it.

    Raises UnavailableError if there is no journal, DamagedJournal if a record cannot be read.
    """
    _write(target, {"export": {"v": VERSION, "since": _time(since), "until": _time(until)}})
    first, head, records, sealed = None, GENESIS, 0, None
    for stored in stream(path):
        at = _recorded_at(stored.seq, stored.record)
        if first is None:
            if since is not None and at < since:
                continue
            if until is not None and at >= until:
                break
            first = stored.seq
        elif until is not None and at >= until and sealed == head.seq:
            break
        target.write(stored.record + b"\n")
        head, records = ChainHead(stored.seq, stored.digest), records + 1
        if stored.checkpoint is not None:
            target.write(stored.checkpoint + b"\n")
            sealed = stored.seq
    _write(target, {"end": _end(first, head, records)})
    return Exported(records, first, head, sealed)


def verify_export(lines: Iterable[bytes], key: PublicKey) -> Verification:
    """Check an export, line by line."""
    check = ChainCheck(key)
    try:
        _follow(iter(lines), check)
        if check.records and check.sealed is None:
            raise Broken(check.head.seq, "no checkpoint is in the file, so nothing proves its records")
    except Broken as broken:
        return check.result(broken)
    return check.result(None)


def _follow(lines: Iterable[bytes], check: ChainCheck) -> None:
    begun = ended = False
    for line in lines:
        line = line.removesuffix(b"\n")
        body = _object(line, check)
        if not begun:
            if not isinstance(body.get("export"), dict) or body["export"].get("v") != VERSION:
                raise Broken(0, "the file is no export of `sentinel audit export`")
            begun = True
        elif ended:
            raise Broken(check.head.seq, "lines follow after the last one")
        elif "end" in body:
            if body["end"] != _end(check.first, check.head, check.records):
                raise Broken(check.head.seq, "the last line does not fit the records: some were cut or added")
            ended = True
        elif "checkpoint" in body:
            check.checkpoint(line, "the export", check.head.digest)
        elif isinstance(body.get("seq"), int):
            check.record(body["seq"], line, digest(line))
        else:
            raise Broken(check.head.seq + 1, "a line is neither a record nor a checkpoint")
    if not ended:
        raise Broken(check.head.seq + 1, "the file ends without its last line: it was cut")


def _object(line: bytes, check: ChainCheck) -> dict[str, Any]:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Broken(check.head.seq + 1, "a line is no JSON object")
    return body


def _end(first: int | None, head: ChainHead, records: int) -> dict[str, JsonValue]:
    return {"first": first, "last": head.seq if records else None, "records": records, "head": head.digest.hex()}


def _recorded_at(seq: int, record: bytes) -> datetime:
    try:
        return parse_time(json.loads(record)["at"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedJournal(
            f"Record {seq} of the journal cannot be read.",
            next_step="Run `sentinel audit verify` and restore the file from a copy.",
        ) from error


def _write(target: BinaryIO, line: dict[str, JsonValue]) -> None:
    target.write(canonical_json(line) + b"\n")


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
