"""The answer that a person sees, out of how the loop ended: the model's text with what the check says of each sentence,
and what code says itself of calls, refusals and empty results.

Nothing of the model's text is erased and nothing replaced. Code speaks where the model said nothing, or where what it
left out matters: a narrower scope than was asked, a refusal, a change that was made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.answers.check import CheckedAnswer, cited_share
from sentinel_rag.agent.answers.scope import narrowed, scope_line
from sentinel_rag.agent.model_analyst.answer_text import shown
from sentinel_rag.agent.model_analyst.draft import moved
from sentinel_rag.agent.model_analyst.loop import Ended, Ending
from sentinel_rag.agent.model_analyst.notices import (
    ASKED_NOTHING,
    FEW_SOURCES,
    SET_PHRASES,
    closings,
    filter_sentence,
    openings,
)
from sentinel_rag.agent.model_analyst.plain_facts import (
    CATALOGUES,
    found_nothing,
    say_faulty_calls,
    say_nothing_found,
    say_what_came,
    say_what_was_changed,
    unsuccessful,
)
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models.failures import PromptFilteredError
from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.compositions.unsuccessful import say_failures
from sentinel_rag.agent.tool_runs import ToolRun, changed_something
from sentinel_rag.contracts.evidence import Evidence, Outcome, Sentence, SentenceState
from sentinel_rag.contracts.tool_calls import Denied

NO_ANSWER = (
    "The model gave no answer and made no call that could run. Ask in other words; if it stays, choose another model."
)
FILTERED_ROWS = (
    "Texts of the rows tripped it, also in shortened form: attack text in logs does that. Ask for fewer columns or a "
    "narrower question; SENTINEL_MODEL=offline answers without a model."
)
NOTHING_WRITTEN = "The model wrote no answer to these results."
WRITTEN_CHANGE = (
    "Nothing was changed: the model wrote the call of {} as text instead of making it. Ask again; if it stays, choose "
    "a model or a server that makes tool calls (sentinel doctor --model)."
)
UNCHECKABLE = (
    "The results do not have the agreed shape, so the answer cannot be compared with them and is not shown. The agent "
    "and a tool server do not match: install one version of both. The agent's log has the details."
)
LONGEST_QUESTION_BACK = 400
MOST_KNOWN_ROWS = 200
WEAK = 1 / 3
"""The share of statements with a source below which a model is said to give few."""
FEWEST_JUDGED = 3
"""Statements about the environment, below which nothing is said of their sources."""
_MISSED = (SentenceState.NOT_FOUND, SentenceState.CONTRADICTED)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Composed:
    """An answer but for its footnote. `spoken` is what the conversation keeps as the assistant's words, with its
    citations; `doubtful` says that much of it does not stand in the results."""

    outcome: Outcome
    text: str
    spoken: str
    evidence: tuple[Evidence, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    doubtful: bool = False


def compose(turn: Turn, ended: Ended, checked: CheckedAnswer) -> Composed:
    """The answer to a turn; `checked` is the check of `ended.text`. Every ending, with every kind of call before it,
    becomes sentences."""
    writer = AnswerWriter(turn.memory.zone)
    if ended.ending is Ending.FAILED:
        return _failed(turn, ended, writer)
    if ended.written_call and ended.written_call not in turn.reading:
        writer.fixed(WRITTEN_CHANGE.format(ended.written_call))
        return _by_code(turn, ended, writer, Outcome.TOOL_FAILED)
    data = _data(turn)
    empty = bool(data) and all(found_nothing(run) for run in data)
    says = _says_something(checked)
    if not says or (empty and not _tells(checked)):
        _say_for_the_model(writer, turn, data, empty=empty)
    failed = _say_unsuccessful(writer, turn, some_worked=bool(data) or says)
    if not says and not writer.lines:
        writer.fixed(filter_sentence(ended) if ended.ending is Ending.FILTERED else NO_ANSWER)
    return _joined(
        turn,
        ended,
        checked if says else CheckedAnswer("", ()),
        writer,
        _outcome(turn, ended, checked, data, empty, failed),
    )


def uncheckable() -> Composed:
    """The answer where results do not have the agreed shape: a check that cannot be made lets no text pass."""
    return Composed(Outcome.TOOL_FAILED, UNCHECKABLE, UNCHECKABLE, doubtful=True)


def sanitised(text: str) -> str:
    """A model's text as it is checked and shown."""
    return shown(text)


def draft_opening(turn: Turn, *, out_of_rounds: bool) -> str:
    """What stands before an answer, as far as it is known while the answer is written."""
    return "\n\n".join((*openings(turn, Ended(Ending.TEXT, out_of_rounds=out_of_rounds)), *_scope(turn)))


def _scope(turn: Turn) -> list[str]:
    """The line that says what was left out although nobody asked to leave it out."""
    read = [run.call for run in turn.runs if run.worked and run.call.tool_name in turn.reading]
    line = scope_line(narrowed([*turn.memory.words], read, known=list(_known_texts(turn))))
    return [line] if line else []


def _known_texts(turn: Turn) -> Iterator[str]:
    """Texts of results: what a later call took out of them was looked up, and not made up."""
    for result in turn.memory.results:
        for row in result.rows[:MOST_KNOWN_ROWS]:
            yield from (cell for cell in row.cells.values() if isinstance(cell, str))


def _joined(turn: Turn, ended: Ended, checked: CheckedAnswer, writer: AnswerWriter, outcome: Outcome) -> Composed:
    """The parts of the answer one below the other, with the sentences of the model's text at their places."""
    before = [*openings(turn, ended), *_scope(turn), *_warnings(turn, checked)]
    opening = "".join(f"{part}\n\n" for part in before)
    notes = AnswerWriter(turn.memory.zone)
    say_what_was_changed(notes, [run for run in turn.runs if changed_something(run, turn.reading)])
    code = (*writer.lines, *notes.lines)
    body = checked.text
    cited = [citation.call_id for sentence in checked.sentences for citation in sentence.citations]
    found = _evidence(opening + body, moved(checked.sentences, len(opening)))
    after = ["\n".join(line.text for line in code), *closings(turn, ended, body, cited)]
    text = opening + "\n\n".join(part for part in (body, *after) if part.strip())
    missed = sum(sentence.state in _MISSED for sentence in checked.sentences)
    spoken = "\n\n".join(part for part in (ended.text if body else "", *(line.text for line in code)) if part.strip())
    return Composed(
        outcome,
        text,
        spoken or text,
        (*found, *(piece for line in code for piece in line.evidence)),
        moved(checked.sentences, len(opening)),
        doubtful=3 * missed > len(checked.sentences)
        or any(s.state is SentenceState.CONTRADICTED for s in checked.sentences),
    )


def _warnings(turn: Turn, checked: CheckedAnswer) -> list[str]:
    """What a reader must know before the first sentence: that the model gives no sources."""
    about = [sentence for sentence in checked.sentences if sentence.state is not SentenceState.OWN_WORDS]
    missed = [sentence for sentence in about if sentence.state in _MISSED]
    if missed and not len(turn.memory.results):
        return [ASKED_NOTHING]
    return [FEW_SOURCES] if len(about) >= FEWEST_JUDGED and cited_share(checked) < WEAK else []


def _evidence(text: str, sentences: Sequence[Sentence]) -> list[Evidence]:
    """The cells that the marks of the sentences stand for."""
    tools = {citation.call_id: citation.tool for sentence in sentences for citation in sentence.citations}
    return [
        Evidence(text[mark.start : mark.end], mark.call_id, tools.get(mark.call_id, ""), mark.pointer, mark.value)
        for sentence in sentences
        for mark in sentence.marks
        if mark.found and mark.call_id
    ]


def _data(turn: Turn) -> list[ToolRun]:
    """The calls that brought something; those that only tell what there is to ask, if no other did."""
    worked = [run for run in turn.runs if run.worked and run.call.tool_name != "compute"]
    return [run for run in worked if run.call.tool_name not in CATALOGUES] or worked


def _say_for_the_model(writer: AnswerWriter, turn: Turn, data: Sequence[ToolRun], *, empty: bool) -> None:
    """What the calls brought, where the model's words do not tell it."""
    if empty:
        say_nothing_found(writer, data)
    elif data:
        writer.fixed(NOTHING_WRITTEN)
        say_what_came(writer, [run for run in data if not changed_something(run, turn.reading)])


def _say_unsuccessful(writer: AnswerWriter, turn: Turn, *, some_worked: bool) -> Outcome | None:
    """Refusals, and failures that no later call made good; the outcome if there are any."""
    outcome = None
    told = unsuccessful(turn.runs)
    if told:
        outcome = say_failures(writer, told, some_worked=some_worked, by_model=True)
    elif not some_worked:
        say_faulty_calls(writer, turn.faulty_calls)
    return outcome


def _outcome(
    turn: Turn, ended: Ended, checked: CheckedAnswer, data: Sequence[ToolRun], empty: bool, failed: Outcome | None
) -> Outcome:
    refused = any(isinstance(run.outcome, Denied) and run.call.tool_name not in turn.reading for run in turn.runs)
    if refused:  # whatever was read, what was asked for was not done
        return Outcome.DENIED
    cited = {citation.call_id for sentence in checked.sentences for citation in sentence.citations}
    if empty and not cited - {run.call.call_id for run in data}:
        return Outcome.NO_DATA
    if data or cited:
        return Outcome.ANSWERED
    if failed is not None:
        return failed
    if not _says_something(checked):
        return Outcome.TOOL_FAILED
    if len(checked.text) <= LONGEST_QUESTION_BACK and checked.text.rstrip(" *_`").endswith("?"):
        return Outcome.CLARIFICATION
    if ended.ending is Ending.REFUSED:
        return Outcome.OUT_OF_SCOPE
    return Outcome.ANSWERED


def _by_code(turn: Turn, ended: Ended, writer: AnswerWriter, outcome: Outcome) -> Composed:
    text = "\n".join(line.text for line in writer.lines)
    answer = "\n\n".join(part for part in (*openings(turn, ended), text, turn.warning) if part.strip())
    return Composed(outcome, answer, answer, tuple(piece for line in writer.lines for piece in line.evidence))


def _failed(turn: Turn, ended: Ended, writer: AnswerWriter) -> Composed:
    """The model, or the way to it, failed: one sentence and the next step, and what the tools had found by then."""
    failure = ended.failure
    assert failure is not None, "a loop that failed says why"
    worked = [run for run in turn.runs if run.worked]
    parts = [f"{failure} {failure.next_step}".strip()]
    if isinstance(failure, PromptFilteredError) and turn.memory.defanged:
        parts = [str(failure), FILTERED_ROWS]
    if any(_is_open(turn, run) for run in turn.runs):
        parts.append("A change was sent before that: look at the calls below before you ask for it again.")
    made = [run for run in worked if changed_something(run, turn.reading)]
    say_what_was_changed(writer, made, when=" before that")
    say_what_came(writer, [run for run in worked if run not in made])
    _say_unsuccessful(writer, turn, some_worked=True)
    answer = "\n\n".join(part for part in (*parts, "\n".join(line.text for line in writer.lines)) if part.strip())
    evidence = tuple(piece for line in writer.lines for piece in line.evidence)
    return Composed(Outcome.TOOL_FAILED, answer, answer, evidence, doubtful=True)


def _is_open(turn: Turn, run: ToolRun) -> bool:
    """True for a change of which nobody knows whether it was made: neither done nor refused."""
    return run.call.tool_name not in turn.reading and not run.worked and not isinstance(run.outcome, Denied)


def _tells(checked: CheckedAnswer) -> bool:
    """True if a sentence rests on a result: the model told what came itself."""
    return any(
        sentence.state in (SentenceState.VALUES_FOUND, SentenceState.SOURCE_GIVEN) for sentence in checked.sentences
    )


def _says_something(checked: CheckedAnswer) -> bool:
    """True if more is written than phrases that the rules suggest."""
    left = " ".join(checked.text.split())
    for phrase in SET_PHRASES:
        left = left.replace(phrase, "")
    return any(character.isalnum() for character in left)
