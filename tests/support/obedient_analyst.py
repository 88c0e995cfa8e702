"""A `Chat` that does what its question says, for tests of surfaces: it says words, calls tools, waits, or fails.

say TEXT            answers TEXT; a line of it that holds `=` is also evidence
call TOOL JSON      makes that call as the agent and answers with its result
show TOOL JSON      does that, with each of its values in a table, the footnote and what to ask next
cite A|B|C          answers the sentences A, B and C with what a check would say of them (`cited_sentence`)
write A|B|C         shows A, B and C while it writes, then answers ABC; `<` takes back what was shown, `...` waits
long N              answers N sentences of 20 000 characters
wait                waits for `release`, or for ever
fail                raises
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import anyio.to_thread

from sentinel_rag.agent.gateway_client import HttpToolGateway
from sentinel_rag.agent.tool_runs import run_calls
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import (
    Answer,
    Citation,
    CitedBy,
    Evidence,
    Mark,
    Outcome,
    Progress,
    Sentence,
    SentenceState,
    Table,
    ToolTrace,
    Written,
)
from sentinel_rag.contracts.ports import ProgressListener, Question
from sentinel_rag.contracts.tool_calls import Denied, DocumentResult, Succeeded, ToolCall

MAX_WAIT_S = 30.0
FACT = CarriedFact("Incident 38 is High.", "2024-07-02T10:00:00Z", "query_incidents", "c1", "/rows/0/severity")


class ObedientAnalyst:
    """Calls go to the gateway at `url` with the agent's `key`. It remembers what it was asked and what it forgot."""

    def __init__(self, url: str, key: str) -> None:
        self._gateway = HttpToolGateway(url, key)
        self.asked: list[tuple[str, str]] = []
        """Session and question of each turn."""
        self.stopped: list[str] = []
        """Questions that were cancelled while they waited."""
        self.cleared: list[str] = []
        self.forgotten: list[str] = []
        self.deleted: list[str] = []
        self.options: list[Mapping[str, Any]] = []
        self.release = threading.Event()

    async def answer(self, asked: Question) -> Answer:
        question, session_id, progress = asked.text, asked.session_id, asked.progress
        self.asked.append((session_id, question))
        self.options.append(asdict(asked.preferences))
        if progress is not None:
            progress(Progress("Thinking...", 0.0))
        verb, _, rest = question.partition(" ")
        if verb == "call":
            return await self._call(rest, session_id, progress)
        if verb == "show":
            return _with_table(await self._call(rest, session_id, progress))
        if verb == "cite":
            return cited_answer(rest, session_id, progress)
        if verb == "wait":
            await self._wait(question)
        elif verb == "write":
            rest = await self._write(question, rest, progress)
        elif verb == "long":
            rest = " ".join(["x" * 19_998 + "."] * int(rest))
        elif verb == "fail":
            raise RuntimeError("a secret of the inside")
        lines = [line for line in rest.split("\n") if "=" in line]
        evidence = tuple(
            Evidence(line, "c1", "query_incidents", f"/rows/0/{line.partition('=')[0]}", line.partition("=")[2])
            for line in lines
        )
        trace = ToolTrace("c1", "query_incidents", {"limit": 3}, "ok", audit_id="a-1")
        tools = (trace,) if lines else ()
        return Answer(
            outcome=Outcome.ANSWERED, text=rest, session_id=session_id, evidence=evidence, tools=tools, footnote=("-",)
        )

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        (self.cleared if carry else self.forgotten).append(session_id)
        return (FACT,) if carry else ()

    async def delete(self, session_id: str) -> None:
        self.deleted.append(session_id)

    async def aclose(self) -> None:
        """Close the connection to the gateway."""
        await self._gateway.aclose()

    async def _call(self, rest: str, session_id: str, progress: ProgressListener | None) -> Answer:
        name, _, arguments = rest.partition(" ")
        call = ToolCall("c1", session_id, name, json.loads(arguments or "{}"))
        [run] = await run_calls(self._gateway, [call], progress=progress, started=0.0)
        match run.outcome:
            case Succeeded(result=DocumentResult(value=value)):
                outcome, text = Outcome.ANSWERED, "\n".join(_leaves(value))
                evidence = tuple(
                    Evidence(str(leaf), "c1", name, pointer, leaf) for pointer, leaf in _pointed(value, "")
                )
            case Denied(detail=detail, approval_id=approval_id):
                outcome, text, evidence = Outcome.DENIED, f"{detail} {approval_id or ''}".strip(), ()
            case other:
                outcome, text, evidence = Outcome.TOOL_FAILED, type(other).__name__, ()
        return Answer(outcome=outcome, text=text, session_id=session_id, tools=(run.trace(),), evidence=evidence)

    async def _write(self, question: str, rest: str, progress: ProgressListener | None) -> str:
        written = Written()
        for part in rest.split("|"):
            if part == "...":
                await self._wait(question)
                continue
            told = Progress("Writing...", written="" if part == "<" else part, withdrawn=part == "<")
            written.hear(told)
            if progress is not None:
                progress(told)
        return written.text

    async def _wait(self, question: str) -> None:
        released = False
        try:
            released = await anyio.to_thread.run_sync(self.release.wait, MAX_WAIT_S, abandon_on_cancel=True)
        finally:
            if not released:
                self.stopped.append(question)


def cited_answer(script: str, session_id: str, progress: ProgressListener | None = None) -> Answer:
    """An answer of the sentences of `script`, told as it is written."""
    tell = progress or (lambda _: None)
    text, sentences = "", []
    for part in script.split("|"):
        lead = "" if not text or part.startswith("\n") else " "
        said, sentence = cited_sentence(part, len(text) + len(lead))
        text += lead + said
        sentences.append(sentence)
        tell(Progress("Writing...", written=lead + said))
        tell(Progress("Writing...", sentences=(sentence,)))
    trace = ToolTrace("c1", "query_incidents", {"limit": 3}, "ok", audit_id="a-1")
    return Answer(
        outcome=Outcome.ANSWERED,
        text=text,
        session_id=session_id,
        sentences=tuple(sentences),
        tools=(trace,),
        footnote=("-",),
    )


def cited_sentence(part: str, start: int) -> tuple[str, Sentence]:
    """The text of `part`, and what is said of it at place `start` of an answer. `STATE ROW WORDS` with literals as
    `<field=word>`, or `<field=word~cell>` where the cell of row `ROW` holds another value; row 0 cites nothing."""
    lead = part[: len(part) - len(part.lstrip("\n"))]
    state, row, words = part[len(lead) :].split(" ", 2)
    said, marks = "", []
    for number, piece in enumerate(re.split(r"<([^<>]*)>", words)):
        field, _, word = piece.partition("=") if number % 2 else ("", "", piece)
        word, _, cell = word.partition("~")
        if number % 2:
            at = start + len(lead) + len(said)
            found = state == "values_found" or (state == "contradicted" and not cell)
            place = (f"/rows/{int(row) - 1}/{field}", cell or word) if found or cell else ("", None)
            marks.append(Mark(at, at + len(word), found, "c1" if place[0] else "", *place))
        said += word
    sentence = Sentence(
        start=start + len(lead),
        end=start + len(lead) + len(said),
        text=said,
        state=SentenceState(state),
        reason={"not_found": "no cited row has it", "contradicted": "the cited row says otherwise"}.get(state, ""),
        citations=(Citation(f"c1.{row}", "c1", "query_incidents", f"/rows/{int(row) - 1}"),) if row != "0" else (),
        marks=tuple(marks),
        cited_by=CitedBy.WRITER if row != "0" else CitedBy.NOBODY,
    )
    return lead + said, sentence


def _with_table(answer: Answer) -> Answer:
    """The answer with its evidence as a table of places and values, titled by the first value."""
    rows = tuple((piece.pointer, str(piece.value)) for piece in answer.evidence)
    said = tuple(text for _, text in rows)
    table = Table(("Place", "Value"), rows, said[0] if said else "")
    return replace(answer, tables=(table,), footnote=said, suggestions=said)


def _pointed(value: Any, pointer: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in _pointed(part, f"{pointer}/{key}")]
    if isinstance(value, list):
        return [found for place, part in enumerate(value) for found in _pointed(part, f"{pointer}/{place}")]
    return [(pointer, value)]


def _leaves(value: Any) -> list[str]:
    return [f"{pointer} {leaf}" for pointer, leaf in _pointed(value, "")]
