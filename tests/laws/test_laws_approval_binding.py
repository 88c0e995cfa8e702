"""An approval fits the call that it was given for and no other: whatever part of the binding differs, it is refused."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentinel_rag.audit import Database, Journal
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.approvals import (
    ApprovalQuestion,
    ApprovalSpent,
    ApprovalStore,
    ApprovalVerdict,
    Asker,
    Binding,
    CallSubject,
    Decider,
    EarlierRead,
    FieldChange,
    Raised,
    Waiting,
    near_duplicate_sha256,
)
from sentinel_rag.gateway.flow import Violation
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store import new_audit_id

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
labels = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))
hashes = st.text("0123456789abcdef", min_size=64, max_size=64)
parts = {
    "key_id": texts,
    "session_id": texts,
    "tool": texts,
    "arguments_sha256": hashes,
    "argument_labels": st.dictionaries(texts, labels, max_size=3),
    "context": labels,
    "rule_id": texts,
    "policy_sha256": hashes,
    "schema_sha256": st.none() | hashes,
    "subject_sha256": st.none() | hashes,
    "memory": labels,
}
changes = st.builds(FieldChange, texts, st.none() | texts, st.none() | texts | st.integers())
bindings = st.builds(Binding, **parts)
questions = st.builds(
    ApprovalQuestion,
    effect=texts,
    server=texts,
    description=texts,
    condition=texts,
    taint_level=texts,
    why=texts,
    arguments=st.dictionaries(texts, texts | st.integers() | st.none() | st.lists(texts, max_size=2), max_size=3),
    violations=st.lists(st.builds(Violation, texts, labels, labels, st.booleans()), max_size=2).map(tuple),
    raised_by=st.lists(st.builds(Raised, texts, texts, labels, texts), max_size=2).map(tuple),
    approvers=st.lists(texts, max_size=2).map(tuple),
    asker=st.builds(
        Asker, texts, texts, st.lists(texts, max_size=2).map(tuple), st.lists(texts, max_size=2).map(tuple)
    ),
    title=texts,
    subject=st.none()
    | st.builds(CallSubject, texts, texts, st.dictionaries(texts, texts, max_size=2), st.lists(changes).map(tuple)),
    runs_at_yes=st.booleans(),
    evidence=st.lists(st.builds(EarlierRead, texts, texts, texts, st.booleans()), max_size=2).map(tuple),
)


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[ApprovalStore, Database]]:
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "journal.sqlite") as database:
        journal = Journal(database)

        def clock() -> datetime:
            return datetime(2026, 7, 1, tzinfo=UTC)

        yield ApprovalStore(database, journal, clock=clock, new_id=new_audit_id), database


def test_the_strategies_know_every_part_of_a_binding() -> None:
    assert set(parts) == {field.name for field in fields(Binding) if field.compare}


TOOL = parse_policy("""
tools:
  - name: send
    effect: write
    parameters: [{name: text, type: string}]
    taint_rules: [{rule_id: sending, condition: "true", taint_level: LOW, confirm: asker}]
""").tools["send"]
SAID = st.text(st.sampled_from("abk o.:/!=?'<;-1"), max_size=30)
SPELLINGS = (
    str.upper,
    lambda text: text.replace(" ", "  "),
    lambda text: f" {text}\u200b",
    lambda text: text.replace("o", "\u043e"),
    lambda text: text.replace("a", "a\u0301"),
    lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    lambda text: "".join(f"&#{ord(sign)};" for sign in text),
    lambda text: f"\u201c{text}\u201d",
)


@pytest.mark.requirement("APPR-6")
@given(SAID, st.lists(st.sampled_from(SPELLINGS), max_size=2))
def test_a_spelling_of_a_call_reads_as_the_call(text: str, ways: list[Callable[[str], str]]) -> None:
    spelled = text
    for way in ways:
        spelled = way(spelled)
    assert near_duplicate_sha256(TOOL, {"text": spelled}) == near_duplicate_sha256(TOOL, {"text": text})


@given(st.text("abc123", min_size=1), st.text("abc123", min_size=1))
def test_another_word_is_another_call(one: str, other: str) -> None:
    same = near_duplicate_sha256(TOOL, {"text": one}) == near_duplicate_sha256(TOOL, {"text": other})
    assert same == (one == other)


@pytest.mark.requirement("APPR-2")
@given(bindings, st.data())
def test_any_changed_part_changes_the_hash(binding: Binding, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(parts)))
    changed = replace(binding, **{name: data.draw(parts[name])})
    assert (changed == binding) == (changed.sha256() == binding.sha256())


@given(bindings, bindings)
def test_two_bindings_have_one_hash_exactly_if_they_are_equal(one: Binding, other: Binding) -> None:
    assert (one == other) == (one.sha256() == other.sha256())


@given(bindings, questions)
def test_what_is_stored_is_what_was_asked(binding: Binding, question: ApprovalQuestion) -> None:
    assert Binding.from_dict(binding.to_dict()) == binding
    assert ApprovalQuestion.from_dict(question.to_dict()) == question
    canonical_json({"binding": binding.to_dict(), "question": question.to_dict()})


@pytest.mark.requirement("APPR-2")
@pytest.mark.requirement("APPR-3")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_approval_is_refused_to_every_other_call_and_serves_its_own_once(
    store: tuple[ApprovalStore, Database], data: st.DataObject
) -> None:
    approvals, database = store
    empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    # A key and session of its own for each example, so that no bound of an earlier one is met.
    binding = replace(data.draw(bindings), arguments_sha256=empty, key_id=new_audit_id(), session_id=new_audit_id())
    name = data.draw(st.sampled_from(sorted(parts)))
    other = replace(binding, **{name: data.draw(parts[name])})
    assume(other != binding)
    question = replace(data.draw(questions), arguments={}, approvers=())

    async def run() -> None:
        asked = await approvals.request(binding, question)
        assert isinstance(asked, Waiting)
        approval_id = asked.approval_id
        await approvals.decide(approval_id, ApprovalVerdict.APPROVE, Decider("somebody else"))
        assert await approvals.approved(other) is None
        with pytest.raises(ApprovalSpent):
            await database.run(approvals.consume(approval_id, other))
        assert await approvals.approved(binding) == approval_id
        await database.run(approvals.consume(approval_id, binding))
        assert await approvals.approved(binding) is None
        with pytest.raises(ApprovalSpent):
            await database.run(approvals.consume(approval_id, binding))

    asyncio.run(run())


def test_a_refused_use_undoes_what_was_written_with_it(store: tuple[ApprovalStore, Database]) -> None:
    approvals, database = store
    spend = approvals.consume("none-such", Binding("k", "s", "t", "a", {}, Label(), "r", "p", None))

    def write(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE intent (audit_id TEXT)")
        spend(connection)

    with pytest.raises(ApprovalSpent):
        database.run_now(write)
    found = database.run_now(
        lambda connection: connection.execute("SELECT name FROM sqlite_master WHERE name = 'intent'").fetchall()
    )
    assert found == []
