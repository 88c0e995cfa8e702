"""A question to the knowledge base carried out: searched, read where a whole playbook is asked for, and told.

What a row or a document says may become words that are searched by, and nothing else: it chooses no tool and no filter.
A section that was pointed at is read again, so it is quoted as it is now, not as it was shown. Nothing is asked of a
gateway that does not offer the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.knowledge_hits import INCIDENTS, PLAYBOOKS, SEARCH_TOOL, KnowledgeHit, hits_of
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.failures import say_failures
from sentinel_rag.agent.offline.knowledge.answers import (
    cited_as,
    finished,
    say_best,
    say_closing,
    say_documents,
    say_freshness,
    say_no_playbook,
    say_others,
)
from sentinel_rag.agent.offline.knowledge.hits import (
    About,
    about_incident,
    by_fit,
    document_read,
    fits,
    held,
    only_fitting,
    past_search,
    phase_of,
    playbook_search,
    telling,
    when_to_use,
)
from sentinel_rag.agent.offline.knowledge.past import (
    answer_past,
    detail_of,
    in_knowledge,
    no_such_incident,
    not_kept,
    others_than,
    say_incident,
    told_apart_by,
    with_closings,
)
from sentinel_rag.agent.offline.knowledge.quoting import kql_of, say_kql, say_section
from sentinel_rag.agent.offline.renderer import Scene, tell
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner.knowledge import (
    PHASES,
    Further,
    KnowledgeWish,
    Sought,
    narrowing,
    read_further,
)
from sentinel_rag.agent.planner.plan import PlannedCall, View
from sentinel_rag.agent.things import INCIDENT, SECTION, past_item
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed
from sentinel_rag.language.attack import meant_by
from sentinel_rag.language.frames import Frame

NOT_OFFERED = (
    "Playbooks and past incidents are searched with search_knowledge_base, which the gateway does not offer here. "
    "`sentinel tools` shows what it offers and what the policy says of it."
)
_INSTEAD = ("List the incidents still open, newest first", "Closed incidents, newest first")
_WHICH = "Which incident do you mean? Give its number, or say in words what it is about."
_ABOUT_WHAT = "What is it about? Name the kind of attack, a technique such as T1566, or an incident by its number."
_FIRST_STEPS = ("List the incidents still open, newest first", "Which playbooks are there?")
_NOTHING_RECORDED = "Nothing is recorded of what was done about it."
_OF_INCIDENTS = (Sought.STEPS, Sought.PAST, Sought.CLOSED)
_SECTION = "section"
_MOST_KQL = 2
"""Sections whose KQL is shown in the place of one that has none."""


async def answer_wish(turn: Turn, wish: KnowledgeWish, frame: Frame) -> Answer | None:
    """The answer to a wish; one that lacks what it is about is asked back. None where the gateway does not offer the
    search and the workspace still tells something: of an incident that is named, and of a term in titles."""
    current = turn.conversation.talk.current(INCIDENT)
    if wish.of_focus and current is not None:
        sought = Sought.STEPS if wish.sought is Sought.PLAYBOOK else wish.sought
        wish = replace(wish, sought=sought, incident=current.value)
    if wish.sought is Sought.TERM:
        return await _answer_term(turn, wish)
    if not await _offered(turn):
        if wish.sought is Sought.STEPS:
            return None
        return turn.plain_answer(Outcome.OUT_OF_SCOPE, NOT_OFFERED, _INSTEAD)
    if frame.time_problem:
        return turn.asked_back(frame.time_problem)
    if wish.sought is Sought.CATALOGUE:
        return await _answer_catalogue(turn)
    if not wish.incident and not wish.topic and not wish.filters:
        past = wish.sought in (Sought.PAST, Sought.CLOSED)
        return turn.asked_back(_WHICH if past else _ABOUT_WHAT, _FIRST_STEPS)
    if wish.sought is Sought.STEPS:
        return await _answer_steps(turn, wish, frame)
    if wish.sought is Sought.PLAYBOOK:
        return await _answer_playbook(turn, wish)
    return await answer_past(turn, wish, frame)


async def answer_further(turn: Turn, frame: Frame) -> Answer | None:
    """The answer to a sentence that leans on an answer from the knowledge base; None for any other. It means the
    section that was quoted or pointed at last, or the search of past incidents with one thing changed."""
    conversation = turn.conversation
    pointed = _pointed_section(turn, frame)
    focus = conversation.talk.focus(SECTION)
    section = pointed or (focus.item if focus is not None and conversation.knowledge is not None else None)
    if section is not None:
        headings = [phase_of(section.value.split(" > "))]
        further = read_further(frame, headings, pointed=pointed is not None)
        if further is not None:
            return await _answer_section(turn, section, *further) if await _offered(turn) else None
    asked = conversation.knowledge
    if asked is not None and asked.arguments.get("collection") == INCIDENTS and await _offered(turn):
        filters = narrowing(frame, turn.now.moment)
        if filters:
            kept = {k: v for k, v in asked.arguments.items() if isinstance(v, str) and k != "collection"}
            topic, liked = str(kept.pop("query", "")), str(kept.pop("like_incident", "")).partition("@")[0]
            wish = KnowledgeWish(sought=Sought.PAST, topic=topic, incident=liked, filters={**kept, **filters})
            return await answer_past(turn, wish, None)
    again = _of_another(turn, frame)
    conversation.knowledge = None
    return None if again is None else await answer_wish(turn, again, frame)


def _of_another(turn: Turn, frame: Frame) -> KnowledgeWish | None:
    """The same of another incident: "and about 40?"."""
    asked = turn.conversation.knowledge
    named = frame.all("incident")
    alone = {type_ for type_, values in frame.features.items() if values} <= {"incident", "follow", "attr", "rel"}
    if asked is None or asked.view not in _OF_INCIDENTS or len(named) != 1 or not alone or not frame.has("follow"):
        return None
    return KnowledgeWish(sought=Sought(asked.view), incident=named[0])


async def recall_incident(turn: Turn, answer: Answer) -> Answer:
    """`answer`, or what the knowledge base has of an incident that the workspace does not hold and that a list of past
    incidents showed."""
    asked = [str(run.call.arguments["incident"]) for run in turn.runs if "incident" in run.call.arguments]
    if answer.outcome is not Outcome.NO_DATA or len(set(asked)) != 1:
        return answer
    lists = turn.conversation.talk.lists
    shown = {item.value for listed in lists for item in listed.items if item.kind == INCIDENT}
    if asked[0] not in shown or not await _offered(turn):
        return answer
    return await _answer_one_past(turn, asked[0]) or answer


async def offer_steps(turn: Turn, answer: Answer) -> Answer:
    """`answer`; behind one that tells a whole incident stands the question what to do about it."""
    asked = turn.conversation.last
    told = asked is not None and asked.view == View.INCIDENT and not asked.aspects
    focus = turn.conversation.talk.current(INCIDENT)
    if not told or focus is None or answer.outcome is not Outcome.ANSWERED or not await _offered(turn):
        return answer
    return replace(answer, suggestions=(*answer.suggestions, f"What should I do about incident {focus.value}?"))


async def _offered(turn: Turn) -> bool:
    return SEARCH_TOOL in await turn.gateway.offered_tools()


# --- playbooks


async def _answer_playbook(turn: Turn, wish: KnowledgeWish) -> Answer:
    """What the playbooks say about something. Whoever asks whether there is one, or how to deal with something, is told
    which one it is and its first steps; whoever asks for one thing in it gets the section that tells it."""
    technique = wish.filters.get("technique")
    about = About(wish.topic, (), (technique,) if isinstance(technique, str) else (), wish.phase)
    (search,) = await turn.run((playbook_search(f"{wish.topic} {wish.phase}", wish.filters),))
    if search.worked and wish.filters and not hits_of(search):
        (search,) = await turn.run((playbook_search(f"{wish.topic} {wish.phase}", {}),))
    if not search.worked:
        return turn.failed_answer([search])
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], about)
    writer, runs = turn.writer(), [search]
    if not hits:
        return finished(turn, writer, runs, wish.sought.value, (), say_no_playbook(writer, search, wish.topic))
    if not wish.phase and (_is_title(wish.topic, hits[0]) or (wish.whole and _is_for(hits, about))):
        # The whole playbook is asked for: it is told from its beginning.
        about = replace(about, phase=PHASES[0])
    sure = fits(hits[0], about)
    found = hits[0] if sure and about.phase and not wish.phase else None
    if sure and about.phase:
        hits = await _with_phase(turn, hits, about, runs)
    items = say_best(writer, hits, about, sure=sure, found=found)
    return finished(turn, writer, runs, wish.sought.value, items, Outcome.ANSWERED if sure else Outcome.NO_DATA)


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


def _is_title(topic: str, hit: KnowledgeHit) -> bool:
    """True if the words only name the playbook."""
    wanted = telling(topic)
    return held(wanted, f"{hit.title} {hit.source}") == wanted


def _is_for(hits: Sequence[KnowledgeHit], about: About) -> bool:
    """True if the best hit's playbook is for what was asked, and does not only mention it in one section."""
    own = {hit.citation for hit in hits if hit.source == hits[0].source and fits(hit, about)}
    named = bool(held(telling(about.words), when_to_use(hits[0], hits)))
    return named or len(own) >= 2 or bool(about.techniques)


async def _answer_catalogue(turn: Turn) -> Answer:
    """The playbooks by file and title."""
    (run,) = await turn.run((PlannedCall(SEARCH_TOOL, {"collection": PLAYBOOKS}),))
    if not run.worked:
        return turn.failed_answer([run])
    writer, sought = turn.writer(), Sought.CATALOGUE.value
    documents = [hit for hit in hits_of(run) if hit.is_playbook]
    if not documents:
        return finished(turn, writer, [run], sought, (), say_no_playbook(writer, run, "playbooks"))
    writer.say("The knowledge base holds {} playbooks.", writer.number(run, "/freshness/playbooks"))
    return finished(turn, writer, [run], sought, say_documents(writer, documents))


async def _answer_term(turn: Turn, wish: KnowledgeWish) -> Answer | None:
    """What a word of the trade means: by MITRE ATT&CK, and by the playbook section that fits it."""
    term = wish.topic
    meaning = meant_by(term)
    runs = list(await turn.run((playbook_search(term, {}),))) if await _offered(turn) else []
    writer = turn.writer()
    for line in meaning:
        writer.fixed(line)
    about = About(term, (), (str(wish.filters["technique"]),) if wish.filters else ())
    hits = by_fit([hit for run in runs for hit in hits_of(run) if hit.is_playbook], about)
    if hits and fits(hits[0], about):
        items = say_best(writer, hits, about, sure=True, lead="In the playbooks, {} tells of it")
        return finished(turn, writer, runs, Sought.PLAYBOOK.value, items)
    suggestions = (f"Which alerts have technique {term}?",) if wish.filters else ()
    if not meaning and not runs:
        return None
    if meaning:
        return turn.plain_answer(Outcome.ANSWERED, "\n".join(meaning), suggestions)
    text = "No technique or tactic of MITRE ATT&CK is called so, and no playbook tells of it."
    return turn.plain_answer(Outcome.NO_DATA, text, ("Which playbooks are there?",))


# --- what to do about an incident


async def _answer_steps(turn: Turn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """The section of the playbook that fits an incident by its title, tactics and techniques, beside the incident and a
    past one like it. What was done is told from the incident's own record, never from a playbook."""
    like = in_knowledge(turn, wish.incident)
    detail, past = await turn.run((detail_of(wish.incident), past_search("", {}, like=like)))
    if len(detail.rows) != 1:
        return await no_such_incident(turn, wish, frame, detail)
    new = str(detail.rows[0].get("status") or "") == "New"
    about = about_incident(detail.rows[0], wish.phase or ("triage" if new else "containment"))
    calls = [playbook_search(f"{about.query} {wish.topic}".strip(), {})]
    exact = told_apart_by(detail, past)
    if exact:
        calls.append(past_search("", {}, like=exact))
    elif not_kept(past):
        calls.append(past_search(about.query, {}))
    search, *fallback = await turn.run(calls)
    past = fallback[0] if fallback else past
    runs = [search, past]
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], replace(about, phase=""))
    sure = bool(hits) and fits(hits[0], about, hits)
    found = hits[0] if sure else None
    if sure:
        hits = await _with_phase(turn, hits, about, runs)
    fitting, alike = only_fitting(others_than(wish.incident, detail, past), about)
    fitting = await with_closings(turn, fitting, 1 if alike else 0)
    writer = turn.writer()
    say_incident(writer, detail)
    if wish.done:
        tell(Scene(writer, detail), ["@reason"])
        told = any(detail.at(f"/rows/0/{name}") for name in ("comments", "classification_comment"))
        recorded = "That is all that is recorded of what was done." if told else _NOTHING_RECORDED
        writer.fixed(f"{recorded} What a playbook says to do:")
    items: tuple[ListItem, ...] = ()
    outcome = Outcome.ANSWERED
    if not search.worked:
        outcome = say_failures(writer, [search], some_worked=True)
    elif not hits:
        outcome = say_no_playbook(writer, search, about.words)
    else:
        items = say_best(writer, hits, about, sure=sure, found=found)
    if alike and say_closing(writer, fitting[0]):
        writer.fixed("That is a past incident like this one.")
    return finished(turn, writer, runs, wish.sought.value, items, outcome, incident=wish.incident, remarks=wish.remarks)


# --- a section that was shown


def _pointed_section(turn: Turn, frame: Frame) -> ListItem | None:
    """The section or playbook of the list on the screen that the sentence points at."""
    lists = turn.conversation.talk.lists
    said = [*(item.strip("[]") for item in frame.all("item")), *(frame.all("ref")), *frame.all("digits")]
    places = [int(value) for value in said if value.lstrip("-").isdecimal()]
    if not lists or len(places) != 1 or frame.has("name", "incident"):
        return None
    lines, at = lists[-1].items, places[0] - 1 if places[0] > 0 else places[0]
    line = lines[at] if -len(lines) <= at < len(lines) else None
    return line if line is not None and line.kind == SECTION and line.value else None


async def _answer_section(turn: Turn, section: ListItem, further: Further, phase: str) -> Answer:
    """The section whole, its KQL, the next one, or another phase of its playbook."""
    document, *path = section.value.split(" > ")
    goes_on = further in (Further.NEXT, Further.WHOLE)
    runs = await turn.run((document_read(document, " > ".join(path) if goes_on else ""),))
    outcome = runs[0].outcome
    if isinstance(outcome, Failed) and outcome.error.code is QueryErrorCode.INVALID_ARGUMENT:
        writer = turn.writer()
        writer.fixed("That section is not there any more; the playbook may have changed. Ask for it in words.")
        return finished(turn, writer, runs, _SECTION, (), Outcome.NO_DATA)
    if not runs[0].worked:
        return turn.failed_answer(runs)
    hits = hits_of(runs[0])
    if further is Further.KQL:
        return _kql(turn, runs, section, hits)
    if further is Further.NEXT:
        hits = [hit for hit in hits if hit.citation != section.value]
        best, lead, none = hits[:1], "The section that comes next is {}", "That is the last section of the playbook."
    elif further is Further.PHASE:
        best = [hit for hit in hits if phase_of(hit.path) == phase][:1]
        lead, none = "From the same playbook, {}", "No section of that playbook has such a heading. It has these:"
    else:
        own = [hit for hit in hits if (hit.citation == section.value if path else phase_of(hit.path) == PHASES[0])]
        best, lead, none = (own or hits)[:1], "From the playbook, {}", ""
    writer = turn.writer()
    if best:
        ordered = [*best, *(hit for hit in hits if hit is not best[0])]
        return finished(turn, writer, runs, _SECTION, say_best(writer, ordered, About(), sure=True, lead=lead))
    writer.fixed(none)
    others = list({hit.citation: hit for hit in hits}.values())
    return finished(turn, writer, runs, _SECTION, say_others(writer, others, 1), Outcome.NO_DATA, focus=section)


def _kql(turn: Turn, runs: Sequence[ToolRun], section: ListItem, hits: Sequence[KnowledgeHit]) -> Answer:
    """The KQL of the section, else of the first sections of its playbook that have some, said to be of those."""
    writer = turn.writer()
    told = [hit for hit in hits if hit.citation == section.value and kql_of(hit)]
    if told:
        writer.say("The KQL of {}. It was not run:", cited_as(writer, told[0]))
    else:
        others = list(dict.fromkeys(hit.citation for hit in hits if kql_of(hit)))[:_MOST_KQL]
        told = [hit for hit in hits if hit.citation in others and kql_of(hit)]
        if not told:
            writer.fixed("That playbook has no KQL.")
            return finished(turn, writer, runs, _SECTION, (), Outcome.NO_DATA, focus=section)
        writer.fixed("That section has no KQL. These sections of the same playbook have some; it was not run:")
    said = section.value
    for hit in told:
        if hit.citation != said:
            writer.say("From {}:", cited_as(writer, hit))
            said = hit.citation
        say_kql(writer, hit)
    return finished(turn, writer, runs, _SECTION, focus=section)


async def _answer_one_past(turn: Turn, number: str) -> Answer | None:
    """One past incident out of the knowledge base, which the workspace does not hold; None if that does not either."""
    place = turn.conversation.found_in.get(number, "")
    runs = await turn.run((document_read(f"incident-{number}@{place}" if place else f"incident-{number}"),))
    hits = hits_of(runs[0])
    if not hits:
        turn.runs.remove(runs[0])  # what the workspace said stands alone
        return None
    writer = turn.writer()
    cited = cited_as(writer, hits[0])
    writer.say("The workspace does not hold {} (any more). This is what the knowledge base has of it:", cited)
    for hit in hits:
        say_section(writer, hit)
    if not any("Closing comment" in hit.text for hit in hits):
        say_closing(writer, hits)
    say_freshness(writer, runs[0])
    return finished(turn, writer, runs, _SECTION, focus=past_item(hits[0]))
