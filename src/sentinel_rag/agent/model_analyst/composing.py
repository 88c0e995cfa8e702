"""The answer that a person sees, out of how the loop ended: the model's text with what the check says of each sentence,
and what code says itself of calls, refusals and empty results.

Nothing of the model's text is erased and nothing replaced. Code speaks where the model said nothing, or where what it
left out matters: a narrower scope than was asked, a refusal, a change that was made. With zero data an answer holds
zero facts, because then no word of the model is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.answers.check import CheckedAnswer, gives_few_sources
from sentinel_rag.agent.answers.compute import COMPUTE
from sentinel_rag.agent.answers.failures import call_text, say_failures
from sentinel_rag.agent.answers.renderer import filters_shown, is_empty, say_partial, say_window, view_data
from sentinel_rag.agent.answers.writer import AnswerWriter, Echo
from sentinel_rag.agent.instruction_text import suspicions
from sentinel_rag.agent.model_analyst.turn import Ended, Ending, ModelTurn
from sentinel_rag.agent.models.failures import PromptFilteredError
from sentinel_rag.agent.row_text import plain, show_age
from sentinel_rag.agent.scope import narrowed, scope_line
from sentinel_rag.agent.tool_runs import ToolRun, changed_something
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.evidence import Evidence, Outcome, Sentence, SentenceState
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Failed
from sentinel_rag.language.frames.phrases import LANGUAGES, WORD, phrase_book
from sentinel_rag.language.lexicon import fold, language_of
from sentinel_rag.language.text import toml_beside

_DATA: Mapping[str, str | Mapping[str, str]] = toml_beside(__package__, "sentences.toml")
SENTENCES = {name: told for name, told in _DATA.items() if isinstance(told, str)}
"""What code says above and below a model's words, and in their place."""
TRANSLATED = {language: told for language, told in _DATA.items() if not isinstance(told, str)}
"""What of it is said in other languages, where the answer is in one."""
SAMPLE_SENTENCE: str = view_data()["sentence"]["sample"]
SET_PHRASES = (SENTENCES["verify"], SENTENCES["offer"], SAMPLE_SENTENCE)
"""What the rules suggest word for word; an answer of nothing else is none."""
RULE = "---"
"""Stands between the answer, which people copy, and what is said about it."""
LONGEST_QUESTION_BACK = 400
MOST_KNOWN_ROWS = 200
MOST_SUSPICIONS = 50
MOST_EMPTY = 4
"""Empty results that an answer tells of, the last ones; the footnote has all."""
_CATALOGUES = frozenset({"list_kql_templates", "list_tables", "list_workspaces", "describe_table"})
"""Tools whose rows tell what there is to ask, and nothing of what happened."""
_NOUNS = {
    "query_incidents": "incidents",
    "get_incident_detail": "incidents",
    "query_alerts": "alerts",
    "get_alert_trend": "alerts",
    "get_alert_events": "events",
    "get_top_entities": "entities",
    "get_threat_summary": "incidents and alerts",
}
_TO_TRY = {
    "a wider window": ("time_window", "start_time", "end_time"),
    "a lower severity": ("min_severity", "severity"),
    "another spelling of the name": ("entity", "incident"),
}
"""What helps against an empty result, by the arguments that it was asked with."""
_OF_THE_MODEL = frozenset({QueryErrorCode.INVALID_ARGUMENT, QueryErrorCode.QUERY_REJECTED})
_MISSED = (SentenceState.NOT_FOUND, SentenceState.CONTRADICTED)
_RESTING = (SentenceState.VALUES_FOUND, SentenceState.SOURCE_GIVEN)


@dataclass(frozen=True, slots=True)
class ComposedAnswer:
    """An answer but for its footnote."""

    outcome: Outcome
    text: str
    spoken: str
    """What the conversation keeps as the assistant's words, with its citations."""
    evidence: tuple[Evidence, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    doubtful: bool = False
    """True if much of it does not stand in the results."""


def compose(turn: ModelTurn, ended: Ended, checked: CheckedAnswer) -> ComposedAnswer:
    """The answer to a turn; `checked` is the check of `ended.text`. Every ending, with every kind of call before it,
    becomes sentences."""
    writer = AnswerWriter(turn.memory.zone)
    if ended.ending is Ending.FAILED:
        return _failed(turn, ended, writer)
    if ended.written_call and ended.written_call not in turn.reading:
        writer.fixed(_words(turn.question.text)["written_change"].format(ended.written_call))
        return _by_code(Outcome.TOOL_FAILED, _openings(turn, ended), writer, turn.warning)
    data = _data(turn)
    empty = bool(data) and all(_found_nothing(run) for run in data)
    says = _says_something(checked)
    if empty and not (says and any(sentence.state in _RESTING for sentence in checked.sentences)):
        _say_nothing_found(writer, data)
    elif data and not says:
        writer.fixed(_words(turn.question.text)["nothing_written"])
        _say_what_came(writer, [run for run in data if not changed_something(run, turn.reading)])
    failed = _say_unsuccessful(writer, turn, some_worked=bool(data) or says)
    if not says and not writer.lines:
        words = _words(turn.question.text)
        writer.fixed(_filter_sentence(ended, words) if ended.ending is Ending.FILTERED else words["no_answer"])
    outcome = _outcome(turn, ended, checked, data, empty, failed)
    return _joined(turn, ended, checked if says else CheckedAnswer("", ()), writer, outcome)


def uncheckable() -> ComposedAnswer:
    """The answer where results do not have the agreed shape: a check that cannot be made lets no text pass."""
    return ComposedAnswer(Outcome.TOOL_FAILED, SENTENCES["uncheckable"], SENTENCES["uncheckable"], doubtful=True)


def draft_opening(turn: ModelTurn, *, out_of_rounds: bool) -> str:
    """What stands before an answer, as far as it is known while the answer is written."""
    return "\n\n".join((*_openings(turn, Ended(Ending.TEXT, out_of_rounds=out_of_rounds)), *_scope(turn)))


def _joined(
    turn: ModelTurn, ended: Ended, checked: CheckedAnswer, writer: AnswerWriter, outcome: Outcome
) -> ComposedAnswer:
    """The parts of the answer one below the other, with the sentences of the model's text at their places."""
    words = _words(checked.text)
    checked = checked.told_in(_language(checked.text))
    before = [*_openings(turn, ended), *_scope(turn), *_warnings(turn, checked, words)]
    opening = "".join(f"{part}\n\n" for part in before)
    _say_what_was_changed(writer, [run for run in turn.runs if changed_something(run, turn.reading)])
    body = checked.text
    closings = _closings(turn, ended, checked, words)
    text = opening + _blocks(body, writer.text, *([RULE, *closings] if closings and body else closings))
    sentences = tuple(each.behind(len(opening)) for each in checked.sentences)
    missed = [sentence.state for sentence in sentences if sentence.state in _MISSED]
    return ComposedAnswer(
        outcome,
        text,
        _blocks(ended.text if body else "", *(line.text for line in writer.lines)) or text,
        (*_evidence(text, sentences), *writer.evidence),
        sentences,
        doubtful=3 * len(missed) > len(sentences) or SentenceState.CONTRADICTED in missed,
    )


def _by_code(
    outcome: Outcome, before: Sequence[str], writer: AnswerWriter, after: str = "", *, doubtful: bool = False
) -> ComposedAnswer:
    text = _blocks(*before, writer.text, after)
    return ComposedAnswer(outcome, text, text, writer.evidence, doubtful=doubtful)


def _blocks(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part.strip())


def _failed(turn: ModelTurn, ended: Ended, writer: AnswerWriter) -> ComposedAnswer:
    """The model, or the way to it, failed: one sentence and the next step, and what the tools had found by then."""
    failure = ended.failure
    assert failure is not None, "a loop that failed says why"
    before = [f"{failure} {failure.next_step}".strip()]
    if isinstance(failure, PromptFilteredError) and turn.memory.defanged:
        before = [str(failure), SENTENCES["filtered_rows"]]
    changes = [run for run in turn.runs if run.call.tool_name not in turn.reading]
    if any(not run.worked and not isinstance(run.outcome, Denied) for run in changes):  # nobody knows what became of it
        before.append(_words(turn.question.text)["sent_before"])
    worked = [run for run in turn.runs if run.worked]
    made = [run for run in worked if changed_something(run, turn.reading)]
    _say_what_was_changed(writer, made, when=" before that")
    _say_what_came(writer, [run for run in worked if run not in made])
    _say_unsuccessful(writer, turn, some_worked=True)
    return _by_code(Outcome.TOOL_FAILED, before, writer, doubtful=True)


def _openings(turn: ModelTurn, ended: Ended) -> list[str]:
    """What stands before the answer, whether or not the model thought of it."""
    opening = [_words(turn.question.text)["out_of_rounds"]] if ended.out_of_rounds else []
    if wants_sample(turn.question.text) and SAMPLE_SENTENCE not in ended.text:
        opening.append(SAMPLE_SENTENCE)
    return opening


def _scope(turn: ModelTurn, *, partly: bool = False) -> list[str]:
    """The line that says what was left out although nobody asked to leave it out. What some of several calls left out
    (`partly`) stands below the answer: the others may have looked further."""
    read = [run.call for run in turn.runs if run.worked and run.call.tool_name in turn.reading]
    alike = len({(call.tool_name, call.arguments.get("time_window")) for call in read}) == 1
    if alike is partly:
        return []
    line = scope_line(
        narrowed([*turn.memory.words], read, known=list(_known_texts(turn))), calls=1 if alike else len(read)
    )
    return [line] if line else []


def _known_texts(turn: ModelTurn) -> Iterator[str]:
    """Texts of results: what a later call took out of them was looked up, and not made up."""
    for result in turn.memory.results:
        for row in result.rows[:MOST_KNOWN_ROWS]:
            yield from (cell for cell in row.cells.values() if isinstance(cell, str))


def _language(text: str) -> str:
    return language_of(fold(text).split())


def _words(text: str) -> Mapping[str, str]:
    """What code says, in the language of an answer, or of the question before it, as far as there are words."""
    return {**SENTENCES, **TRANSLATED.get(_language(text), {})}


def _warnings(turn: ModelTurn, checked: CheckedAnswer, words: Mapping[str, str]) -> list[str]:
    """What a reader must know before the first sentence: that the model gives no sources."""
    if any(sentence.state in _MISSED for sentence in checked.sentences) and not len(turn.memory.results):
        return [words["asked_nothing"]]
    return [words["few_sources"]] if gives_few_sources(checked) else []


def _closings(turn: ModelTurn, ended: Ended, checked: CheckedAnswer, words: Mapping[str, str]) -> list[str]:
    """What stands behind it."""
    body = checked.text
    cited = [citation.call_id for sentence in checked.sentences for citation in sentence.citations]
    now = {run.call.call_id for run in turn.runs}
    earlier = [result for ref in dict.fromkeys(cited) if ref not in now and (result := turn.memory.results.get(ref))]
    ages = [turn.now - each.read_at for each in earlier if each.read_at is not None]
    analysed = turn.features.reasons
    detail = any(run.call.tool_name == "get_incident_detail" and len(run.rows) == 1 for run in turn.runs)
    facts_alone = all(sentence.state is not SentenceState.OWN_WORDS for sentence in checked.sentences)
    offers = (
        detail
        and _language(body) in ("en", "")  # an offer in English below an answer in another language helps nobody
        and facts_alone
        and not analysed
        and not turn.acted
        and turn.question.preferences.verbosity is not Verbosity.SHORT
    )
    told = [run for run in turn.runs if run.call.tool_name not in _CATALOGUES]
    closings = {
        words["read_earlier"].format(show_age(max(ages)) if ages else ""): bool(ages),
        words["cut"]: ended.ending is Ending.CUT,
        _filter_sentence(ended, words): ended.ending is Ending.FILTERED,
        words["defanged"]: turn.memory.defanged and bool(turn.runs),
        words["suspect"]: _warns(turn, checked, told),
        turn.warning: bool(turn.warning),
        **dict.fromkeys(_scope(turn, partly=True), True),
        words["verify"]: analysed and bool(turn.runs) and "verified by a person" not in body,
        words["offer"]: offers and "implications" not in body,
    }
    return [text for text, applies in closings.items() if applies]


def _warns(turn: ModelTurn, checked: CheckedAnswer, told: Sequence[ToolRun]) -> bool:
    """Whether to say that a row reads like an instruction: where the answer cites such a row, else once in a
    conversation. Said under every answer, it is read under none."""
    cited = [each for sentence in checked.sentences for each in sentence.citations if each.pointer]
    calls = {each.call_id for each in cited}
    found = suspicions([run for run in turn.memory.runs if run.call.call_id in calls], most=MOST_SUSPICIONS)
    rows = [(each.run.call.call_id, each.pointer) for each in found]
    warns = any(call == row.call_id and at.startswith(f"{row.pointer}/") for row in cited for call, at in rows)
    warns = warns or (not turn.memory.warned and bool(suspicions(told, most=1)))
    turn.memory.warned = turn.memory.warned or warns
    return warns


def _filter_sentence(ended: Ended, words: Mapping[str, str] = SENTENCES) -> str:
    """Why the answer ends where it does, if a provider's filter stopped it."""
    return words["filtered"].format(f" ({', '.join(ended.filtered)})" if ended.filtered else "")


def _evidence(text: str, sentences: Sequence[Sentence]) -> list[Evidence]:
    """The cells that the marks of the sentences stand for."""
    tools = {citation.call_id: citation.tool for sentence in sentences for citation in sentence.citations}
    return [
        Evidence(text[mark.start : mark.end], mark.call_id, tools.get(mark.call_id, ""), mark.pointer, mark.value)
        for sentence in sentences
        for mark in sentence.marks
        if mark.found and mark.call_id
    ]


def _says_something(checked: CheckedAnswer) -> bool:
    """True if more is written than phrases that the rules suggest."""
    left = " ".join(checked.text.split())
    for phrase in SET_PHRASES:
        left = left.replace(phrase, "")
    return any(character.isalnum() for character in left)


def _data(turn: ModelTurn) -> list[ToolRun]:
    """The calls that brought something; those that only tell what there is to ask, if no other did."""
    worked = [run for run in turn.runs if run.worked and run.call.tool_name != "compute"]
    return [run for run in worked if run.call.tool_name not in _CATALOGUES] or worked


def _outcome(
    turn: ModelTurn, ended: Ended, checked: CheckedAnswer, data: Sequence[ToolRun], empty: bool, failed: Outcome | None
) -> Outcome:
    refused = any(isinstance(run.outcome, Denied) and run.call.tool_name not in turn.reading for run in turn.runs)
    cited = {citation.call_id for sentence in checked.sentences for citation in sentence.citations}
    asks = len(checked.text) <= LONGEST_QUESTION_BACK and checked.text.rstrip(" *_`").endswith("?")
    rules = (
        (refused, Outcome.DENIED),  # whatever was read, what was asked for was not done
        (empty and not cited - {run.call.call_id for run in data}, Outcome.NO_DATA),
        (bool(data or cited), Outcome.ANSWERED),
        (failed is not None, failed),
        (not _says_something(checked), Outcome.TOOL_FAILED),
        (asks, Outcome.CLARIFICATION),
        (ended.ending is Ending.REFUSED, Outcome.OUT_OF_SCOPE),
    )
    return next((outcome for holds, outcome in rules if holds and outcome is not None), Outcome.ANSWERED)


def _found_nothing(run: ToolRun) -> bool:
    """True for a call that worked and came back without anything of what was asked."""
    if run.result is None:
        return False
    match run.call.tool_name:
        case "get_alert_trend":
            return run.at("/summary/total") == 0
        case "get_threat_summary":
            return not run.at("/summary/incidents/total") and not run.at("/summary/alerts/total")
        case "get_alert_events" if run.at("/summary/alert_id"):
            return False
        case _:
            return is_empty(run)


def _say_nothing_found(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """Each empty result: what was asked, in which window, whether the table holds rows at all, and what to try."""
    distinct = {(run.call.tool_name, str(dict(run.call.arguments))): run for run in runs}
    for run in list(distinct.values())[-MOST_EMPTY:]:
        arguments = run.call.arguments
        template, parts = filters_shown(run)
        about = arguments.get("template") or arguments.get("incident")
        if about and not template:
            template, parts = "{}", [Echo(str(about))]
        noun = _NOUNS.get(run.call.tool_name, "rows")
        writer.say(f"No {noun} match" + (f" ({template})." if template else "."), *parts)
        say_window(writer, run)
        say_partial(writer, run)
        tables = writer.joined(run, "/coverage/tables", writer.number)
        if run.at("/coverage/table_rows") == 0:
            writer.say("The table behind it ({}) holds no rows at all: nothing was collected or imported yet.", tables)
            continue
        if run.at("/coverage/table_newest"):
            newest = writer.time(run, "/coverage/table_newest")
            writer.say("The table ({}) does hold rows, the newest of {}.", tables, newest)
        tries = [tried for tried, names in _TO_TRY.items() if any(arguments.get(name) for name in names)]
        if tries:
            writer.fixed(f"Try {' or '.join(tries)}.")


def _say_what_came(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """How many rows the calls found, for a turn whose model gave no usable words about them. Calls of one tool that
    found as many are told once; the footnote has each."""
    told: set[tuple[str, str, str]] = set()
    for run in runs:
        if run.result is None:
            continue
        known = run.at("/coverage/rows_total") is not None
        verb, pointer = ("found", "/coverage/rows_total") if known else ("returned", "/coverage/rows_returned")
        said = (run.call.tool_name, verb, str(run.at(pointer)))
        if said not in told:
            told.add(said)
            writer.say(f"Rows that {run.call.tool_name} {verb}: {{}}.", writer.number(run, pointer))


def _say_what_was_changed(writer: AnswerWriter, runs: Sequence[ToolRun], *, when: str = "") -> None:
    """What each call that changed something says of it, whatever the model says. A tool that tells no fields is told
    by its call."""
    for run in runs:
        made = run.at("/rows/0/changes")
        count = len(made) if isinstance(made, list | tuple) else 0
        if not count or run.at("/rows/0/number") is None:
            writer.fixed(f"This change was made: {call_text(run.call.tool_name, run.call.arguments)}.")
            continue
        writer.say(f"Incident {{}} was changed{when}:", writer.number(run, "/rows/0/number"))
        for place in range(count):
            fields = (writer.cell(run, f"/rows/0/changes/{place}/{key}") for key in ("field", "before", "after"))
            writer.say("- {}: {} → {}", *fields)


def _say_unsuccessful(writer: AnswerWriter, turn: ModelTurn, *, some_worked: bool) -> Outcome | None:
    """Refusals, and failures that no later call made good; the outcome if there are any."""
    told = _unsuccessful(turn.runs)
    if told:
        return say_failures(writer, told, some_worked=some_worked, by_model=True)
    if not some_worked:  # calls of the model that could not be read, each reason once
        for name, why in dict.fromkeys((call.name, call.explanation) for call in turn.faulty_calls):
            writer.fixed(f"The model's call of {plain(name)} did not run: {plain(why)}")
    return None


def _unsuccessful(runs: Sequence[ToolRun]) -> list[ToolRun]:
    """The calls to tell of: every refusal once, and each failure that no later call made good. What a model got wrong
    in an argument or a query and found another way for is no failure, nor is a computation over what it has."""
    told: dict[tuple[str, str], ToolRun] = {}
    for place, run in enumerate(runs):
        name = run.call.tool_name
        if name == COMPUTE.name:
            continue
        match run.outcome:
            case Denied(rule_id=rule_id, approval_id=approval_id):
                told.setdefault((name, approval_id or rule_id or ""), run)
            case Failed(error=error):
                own_fault = error.code in _OF_THE_MODEL
                later = (each for each in runs[place + 1 :] if each.worked)
                if not any(own_fault or each.call.tool_name == name for each in later):
                    told.setdefault((name, error.code.value), run)
    return list(told.values())


def wants_sample(text: str) -> bool:
    """True if invented data is asked for."""
    found = list(WORD.finditer(text))
    words, spans = [fold(match[0]) for match in found], [match.span() for match in found]
    _, items = phrase_book(LANGUAGES[0]).cover(words, spans, text)
    return any(item.sense("meta", frozenset({"sample"})) for item in items)
