"""What answers from the knowledge base say: sections of playbooks, past incidents, how such ended, and their end.

A playbook says what could be done: the answer never says that a step was done, and says that it is the playbook's word.
A past incident is named by its citation; its state is as it was taken in, and the answer says when that was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.knowledge_hits import SEARCH_TOOL, KnowledgeHit, hits_of
from sentinel_rag.agent.offline.answer_writer import EMPTY_CELL, AnswerWriter, Echo, Fact, part_of
from sentinel_rag.agent.offline.conversation import AskedCall, ListItem
from sentinel_rag.agent.offline.knowledge.hits import About, Group, held, names_it, shared_techniques, telling
from sentinel_rag.agent.offline.knowledge.quoting import closing_words, say_section
from sentinel_rag.agent.offline.renderer import Composed, view_data
from sentinel_rag.agent.offline.turn import MISSHAPEN, Turn
from sentinel_rag.agent.planner.knowledge import KnowledgeWish
from sentinel_rag.agent.row_text import plain, quoted
from sentinel_rag.agent.things import INCIDENT, SECTION, past_item, section_item
from sentinel_rag.agent.times import show_value
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome

MOST_PAST = 6
OPEN = ("New", "Active")
NOTHING_DONE = "These are a playbook's words. Nothing of it was done here; whether it is done, a person decides."
_INGEST = "sentinel knowledge ingest"
_MOST_SECTIONS = 9
_MOST_SHARED = 5
_COLUMNS = ("", "Incident", "Severity", "Outcome", "Created", "Shares", "Title")
_FILTERS = ("severity", "status", "classification", "technique", "tactic", "since", "until")


def cited_as(writer: AnswerWriter, hit: KnowledgeHit) -> Fact:
    """The citation of a hit."""
    return writer.exact(hit.run, f"{hit.pointer}/citation")


# --- past incidents


def say_past(
    writer: AnswerWriter, title: str, groups: Sequence[Group], about: About, first: int = 0
) -> tuple[ListItem, ...]:
    """Past incidents as a table, numbered from `first` + 1."""
    rows = [[Fact(f"[{first + place}]"), *_cells(writer, group, about)] for place, group in enumerate(groups, start=1)]
    writer.table(title, _COLUMNS, rows)
    return tuple(past_item(group[0]) for group in groups)


def _cells(writer: AnswerWriter, group: Group, about: About) -> list[Fact]:
    hit = group[0]
    # One that was opened again keeps the classification of its first closing.
    outcome = "classification" if hit.classification and hit.status not in OPEN else "status"
    citation, severity, ended, title = (
        writer.cell(hit.run, f"{hit.pointer}/{name}") for name in ("citation", "severity", outcome, "title")
    )
    return [citation, severity, ended, writer.time_cell(hit.run, f"{hit.pointer}/time"), _shares(group, about), title]


def _shares(group: Group, about: About) -> Fact:
    """What the hits of one document share with what was asked: techniques, tactics, entities, then words."""
    hit = group[0]
    told = [name for name in about.names if any(names_it(each, name) for each in group)]
    for each in group:
        told += [*shared_techniques(each, about), *each.shared_entities]
        if not each.is_playbook:  # a playbook may have been looked for by a technique that nobody asked for
            told += each.shared_techniques
        told += [tactic for tactic in each.tactics if tactic in (*each.shared_tactics, *about.tactics)]
    wanted = telling(about.words)
    told += [word for each in group for word in each.shared_words if held(wanted, word)]
    once = {each.casefold(): each for each in reversed(told)}  # a tactic is found as a word too
    kept = [plain(each, limit=60) for each in reversed(once.values())][:_MOST_SHARED]
    return part_of(hit.run, f"{hit.pointer}/why", ", ".join(kept)) if kept else Fact(EMPTY_CELL)


def shares_something(group: Group, about: About) -> bool:
    """True if an incident shares anything with what was asked."""
    return _shares(group, about).text != EMPTY_CELL


def say_closing(writer: AnswerWriter, group: Group) -> bool:
    """How one of them was closed, quoted; False if no hit of it tells."""
    found = closing_words(group)
    if found is None:
        return False
    hit, words = found
    text = part_of(hit.run, f"{hit.pointer}/text", quoted(words, limit=700))
    writer.say("How {} ended: {}", cited_as(writer, hit), text)
    return True


def say_freshness(writer: AnswerWriter, run: ToolRun) -> None:
    """Up to when past incidents are known."""
    if run.at("/freshness/incidents_as_of"):
        writer.say("The knowledge base knows incidents as of {}.", writer.time(run, "/freshness/incidents_as_of"))


def say_found(
    writer: AnswerWriter, search: ToolRun, wish: KnowledgeWish, about: About, groups: Sequence[Group], *, closings: int
) -> tuple[ListItem, ...]:
    """The incidents that are what was asked for as a table, or that there are none. They fit if `closings` are told."""
    if not groups:
        _say_none(writer, search, wish)
        return ()
    if not closings:
        lead = "No past incident clearly fits. These are the nearest by their words, and may be about other things:"
    elif wish.still_open:
        lead = "Incidents like it that are still open, the likest first:"
    elif wish.incident:
        lead = "Past incidents like it, the likest first:"
    else:
        lead = "Past incidents that fit, the best first:"
    writer.fixed(lead)
    items = say_past(writer, "Still open" if wish.still_open else "Past incidents", groups[:MOST_PAST], about)
    for group in groups[:closings]:
        say_closing(writer, group)
    still = [cited_as(writer, group[0]) for group in groups[:MOST_PAST] if group[0].status in OPEN]
    if still and not wish.still_open:
        writer.say("Not closed yet: {}.", still)
    if closings and len(groups) > MOST_PAST:
        writer.fixed("More fit than are shown; a severity, a tactic or a time narrows them.")
    return items


def _say_none(writer: AnswerWriter, search: ToolRun, wish: KnowledgeWish) -> None:
    if search.at("/freshness/incidents") == 0:
        writer.fixed(
            f"The knowledge base holds no past incident that you may find. `{_INGEST}` reads in those of the last "
            "months."
        )
        return
    given = [(name, str(search.call.arguments[name])) for name in _FILTERS if search.call.arguments.get(name)]
    told = [show_value(value, writer.zone) if name in ("since", "until") else value for name, value in given]
    filters = f" ({', '.join(f'{name} {{}}' for name, _ in given)})" if given else ""
    about = Echo(wish.topic or f"incident {wish.incident}" if wish.topic or wish.incident else "any")
    sentence = f"No past incident was found for {{}}{filters}. Leave a filter out, or say it in other words."
    writer.say(sentence, about, *(Echo(value, word=True) for value in told))


# --- playbooks


def say_best(
    writer: AnswerWriter,
    hits: Sequence[KnowledgeHit],
    about: About,
    *,
    sure: bool,
    found: KnowledgeHit | None = None,
    lead: str = "The playbook section {} fits",
) -> tuple[ListItem, ...]:
    """The best section quoted, then the names of the others; or, where it shares nothing that tells, only its name as
    the nearest. `found` is the hit that a whole playbook was found by; `lead` has a place for the citation."""
    best = hits[0]
    if not sure:
        sentence = "No playbook clearly fits. The nearest section, which may be about other things, is {}."
        writer.say(sentence, cited_as(writer, best))
        writer.fixed("Ask which playbooks there are, or say it in other words.")
        return (section_item(best),)
    if found is not None and not about.of_incident:
        lead = "The playbook for it begins with {}"
    number, cited, shared = Fact("[1]"), cited_as(writer, best), _shares([found or best], about)
    told = found is not None and found.citation != best.citation
    if shared.text == EMPTY_CELL or (told and held(telling(about.words), best.title) == telling(about.words)):
        writer.say(f"{{}} {lead}.", number, cited)
    elif found is not None and told:
        writer.say(f"{{}} {lead}; {{}} tells of {{}}.", number, cited, cited_as(writer, found), shared)
    else:
        writer.say(f"{{}} {lead}; it shares {{}}.", number, cited, shared)
    chunks = {hit.text: hit for hit in hits if hit.citation == best.citation}
    holds_code = [say_section(writer, hit) for hit in chunks.values()]
    if any(holds_code):
        writer.fixed("The section holds KQL; ask: show me the KQL of that section.")
    others = {hit.citation: hit for hit in sorted(hits, key=lambda each: each.source != best.source) if hit.is_playbook}
    others.pop(best.citation, None)
    items = (section_item(best), *say_others(writer, list(others.values())[: _MOST_SECTIONS - 1], 2))
    writer.fixed(NOTHING_DONE)
    return items


def say_others(writer: AnswerWriter, others: Sequence[KnowledgeHit], number: int) -> tuple[ListItem, ...]:
    """The names of further sections, one a line."""
    if others:
        writer.fixed("Also found:")
    for place, hit in enumerate(others):
        writer.say("{} {}", Fact(f"[{number + place}]"), cited_as(writer, hit))
    return tuple(section_item(hit) for hit in others)


def say_documents(writer: AnswerWriter, documents: Sequence[KnowledgeHit]) -> tuple[ListItem, ...]:
    """Playbooks by file and title, as a numbered table."""
    rows = [
        [
            Fact(f"[{place}]"),
            *(writer.cell(hit.run, f"{hit.pointer}/{name}") for name in ("document_id", "title", "tactics")),
        ]
        for place, hit in enumerate(documents, start=1)
    ]
    writer.table("Playbooks", ("", "File", "Title", "Tactics"), rows)
    return tuple(replace(section_item(hit), value=hit.source) for hit in documents)


def say_no_playbook(writer: AnswerWriter, search: ToolRun, topic: str) -> Outcome:
    """That nothing was found, and what helps."""
    if search.at("/freshness/playbooks") == 0:
        writer.fixed(
            f"The knowledge base holds no playbook that you may find. `{_INGEST}` reads in the shipped ones, "
            f"`{_INGEST} FOLDER` your own."
        )
    else:
        writer.say("No playbook says anything about {}. Ask which playbooks there are.", Echo(topic))
    return Outcome.NO_DATA


# --- the end of every answer


def finished(
    turn: Turn,
    writer: AnswerWriter,
    searches: Sequence[ToolRun],
    sought: str,
    items: tuple[ListItem, ...] = (),
    outcome: Outcome = Outcome.ANSWERED,
    *,
    incident: str = "",
    remarks: Sequence[str] = (),
    focus: ListItem | None = None,
) -> Answer:
    """The checked answer. `items` are its numbered lines; `incident` and `focus` are what it was about, the incident
    last, so that "it" is the incident. The first of `searches` is the one that later words may narrow."""
    for remark in remarks:
        writer.fixed(remark)
    _say_remarks(writer, searches)
    try:
        answer = turn.answer(writer, Composed(outcome=outcome, items=items))
    except MISSHAPEN:
        return turn.misshapen_answer(turn.runs)
    talk = turn.conversation.talk
    talk.begin_turn()
    _remember(turn, searches[0], sought)
    if items:
        talk.show(items)
        _remember_places(turn, searches)
    quoted_one = bool(items) and (len(items) == 1 or (items[0].kind == SECTION and " > " in items[0].value))
    about = focus or (items[0] if quoted_one else None)
    if about is not None:
        talk.speak_of(about)
    if incident:
        talk.speak_of(ListItem(INCIDENT, incident, incident=incident))
    return answer


def _remember_places(turn: Turn, searches: Sequence[ToolRun]) -> None:
    """Which workspace a past incident is of; a number that two of them use is no reference to either."""
    found_in = turn.conversation.found_in
    for hit in (hit for run in searches for hit in hits_of(run)):
        if hit.workspace:
            before = found_in.get(hit.number, hit.workspace)
            found_in[hit.number] = hit.workspace if before == hit.workspace else ""


def _remember(turn: Turn, search: ToolRun, sought: str) -> None:
    """No query of the workspace is open any more."""
    conversation = turn.conversation
    conversation.knowledge = AskedCall(SEARCH_TOOL, dict(search.call.arguments), sought)
    conversation.last = None
    conversation.talk.clear()


def _say_remarks(writer: AnswerWriter, searches: Sequence[ToolRun]) -> None:
    """What the searches could not do, each remark once, and a note where a quoted text reads like an instruction."""
    told: set[str] = set()
    for run in searches:
        remarks = run.at("/remarks") if run.worked else ()
        for place, remark in enumerate(remarks if isinstance(remarks, list | tuple) else ()):
            if str(remark) not in told:
                told.add(str(remark))
                writer.say("Note: {}", writer.number(run, f"/remarks/{place}"))
    cells = [cell for table in writer.tables for row in table.rows for cell in row]
    if any(reads_like_instruction(text) for text in (*(line.text for line in writer.lines), *cells)):
        writer.fixed(view_data()["sentence"]["steering"])
