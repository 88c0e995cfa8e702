"""A question to the knowledge base carried out: its searches in bounded steps, and the answer with what it cites.

Above is the analyst, which asks whether there is a wish; below `turn`, which makes the calls. What a row or a document
says may become words that are searched by, and nothing else: it chooses no tool and no filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sentinel_rag.agent.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.conversation import AskedCall, ListItem
from sentinel_rag.agent.knowledge_hits import KnowledgeHit, hits_of
from sentinel_rag.agent.offline.compositions import say_failures
from sentinel_rag.agent.offline.execution import carry_out
from sentinel_rag.agent.offline.knowledge.finishing import finished
from sentinel_rag.agent.offline.knowledge.fitting import About, by_fit, by_incident, fits, held, telling
from sentinel_rag.agent.offline.knowledge.past_answers import (
    MOST_PAST,
    filters_told,
    only_fitting,
    say_closing,
    say_freshness,
    say_past,
)
from sentinel_rag.agent.offline.knowledge.phases import PHASES, phase_of
from sentinel_rag.agent.offline.knowledge.playbook_answers import NOTHING_DONE, say_documents, say_playbook
from sentinel_rag.agent.offline.knowledge.searches import (
    about_incident,
    catalogue_searches,
    document_read,
    documents_of,
    past_search,
    playbook_search,
    query_for,
)
from sentinel_rag.agent.offline.knowledge.wishes import KnowledgeWish, Sought
from sentinel_rag.agent.offline.plan import Plan, PlannedCall, View
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES

INGEST_COMMAND = "sentinel knowledge ingest"
_WHICH = "Which incident do you mean? Give its number, or say in words what it is about."
_ABOUT_WHAT = "What is it about? Name the kind of attack, a technique such as T1566, or an incident by its number."


async def answer_wish(turn: Turn, wish: KnowledgeWish, reading: Reading) -> Answer:
    """The answer to a wish; a wish that lacks what it is about is asked back."""
    if wish.sought is Sought.CATALOGUE:
        return await _catalogue(turn)
    if not wish.incident and not wish.topic and not wish.filters:
        back = _WHICH if wish.sought in (Sought.PAST, Sought.CLOSED) else _ABOUT_WHAT
        return turn.asked_back(back, ("List the incidents still open, newest first", "Which playbooks are there?"))
    if wish.sought is Sought.STEPS:
        return await _steps(turn, wish, reading)
    if wish.sought is Sought.PLAYBOOK:
        return await _playbook(turn, wish)
    return await _past(turn, wish, reading)


async def answer_narrowed(turn: Turn, asked: AskedCall, filters: Mapping[str, JsonValue]) -> Answer:
    """The search of the last answer once more, with further filters."""
    kept = {name: value for name, value in asked.arguments.items() if isinstance(value, str) and name != "collection"}
    topic = str(kept.pop("query", ""))
    liked = str(kept.pop("like_incident", "")).partition("@")[0]
    wish = KnowledgeWish(sought=Sought.PAST, topic=topic, incident=liked, filters={**kept, **filters})
    return await _past(turn, wish, None)


async def _past(turn: Turn, wish: KnowledgeWish, reading: Reading | None) -> Answer:
    """Past incidents like an incident, or about words."""
    about = About(wish.topic, _filter(wish, "tactic"), _filter(wish, "technique"))
    detail: ToolRun | None = None
    if wish.incident:
        liked = past_search("", wish.filters, like=_like(turn, wish.incident))
        search, detail = await turn.run((liked, _detail(wish.incident)))
        if len(detail.rows) == 1:
            found = about_incident(detail.rows[0])
            about = About(f"{found.words} {wish.topic}".strip(), found.tactics, found.techniques)
        elif not search.worked and reading is not None:
            return await _no_such_incident(turn, wish, reading, detail)
        if _not_kept(search) and len(detail.rows) == 1:
            # An incident that the knowledge base does not hold is searched by what the workspace tells of it.
            (search,) = await turn.run((past_search(query_for(about), wish.filters),))
    else:
        (search,) = await turn.run((past_search(wish.topic, wish.filters),))
    if not search.worked:
        return turn.failed_answer([search])
    groups = [group for group in by_incident(hits_of(search)) if group[0].number != wish.incident][:MOST_PAST]
    writer = turn.writer()
    items: tuple[ListItem, ...] = ()
    outcome = Outcome.ANSWERED
    if detail is not None and len(detail.rows) == 1:
        _say_incident(writer, detail)
    if not groups:
        outcome = _say_no_past(writer, search, wish)
    else:
        fitting, sure = only_fitting(groups, about)
        _say_found(writer, wish, sure)
        closings = 3 if wish.sought is Sought.CLOSED else 1
        items = say_past(writer, fitting, about, closings=closings if sure else 0)
        say_freshness(writer, search)
    return finished(
        turn, writer, [search], wish.sought.value, items, outcome, incident=wish.incident, remarks=wish.remarks
    )


def _say_found(writer: AnswerWriter, wish: KnowledgeWish, sure: bool) -> None:
    if sure and wish.incident:
        writer.fixed("Past incidents like it, the likest first:")
    elif sure:
        writer.fixed("Past incidents that fit, the best first:")
    else:
        writer.fixed(
            "No past incident clearly fits. These are the nearest by their words, and may be about other things:"
        )


def _say_no_past(writer: AnswerWriter, search: ToolRun, wish: KnowledgeWish) -> Outcome:
    if search.at("/freshness/incidents") == 0:
        writer.fixed(
            f"The knowledge base holds no past incident that you may find. `{INGEST_COMMAND}` reads in those of "
            "the last months."
        )
        return Outcome.NO_DATA
    template, parts = filters_told(search)
    about = Echo(wish.topic or f"incident {wish.incident}" if wish.topic or wish.incident else "any")
    told = f" ({template})" if template else ""
    writer.say(
        f"No past incident was found for {{}}{told}. Leave a filter out, or say it in other words.", about, *parts
    )
    return Outcome.NO_DATA


async def _playbook(turn: Turn, wish: KnowledgeWish) -> Answer:
    """What the playbooks say about something."""
    about = About(wish.topic, (), _filter(wish, "technique"), wish.phase)
    query = f"{wish.topic} {wish.phase}".strip()
    (search,) = await turn.run((playbook_search(query, wish.filters),))
    if search.worked and wish.filters and not hits_of(search):
        (search,) = await turn.run((playbook_search(query, {}),))
    if not search.worked:
        return turn.failed_answer([search])
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], about)
    runs = [search]
    if hits and not wish.phase and _is_title(wish.topic, hits[0]):
        # The whole playbook is asked for: it is told from its beginning.
        about = replace(about, phase=PHASES[0])
    if hits and about.phase and fits(hits[0], about):
        hits = await _with_phase(turn, hits, about, runs)
    writer = turn.writer()
    if not hits:
        return finished(turn, writer, runs, wish.sought.value, (), _say_no_playbook(writer, search, wish.topic))
    items = _say_best(writer, hits, about, sure=fits(hits[0], about))
    writer.fixed(NOTHING_DONE)
    return finished(turn, writer, runs, wish.sought.value, items)


async def _steps(turn: Turn, wish: KnowledgeWish, reading: Reading) -> Answer:
    """What to do about an incident: the section of the playbook that fits it, beside a past incident like it."""
    detail_call, like_call = _detail(wish.incident), past_search("", {}, like=_like(turn, wish.incident))
    detail, past = await turn.run((detail_call, like_call))
    if len(detail.rows) != 1:
        return await _no_such_incident(turn, wish, reading, detail)
    status = str(detail.rows[0].get("status") or "")
    phase = wish.phase or ("triage" if status == "New" else "containment")
    about = about_incident(detail.rows[0], phase)
    calls = [playbook_search(f"{query_for(about)} {wish.topic}".strip(), {})]
    if _not_kept(past):
        calls.append(past_search(query_for(about), {}))
    search, *fallback = await turn.run(calls)
    past = fallback[0] if fallback else past
    runs = [search, past]
    hits = by_fit(
        [hit for hit in hits_of(search) if hit.is_playbook], About(about.words, about.tactics, about.techniques)
    )
    if hits and fits(hits[0], about):
        hits = await _with_phase(turn, hits, about, runs)
    writer = turn.writer()
    _say_incident(writer, detail)
    items: tuple[ListItem, ...] = ()
    outcome = Outcome.ANSWERED
    if not search.worked:
        outcome = say_failures(writer, [search], some_worked=True)
    elif not hits:
        outcome = _say_no_playbook(writer, search, about.words)
    else:
        items = _say_best(writer, hits, about, sure=fits(hits[0], about))
    groups = [group for group in by_incident(hits_of(past)) if group[0].number != wish.incident]
    fitting, sure = only_fitting(groups, about)
    if sure and say_closing(writer, fitting[0]):
        writer.fixed("That is a past incident like this one.")
    if hits:
        writer.fixed(NOTHING_DONE)
    return finished(turn, writer, runs, wish.sought.value, items, outcome, incident=wish.incident, remarks=wish.remarks)


async def _with_phase(turn: Turn, hits: list[KnowledgeHit], about: About, runs: list[ToolRun]) -> list[KnowledgeHit]:
    """The section of the best playbook for the phase in front, then its other sections in their order and what else was
    found; the hits as they are if it has no such section."""
    (read,) = await turn.run((document_read(hits[0].source),))
    runs.append(read)
    sections = hits_of(read)
    wanted = [hit for hit in sections if phase_of(hit.path) == about.phase]
    if not wanted:
        return hits
    others = [hit for hit in hits if hit.source != hits[0].source]
    return [*wanted, *(hit for hit in sections if hit not in wanted), *others]


def _say_best(writer: AnswerWriter, hits: Sequence[KnowledgeHit], about: About, *, sure: bool) -> tuple[ListItem, ...]:
    """The best section quoted, or, where it shares nothing that tells, said to be the nearest only."""
    lead = "The playbook section {} fits" if sure else "No playbook clearly fits. The nearest section is {}"
    return say_playbook(writer, hits[0], hits if sure else hits[:1], about, lead=lead)


def _say_no_playbook(writer: AnswerWriter, search: ToolRun, topic: str) -> Outcome:
    if search.at("/freshness/playbooks") == 0:
        writer.fixed(
            f"The knowledge base holds no playbook that you may find. `{INGEST_COMMAND}` reads in the shipped ones, "
            f"`{INGEST_COMMAND} FOLDER` your own."
        )
    else:
        writer.say("No playbook says anything about {}. Ask which playbooks there are.", Echo(topic))
    return Outcome.NO_DATA


async def _catalogue(turn: Turn) -> Answer:
    """The playbooks by file and title, as far as searches find them."""
    runs = await turn.run(catalogue_searches())
    worked = [run for run in runs if run.worked]
    if not worked:
        return turn.failed_answer(runs[:1])
    writer = turn.writer()
    documents = documents_of(hit for run in worked for hit in hits_of(run))
    sought = Sought.CATALOGUE.value
    if not documents:
        return finished(turn, writer, worked[:1], sought, (), _say_no_playbook(writer, worked[0], "playbooks"))
    total = worked[0].at("/freshness/playbooks")
    if total == len(documents):
        writer.say("The knowledge base holds {} playbooks.", writer.number(worked[0], "/freshness/playbooks"))
    else:
        writer.say(
            "The knowledge base holds {} playbooks. A search finds some of them at a time; these came up:",
            writer.number(worked[0], "/freshness/playbooks"),
        )
    items = say_documents(writer, documents)
    return finished(turn, writer, worked[:1], sought, items)


async def _no_such_incident(turn: Turn, wish: KnowledgeWish, reading: Reading, failed: ToolRun) -> Answer:
    """The incident that was named is not there, or its number means several: told as a question for it is."""
    if failed.call.tool_name == "get_incident_detail" and not failed.worked:
        return turn.failed_answer([failed])
    turn.runs.clear()
    return await carry_out(turn, Plan(view=View.INCIDENT, calls=(_detail(wish.incident),), reading=reading))


def _say_incident(writer: AnswerWriter, detail: ToolRun) -> None:
    writer.say(
        "Incident {}: {}, {}, {}.",
        writer.number(detail, "/rows/0/number"),
        writer.name(detail, "/rows/0/title"),
        writer.number(detail, "/rows/0/severity"),
        writer.number(detail, "/rows/0/status"),
    )


def _not_kept(search: ToolRun) -> bool:
    """True if the knowledge base does not hold the incident that others were to be like."""
    outcome = search.outcome
    refused = isinstance(outcome, Failed) and outcome.error.code is QueryErrorCode.INVALID_ARGUMENT
    return refused or (search.worked and not hits_of(search))


def _detail(incident: str) -> PlannedCall:
    return PlannedCall("get_incident_detail", {"incident": incident})


def _like(turn: Turn, incident: str) -> str:
    """The incident as the knowledge base names it, in the workspace that the conversation is at."""
    place = turn.conversation.workspace
    if place == ALL_WORKSPACES:
        place = turn.conversation.found_in.get(incident, "")
    return f"{incident}@{place}" if place else incident


def _is_title(topic: str, hit: KnowledgeHit) -> bool:
    """True if the words only name the playbook."""
    wanted = telling(topic)
    return held(wanted, f"{hit.title} {hit.source}") == wanted


def _filter(wish: KnowledgeWish, name: str) -> tuple[str, ...]:
    value = wish.filters.get(name)
    return (value,) if isinstance(value, str) else ()
