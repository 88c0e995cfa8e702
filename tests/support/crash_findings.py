"""What a killed gateway must have left, held against what its callers were told and what its tool server saw.

No acknowledged record is lost; every call that reached the tool server has its intent on record, and every intent has
exactly one outcome once the next start is done, "unknown" where nobody can tell. No label of a session or of a store is
lower than one that was acknowledged. Hidden values of acknowledged results are there, those of closed sessions are not.
No approval lets two calls through, and one that was given and not used still lets its call through, once.
"""

from __future__ import annotations

import http.client
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
from tests.support.crash_load import ANSWER_SECONDS, Approved, Told

from sentinel_rag.audit import JournalEntry, JournalReader, OutcomeStatus, RecordConnection
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow import HandleReference, NoSuchHandle
from sentinel_rag.gateway.store import State
from sentinel_rag_testing.fake_tool_server import RecordedCall


class Findings:
    """The check of one trial, in the order of its methods. `after_seq`: the journal's last record before the load."""

    def __init__(self, told: Told, reader: JournalReader, after_seq: int) -> None:
        self.violations: list[str] = []
        self.records = self.unsealed = self.interrupted = self.handles = self.used = 0
        self._told = told
        self._reader = reader
        self._after_seq = after_seq
        self._approved_intents: Counter[str] = Counter()

    def look_before_the_restart(self) -> None:
        """The journal as the kill left it."""
        self.unsealed = self._expect_intact("before the restart")

    def look_after_the_restart(self, state: State, reached: Sequence[RecordedCall]) -> None:
        """Records, labels and hidden values, as the next start finds them. `reached`: the tool server's calls."""
        self.interrupted = state.journal.interrupted
        entries = self._entries()
        self._expect_records(entries, reached)
        self._expect_labels(entries, state)
        self._expect_handles(state)
        state.database.run_now(self._expect_nothing_open)

    def use_what_is_left(self, url: str, reached: Sequence[RecordedCall]) -> None:
        """Try every approval again, twice: what was used stays used, what was given and not used works once."""
        for approved in self._told.approvals:
            ran = _runs(reached, approved.marker)
            expected = 0 if self._approved_intents[approved.approval_id] else 1
            for _ in range(2):
                _call_again(url, approved)
            more = _runs(reached, approved.marker) - ran
            if approved.acknowledged and more != expected:
                self._find(
                    f"approval {approved.approval_id} let {more} calls through after the restart, not {expected}"
                )
            if ran + more > 1:
                self._find(f"approval {approved.approval_id} let {ran + more} calls through")
            self.used += ran + more
        counts = Counter(
            entry.record["approval_id"]
            for entry in self._entries()
            if entry.kind == "intent" and entry.record.get("approval_id")
        )
        for approval_id, count in counts.items():
            if count > 1:
                self._find(f"approval {approval_id} stands in {count} intents")

    def look_after_a_clean_stop(self) -> None:
        """The journal once more: sealed to its end."""
        unsealed = self._expect_intact("after the restart")
        if unsealed:
            self._find(f"{unsealed} records are not sealed after a clean stop")

    def _find(self, sentence: str) -> None:
        self.violations.append(sentence)

    def _expect_intact(self, when: str) -> int:
        found = self._reader.verify()
        self.records = found.records
        if not found.intact:
            self._find(f"{when} the journal breaks at record {found.broken_at}: {found.problem}")
        return found.unsealed

    def _entries(self) -> list[JournalEntry]:
        """The records of this trial."""
        found: list[JournalEntry] = []
        while page := self._reader.read(found[-1].seq if found else self._after_seq, 1_000):
            found += page
        return found

    def _expect_records(self, entries: Sequence[JournalEntry], reached: Sequence[RecordedCall]) -> None:
        records: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for entry in entries:
            records[entry.record.get("audit_id", "")][entry.kind].append(entry.record)
        intents: Counter[tuple[str, str]] = Counter()
        for audit_id, kinds in records.items():
            for intent in kinds["intent"]:
                intents[intent["tool"], intent["arguments"]["marker"]] += 1
                self._approved_intents[intent.get("approval_id") or ""] += 1
            if len(kinds["intent"]) != len(kinds["outcome"]):
                self._find(f"call {audit_id} has {len(kinds['intent'])} intents and {len(kinds['outcome'])} outcomes")
        for call in self._told.calls:
            kinds = records[call.audit_id]
            statuses = [record["status"] for record in kinds["outcome"]]
            if call.status == 200 and statuses != [OutcomeStatus.SUCCESS]:
                self._find(f"call {call.audit_id} was answered, and its outcomes on record are {statuses}")
            elif call.status != 200 and not kinds["refusal"] and not kinds["outcome"]:
                self._find(f"call {call.audit_id} ended with {call.status}, and has no record")
        dispatched = Counter((call.tool, str(call.arguments["marker"])) for call in reached)
        for (tool, marker), count in (dispatched - intents).items():
            self._find(f"{count} calls of {tool} with {marker} reached the tool server and have no intent")
        unknown = sum(
            record["status"] == OutcomeStatus.UNKNOWN for kinds in records.values() for record in kinds["outcome"]
        )
        if unknown != self.interrupted:
            self._find(f"{unknown} outcomes are unknown, and the start closed {self.interrupted} calls")

    def _expect_labels(self, entries: Sequence[JournalEntry], state: State) -> None:
        self._expect_no_lower_decision(entries)
        answered = {call.audit_id for call in self._told.calls if call.status == 200}
        sessions: dict[str, Label] = defaultdict(lambda: BOTTOM)
        stores: dict[str, Label] = defaultdict(lambda: BOTTOM)
        for entry in entries:
            record = entry.record
            if entry.kind == "intent" and record["audit_id"] in answered:
                session_id = record["session_id"]
                sessions[session_id] = sessions[session_id].join(Label.from_dict(record["context_after"]))
                if record["tool"] == "note":
                    name = f"note/{record['arguments']['place']}"
                    stores[name] = stores[name].join(Label.from_dict(record["context_before"]))
        for session_id, label in sessions.items():
            kept = state.database.run_now(partial(_context, session_id=session_id))
            if not label.flows_to(kept):
                self._find(f"session {session_id} was at {label}, and is at {kept}")
        for name, label in stores.items():
            kept = anyio.run(state.resources.of, [name])
            if not label.flows_to(kept):
                self._find(f"{name} was at {label}, and is at {kept}")

    def _expect_no_lower_decision(self, entries: Sequence[JournalEntry]) -> None:
        """Whichever gateway decided a call, it knew what every call before it had revealed in that session."""
        sessions: dict[str, Label] = defaultdict(lambda: BOTTOM)
        for entry in entries:
            if entry.kind == "intent":
                session_id, decided = entry.record["session_id"], Label.from_dict(entry.record["context_before"])
                if not sessions[session_id].flows_to(decided):
                    self._find(f"call {entry.audit_id} was decided by {decided} after {sessions[session_id]}")
                sessions[session_id] = sessions[session_id].join(Label.from_dict(entry.record["context_after"]))

    def _expect_handles(self, state: State) -> None:
        for session_id, handle, hidden in self._told.handles:
            reference = HandleReference.parse(handle)
            try:
                found = anyio.run(state.handles.resolve, session_id, [reference])[reference].value
            except NoSuchHandle:
                if session_id not in self._told.closing:
                    self._find(f"{handle} of {session_id} was acknowledged and is not there")
                continue
            self.handles += 1
            if found != hidden:
                self._find(f"{handle} of {session_id} stands for {found!r}, not for {hidden!r}")
            if session_id in self._told.closed:
                self._find(f"{handle} of {session_id} is there although the session was closed")

    def _expect_nothing_open(self, connection: RecordConnection) -> None:
        (left,) = connection.execute("SELECT count(*) FROM open_call").fetchone()
        if left:
            self._find(f"{left} calls are still open after the restart")
        for session_id in self._told.closed:
            row = connection.execute("SELECT closed_at FROM session WHERE session_id = ?", [session_id]).fetchone()
            if row is None or row[0] is None:
                self._find(f"session {session_id} was closed and is open again")


def _runs(reached: Sequence[RecordedCall], marker: str) -> int:
    return sum(call.tool == "isolate" and call.arguments["marker"] == marker for call in list(reached))


def _call_again(url: str, approved: Approved) -> None:
    """Send the call once more; a new question that it raises is denied, so that none is left waiting."""
    body = {"session_id": approved.session_id, "tool_name": "isolate", "args": {"marker": approved.marker}}
    answer = _post(url, "/v1/proxy-execute", approved.keys.agent, body)
    if "approval_id" in answer:
        _post(url, f"/v1/approvals/{answer['approval_id']}/deny", approved.keys.approver, {})


def _post(url: str, path: str, key: str, body: Any) -> Any:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=ANSWER_SECONDS)
    try:
        headers = {"X-API-Key": key, "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def _context(connection: RecordConnection, session_id: str) -> Label:
    """The context label as it lies on the disk."""
    row = connection.execute("SELECT sensitivity, integrity FROM session WHERE session_id = ?", [session_id]).fetchone()
    return BOTTOM if row is None else Label(Sensitivity(row[0]), Integrity(row[1]))
