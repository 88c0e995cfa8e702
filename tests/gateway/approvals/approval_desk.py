"""Approvals at the level of the store: a file, a clock that tests turn, and a call to ask about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.audit import Database, Journal, JournalPlace, JournalReader, StateDatabase
from sentinel_rag.contracts.json_values import JsonObject, canonical_json
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.approvals import ApprovalQuestion, ApprovalStore, Binding, Bounds, Waiting
from sentinel_rag.gateway.flow import Violation
from sentinel_rag.gateway.store import new_audit_id
from sentinel_rag.storage.postgres import PostgresDatabase

SECRET = Label(Sensitivity.HIGH, Integrity.UNTRUSTED)
PUBLIC = Label(Sensitivity.LOW, Integrity.UNTRUSTED)


@dataclass
class Clock:
    """The time, moved by hand."""

    now: datetime = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Desk:
    """A store, its journal and its clock."""

    store: ApprovalStore
    journal: Journal
    database: StateDatabase
    clock: Clock

    async def ask(self, binding: Binding, question: ApprovalQuestion) -> str | None:
        """The id of the approval that waits for a person; None if nobody was asked."""
        answer = await self.store.request(binding, question)
        return answer.approval_id if isinstance(answer, Waiting) else None

    def records(self) -> list[dict[str, Any]]:
        return [entry.record for entry in JournalReader(self.database.place).read(0, 1_000)]


def the_call(arguments: JsonObject | None = None, **changes: Any) -> tuple[Binding, ApprovalQuestion]:
    """A comment that carries more than the tool accepts; `changes` are fields of the binding or of the question."""
    arguments = arguments if arguments is not None else {"incident": "4512", "comment": "disable the account"}
    binding = Binding(
        key_id="agent",
        session_id="session-1",
        tool="add_incident_comment",
        arguments_sha256=hashlib.sha256(canonical_json(arguments)).hexdigest(),
        argument_labels=dict.fromkeys(arguments, SECRET),
        context=SECRET,
        rule_id="comment_is_checked",
        policy_sha256="p" * 64,
        schema_sha256="s" * 64,
        near_duplicate_sha256=json.dumps(arguments).casefold(),
    )
    question = ApprovalQuestion(
        effect="write",
        server="sentinel",
        description="Add a comment to an incident.",
        condition="has(comment)",
        taint_level="MEDIUM",
        why="sink_label",
        arguments=arguments,
        violations=(Violation("comment", SECRET, PUBLIC),),
        raised_by=(),
        approvers=(),
    )
    of_question = {name: changes.pop(name) for name in list(changes) if hasattr(question, name)}
    return replace(binding, **changes), replace(question, **of_question)


@contextmanager
def open_desk(place: JournalPlace, clock: Clock, *, bounds: Bounds | None = None) -> Iterator[Desk]:
    with Database(place) if isinstance(place, Path) else PostgresDatabase(place) as database:
        journal = Journal(database, clock=clock)
        store = ApprovalStore(database, journal, clock=clock, new_id=new_audit_id, bounds=bounds)
        yield Desk(store, journal, database, clock)
