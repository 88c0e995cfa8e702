"""The answer that a person sees, out of how the loop ended: checked text of the model, or what code can say itself.

Where the calls of a turn brought nothing, no word of the model is shown: code tells of empty results and refusals.
Everything else of the model passes `answer_text`, `claims` and `grounding`, in this order.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sentinel_rag.agent.answer_writer import AnswerWriter
from sentinel_rag.agent.grounding import REMOVED, GrowingCheck, broken_evidence, ground
from sentinel_rag.agent.model_analyst.answer_text import shown
from sentinel_rag.agent.model_analyst.bare_answers import answers_a_state
from sentinel_rag.agent.model_analyst.claims import NOT_MADE, NOT_MADE_NOW, without_false_deeds
from sentinel_rag.agent.model_analyst.draft import Draft
from sentinel_rag.agent.model_analyst.loop import Ended, Ending
from sentinel_rag.agent.model_analyst.made_changes import changed_something, changes_made
from sentinel_rag.agent.model_analyst.notices import closings, filter_sentence, openings
from sentinel_rag.agent.model_analyst.plain_facts import (
    CATALOGUES,
    found_nothing,
    say_nothing_found,
    say_what_came,
    say_what_was_changed,
    unsuccessful,
)
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models import PromptFilteredError
from sentinel_rag.agent.offline.compositions.unsuccessful import say_failures
from sentinel_rag.agent.offline.sample_wishes import wants_sample
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Evidence, Outcome
from sentinel_rag.contracts.tool_calls import Denied

UNASKED = (
    "The model stated facts without asking any tool for them, also when it was told to, so its answer is not shown. "
    "Ask in other words; if it stays, choose a model that calls tools."
)
NO_ANSWER = (
    "The model gave no answer and made no call that could run. Ask in other words; if it stays, choose another model."
)
FILTERED_ROWS = (
    "Texts of the rows tripped it, also in shortened form: attack text in logs does that. Ask for fewer columns or a "
    "narrower question; SENTINEL_MODEL=offline answers without a model."
)
NOTHING_CHECKED = "Nothing of what the model wrote could be checked against the results."
NOTHING_WRITTEN = "The model wrote no answer to these results."
LONGEST_QUESTION_BACK = 400
UNCHECKABLE = (
    "The results do not have the agreed shape, so the answer cannot be checked and is not shown. The agent and a tool "
    "server do not match: install one version of both. The agent's log has the details."
)
_LOOKS_BACK = re.compile(
    r"\b(?:so far|recap|hand-?over|(?:this|our|the) conversation|what (?:did|have) (?:we|you) (?:just )?"
    r"(?:say|said|see|seen|find|found|discuss\w*|look\w*)|you (?:just )?(?:said|told|mentioned|listed|found))\b",
    re.IGNORECASE,
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Composed:
    """An answer but for its footnote. `spoken` is what the conversation keeps as the assistant's words; `doubtful` says
    that sentences were taken out or put right, and `left_out` how many sentences and cells no result supported."""

    outcome: Outcome
    text: str
    spoken: str
    evidence: tuple[Evidence, ...] = ()
    doubtful: bool = False
    left_out: int = 0


def states_facts(turn: Turn, text: str) -> bool:
    """True if `text` holds values that results would have to support, whether or not any does. A question about what
    was said before may be answered from that, and a question back may name what was listed."""
    checked = ground(shown(text), turn.memory.evidence, question=turn.question)
    asks_back = text.rstrip(" *_`").endswith("?") and len(text) <= LONGEST_QUESTION_BACK
    if asks_back or _LOOKS_BACK.search(turn.question):
        return checked.touched
    return bool(checked.evidence) or checked.touched or answers_a_state(turn.question, shown(text))


def compose(turn: Turn, ended: Ended) -> Composed:
    """The answer to a turn. Every ending, with every kind of call before it, becomes sentences; results in another
    shape than the agreed one too, since a check that cannot be made must not let a text pass."""
    try:
        return _composed(turn, ended)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        _log.exception("an answer could not be checked")
        return Composed(Outcome.TOOL_FAILED, UNCHECKABLE, UNCHECKABLE, doubtful=True)


def _composed(turn: Turn, ended: Ended) -> Composed:
    writer = AnswerWriter(turn.memory.zone)
    worked = [run for run in turn.runs if run.worked]
    data = _data(turn)
    if ended.ending is Ending.FAILED:
        return _failed(turn, ended, writer, worked)
    if ended.ending is Ending.UNASKED:
        return Composed(Outcome.TOOL_FAILED, UNASKED, UNASKED, doubtful=True)
    if turn.runs and not worked:
        outcome = say_failures(writer, unsuccessful(turn.runs), some_worked=False, by_model=True)
        return _by_code(turn, ended, writer, outcome)
    if _empty(data):
        say_nothing_found(writer, data)
        _say_unsuccessful(writer, turn)
        return _by_code(turn, ended, writer, _refused(turn) or Outcome.NO_DATA)
    return _by_model(turn, ended, writer, data)


def _by_model(turn: Turn, ended: Ended, writer: AnswerWriter, data: Sequence[ToolRun]) -> Composed:
    text = _without_false_deeds(turn, shown(ended.text))
    earlier = [f"Changed earlier in this conversation: {'; '.join(turn.memory.made)}."] if NOT_MADE_NOW in text else []
    made = changes_made(turn.runs, turn.reading)
    checked = ground(text, turn.memory.evidence, question=turn.question)
    body = checked.text.strip()
    if not _says_something(body):
        if data:
            writer.fixed(NOTHING_CHECKED if text.strip() else NOTHING_WRITTEN)
            say_what_came(writer, [run for run in data if not changed_something(run, turn.reading)])
        body = "\n".join((body, *(line.text for line in writer.lines))).strip()
    notes = AnswerWriter(turn.memory.zone)
    say_what_was_changed(notes, [run for run in turn.runs if changed_something(run, turn.reading)])
    _say_unsuccessful(notes, turn)
    if not body and not made:
        said = filter_sentence(ended) if ended.ending is Ending.FILTERED else NO_ANSWER
        return Composed(Outcome.TOOL_FAILED, said, said, doubtful=True)
    parts = [
        *openings(turn, ended),
        body,
        "\n".join(line.text for line in notes.lines),
        *earlier,
        *closings(turn, ended, body, checked.evidence),
    ]
    evidence = (*checked.evidence, *(piece for line in (*writer.lines, *notes.lines) for piece in line.evidence))
    broken = broken_evidence(evidence, turn.memory.runs)
    answer = _joined(parts)
    return Composed(
        _refused(turn) or _outcome(turn, ended, body, checked.evidence, data),
        answer,
        _joined([*openings(turn, ended), body]) or answer,
        tuple(piece for piece in evidence if piece not in broken),
        doubtful=checked.touched or NOT_MADE in text or NOT_MADE_NOW in text,
        left_out=len(checked.removals),
    )


def _without_false_deeds(turn: Turn, text: str) -> str:
    made = changes_made(turn.runs, turn.reading)
    if made:
        return without_false_deeds(text, made)
    # What earlier questions changed is told by code: a model's "I closed it" may mean another incident.
    return without_false_deeds(text, note=NOT_MADE_NOW if turn.memory.made else NOT_MADE)


def drafted(turn: Turn, *, out_of_rounds: bool) -> Draft | None:
    """What shows the next text of the model while it comes; None where its words wait for their end or do not count:
    no call has brought anything, or what stands before the answer depends on all of it."""
    data = _data(turn)
    if not data or _empty(data) or wants_sample(turn.question):
        return None
    return Draft(
        GrowingCheck(turn.memory.evidence, turn.question),
        lambda text: _without_false_deeds(turn, shown(text)),
        opening=_joined(openings(turn, Ended(Ending.TEXT, out_of_rounds=out_of_rounds))),
    )


def _data(turn: Turn) -> list[ToolRun]:
    """The calls that brought something; those that only tell what there is to ask, if no other did."""
    worked = [run for run in turn.runs if run.worked]
    return [run for run in worked if run.call.tool_name not in CATALOGUES] or worked


def _empty(data: Sequence[ToolRun]) -> bool:
    return bool(data) and all(found_nothing(run) for run in data)


def _by_code(turn: Turn, ended: Ended, writer: AnswerWriter, outcome: Outcome) -> Composed:
    text = "\n".join(line.text for line in writer.lines)
    answer = _joined([*openings(turn, ended), text, *([turn.warning] if turn.warning else [])])
    return Composed(outcome, answer, answer, tuple(piece for line in writer.lines for piece in line.evidence))


def _failed(turn: Turn, ended: Ended, writer: AnswerWriter, worked: Sequence[ToolRun]) -> Composed:
    """The model, or the way to it, failed: one sentence and the next step, and what the tools had found by then."""
    failure = ended.failure
    assert failure is not None, "a loop that failed says why"
    parts = [f"{failure} {failure.next_step}".strip()]
    if isinstance(failure, PromptFilteredError) and turn.memory.defanged:
        parts = [str(failure), FILTERED_ROWS]
    if any(_is_open(turn, run) for run in turn.runs):
        parts.append("A change was sent before that: look at the calls below before you ask for it again.")
    made = [run for run in worked if run.call.tool_name not in turn.reading]
    say_what_was_changed(writer, [run for run in made if changed_something(run, turn.reading)], when=" before that")
    say_what_came(writer, [run for run in worked if run not in made or not changed_something(run, turn.reading)])
    _say_unsuccessful(writer, turn)
    lines = "\n".join(line.text for line in writer.lines)
    answer = _joined([*parts, lines])
    evidence = tuple(piece for line in writer.lines for piece in line.evidence)
    return Composed(Outcome.TOOL_FAILED, answer, answer, evidence, doubtful=True)


def _is_open(turn: Turn, run: ToolRun) -> bool:
    """True for a change of which nobody knows whether it was made: neither done nor refused."""
    return run.call.tool_name not in turn.reading and not run.worked and not isinstance(run.outcome, Denied)


def _say_unsuccessful(writer: AnswerWriter, turn: Turn) -> None:
    told = unsuccessful(turn.runs)
    if told:
        say_failures(writer, told, some_worked=True, by_model=True)


def _outcome(turn: Turn, ended: Ended, body: str, evidence: Sequence[Evidence], data: Sequence[ToolRun]) -> Outcome:
    if ended.ending is Ending.REFUSED and not data:
        return Outcome.OUT_OF_SCOPE
    if data or evidence:
        return Outcome.ANSWERED
    if body.rstrip(" *_`").endswith("?"):
        return Outcome.CLARIFICATION
    return Outcome.OUT_OF_SCOPE


def _refused(turn: Turn) -> Outcome | None:
    """DENIED if a call was refused that would have changed something: whatever was read, the wish was not done."""
    refused = any(isinstance(run.outcome, Denied) and run.call.tool_name not in turn.reading for run in turn.runs)
    return Outcome.DENIED if refused else None


def _says_something(text: str) -> bool:
    """True if more is left of a checked text than its notes of what was left out."""
    left = text.replace(REMOVED, "").replace(NOT_MADE, "").replace(NOT_MADE_NOW, "")
    return any(character.isalnum() for character in left)


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part.strip())
