"""Questions that playbooks and past incidents answer: searched, quoted with where it stands, and followed up.

A playbook says what could be done: the answer never says that a step was done, and says that it is the playbook's word.
A past incident is named by its citation; its state is as it was taken in, and the answer says when that was. What a row
or a document says may become words that are searched by, and nothing else: it chooses no tool and no filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sentinel_rag.agent.answers.failures import say_failures
from sentinel_rag.agent.answers.renderer import RenderedView, Scene, elements, tell, view_data
from sentinel_rag.agent.answers.writer import EMPTY_CELL, AnswerWriter, Echo, Fact, Part, part_of
from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.offline.execution import carry_out
from sentinel_rag.agent.offline.passages import (
    About,
    Group,
    about_incident,
    by_fit,
    by_incident,
    closing_words,
    document_read,
    fits,
    held,
    kql_of,
    names_it,
    only_fitting,
    past_search,
    playbook_search,
    say_kql,
    say_section,
    shared_techniques,
    telling,
    when_to_use,
)
from sentinel_rag.agent.offline.turn import MISSHAPEN, OfflineTurn
from sentinel_rag.agent.offline.workspaces import remember_place
from sentinel_rag.agent.planner import Decision, DecisionKind
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View
from sentinel_rag.agent.planner.knowledge import PHASES, Further, KnowledgeWish, Sought, phase_of
from sentinel_rag.agent.row_text import plain, quoted, show_value
from sentinel_rag.agent.things import (
    INCIDENT,
    PLAYBOOKS,
    SEARCH_TOOL,
    SECTION,
    KnowledgeHit,
    ListItem,
    hits_of,
    past_item,
    section_item,
)
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES
from sentinel_rag.language.attack import meant_by
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.asides import technique_called

MOST_PAST, MOST_SECTIONS, MOST_SHARED, MOST_KQL = 6, 9, 5, 2
_FEWEST_WORDS, _MOST_OF, _LONGEST_QUESTION = 2, 0.6, 200
"""So many telling words of a question, and so large a share of them, a section has to hold to be its answer; what is
longer was pasted."""
OPEN = ("New", "Active")
_INSTEAD = ("List the incidents still open, newest first", "Closed incidents, newest first")
_FIRST_STEPS = ("List the incidents still open, newest first", "Which playbooks are there?")
_COLUMNS = ("", "Incident", "Severity", "Outcome", "Created", "Shares", "Title")
_FILTERS = ("severity", "status", "classification", "technique", "tactic", "since", "until")


def _said(name: str) -> str:
    text: str = view_data()["knowledge"][name]
    return text


@dataclass(slots=True)
class _Telling:
    """An answer out of searches, of which the first is the one that later words may narrow."""

    turn: OfflineTurn
    wish: KnowledgeWish
    frame: Frame
    searches: list[ToolRun]
    items: list[ListItem] = field(default_factory=list)
    """Its numbered lines."""
    writer: AnswerWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = self.turn.writer()

    def fixed(self, *names: str) -> None:
        """Add sentences of `views.toml`."""
        for name in names:
            self.writer.fixed(_said(name))

    def of_hit(self, name: str, hit: KnowledgeHit, **parts: Part) -> None:
        """Add a line about a hit."""
        tell(Scene(self.writer, hit.run, at=hit.pointer, parts=parts), [f"@{name}"])

    def of_run(self, name: str, run: ToolRun, **parts: Part) -> None:
        """Add a line about a result."""
        tell(Scene(self.writer, run, parts=parts), [f"@{name}"])

    def cited(self, hit: KnowledgeHit) -> Fact:
        """The citation of a hit."""
        return self.writer.exact(hit.run, f"{hit.pointer}/citation")

    def past(self, title: str, groups: Sequence[Group], about: About) -> None:
        """Past incidents as a table, numbered behind those before."""
        rows = []
        for number, group in enumerate(groups[:MOST_PAST], start=len(self.items) + 1):
            hit = group[0]
            # One that was opened again keeps the classification of its first closing.
            outcome = "classification" if hit.classification and hit.status not in OPEN else "status"
            cells = [self.writer.cell(hit.run, f"{hit.pointer}/{name}") for name in ("citation", "severity", outcome)]
            time = self.writer.time_cell(hit.run, f"{hit.pointer}/time")
            title_cell = self.writer.cell(hit.run, f"{hit.pointer}/title")
            rows.append([Fact(f"[{number}]"), *cells, time, _shares(group, about), title_cell])
        self.writer.table(title, _COLUMNS, rows)
        self.items += [past_item(group[0]) for group in groups[:MOST_PAST]]

    def closing(self, group: Group) -> bool:
        """How one of them was closed, quoted; False if no hit of it tells."""
        found = closing_words(group)
        if found is not None:
            hit, words = found
            self.of_hit("closing", hit, words=part_of(hit.run, f"{hit.pointer}/text", quoted(words, limit=700)))
        return found is not None

    def best(
        self,
        hits: Sequence[KnowledgeHit],
        about: About,
        *,
        sure: bool = True,
        found: KnowledgeHit | None = None,
        lead: str = "",
    ) -> None:
        """The best section quoted, then the names of the others; or, where it shares nothing that tells, only its name
        as the nearest. `found` is the hit that a whole playbook was found by; `lead` has a place for the citation, and
        without it the playbook is named too."""
        best, say = hits[0], self.writer.say
        self.items.append(section_item(best))
        if not sure:
            self.of_hit("nearest_section", best)
            return
        number, cited, shared = Fact("[1]"), self.cited(best), _shares([found or best], about)
        if lead:
            say(f"{{}} {lead}.", number, cited)
        else:
            named = part_of(best.run, f"{best.pointer}/title", quoted(best.title, limit=160))
            say("{} The playbook {} says, in {}:", number, named, cited)
        chunks = {hit.text: hit for hit in hits if hit.citation == best.citation}
        holds_code = [say_section(self.writer, hit) for hit in chunks.values()]
        told = found is not None and found.citation != best.citation
        alone = shared.text == EMPTY_CELL or (told and held(telling(about.words), best.title) == telling(about.words))
        if not lead and found is not None and told and not alone:
            say("{} tells of {}.", self.cited(found), shared)
        elif not alone:
            say("It shares {} with what was asked.", shared)
        if any(holds_code):
            self.fixed("holds_kql")
        playbooks = [hit for hit in hits if hit.is_playbook and hit.citation != best.citation]
        own = [hit for hit in playbooks if hit.source == best.source]
        first = list({hit.source: hit for hit in reversed(playbooks) if hit.source != best.source}.values())[::-1]
        if about.of_incident:
            # An attack of several stages has several playbooks: of each that its names tell, a section comes first.
            staged = [hit for hit in first if fits(hit, about, hits) and held(telling(about.words), hit.title)]
            playbooks = [*staged, *own, *playbooks]
        else:
            playbooks = [*own, *playbooks]
        self.others(playbooks, MOST_SECTIONS - 1)
        self.fixed("nothing_done")

    def others(self, hits: Sequence[KnowledgeHit], most: int | None = None) -> None:
        """The names of further sections, one a line."""
        others = list({hit.citation: hit for hit in hits}.values())[:most]
        if others:
            self.writer.fixed("Also found:")
        for hit in others:
            self.items.append(section_item(hit))
            self.of_hit("other_section", hit, number=Fact(f"[{len(self.items)}]"))

    def finish(
        self, outcome: Outcome = Outcome.ANSWERED, *, incident: str = "", focus: ListItem | None = None
    ) -> Answer:
        """The answer. `incident` and `focus` are what it was about, the incident last, so that "it" is the incident."""
        self._say_remarks()
        items, conversation = tuple(self.items), self.turn.conversation
        try:
            answer = self.turn.answer(self.writer, RenderedView(outcome=outcome, items=items))
        except MISSHAPEN:
            return self.turn.misshapen_answer(self.turn.runs)
        for hit in (hit for run in self.searches for hit in hits_of(run) if hit.workspace and items):
            remember_place(conversation, hit.number, hit.workspace)
        quoted_one = bool(items) and (len(items) == 1 or (items[0].kind == SECTION and " > " in items[0].value))
        about = [focus or (items[0] if quoted_one else None)]
        about.append(ListItem(INCIDENT, incident, incident=incident) if incident else None)
        search = self.searches[0].call
        calls = (PlannedCall(search.tool_name, dict(search.arguments)),)
        decision = Decision(DecisionKind.CALL, self.frame, calls, wish=self.wish)
        conversation.talk.remember(decision, items, about=[each for each in about if each is not None])
        return answer

    def _say_remarks(self) -> None:
        """What the searches could not do, each remark once, and a note where a quoted text reads like an
        instruction."""
        told: set[str] = set()
        for run in self.searches:
            for place, remark in enumerate(elements(run, "/remarks") if run.worked else ()):
                if str(remark) not in told:
                    told.add(str(remark))
                    self.writer.say("Note: {}", self.writer.number(run, f"/remarks/{place}"))
        cells = [cell for table in self.writer.tables for row in table.rows for cell in row]
        if any(map(reads_like_instruction, (*(line.text for line in self.writer.lines), *cells))):
            self.writer.fixed(view_data()["sentence"]["steering"])


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
    kept = [plain(each, limit=60) for each in reversed(once.values())][:MOST_SHARED]
    return part_of(hit.run, f"{hit.pointer}/why", ", ".join(kept)) if kept else Fact(EMPTY_CELL)


# --- the questions


async def _offered(turn: OfflineTurn) -> bool:
    return SEARCH_TOOL in await turn.gateway.offered_tools()


async def answer_wish(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame) -> Answer | None:
    """The answer to a wish; one that lacks what it is about is asked back. None where the gateway does not offer the
    search and the workspace still tells something: of an incident that is named, and of a term in titles."""
    if wish.sought is Sought.TERM:
        return await _answer_term(turn, wish, frame)
    if not await _offered(turn):
        steps = wish.sought is Sought.STEPS
        return None if steps else turn.plain_answer(Outcome.OUT_OF_SCOPE, _said("not_offered"), _INSTEAD)
    if frame.time_problem:
        return turn.asked_back(frame.time_problem)
    if wish.sought is Sought.SECTION:
        return await _answer_section(turn, wish, frame)
    if wish.sought is Sought.CATALOGUE:
        return await _answer_catalogue(turn, wish, frame)
    if not wish.incident and not wish.topic and not wish.filters:
        past = wish.sought in (Sought.PAST, Sought.CLOSED)
        return turn.asked_back(_said("which" if past else "about_what"), _FIRST_STEPS)
    if wish.sought is Sought.STEPS:
        return await _answer_steps(turn, wish, frame)
    if wish.sought is Sought.PLAYBOOK:
        return await _answer_playbook(turn, wish, frame)
    return await _answer_past(turn, wish, frame)


async def recall_incident(turn: OfflineTurn, answer: Answer) -> Answer:
    """`answer`, or what the knowledge base has of an incident that the workspace does not hold and that a list of past
    incidents showed."""
    asked = {str(run.call.arguments["incident"]) for run in turn.runs if "incident" in run.call.arguments}
    shown = {item.value for each in turn.conversation.talk.lists for item in each.items if item.kind == INCIDENT}
    if answer.outcome is not Outcome.NO_DATA or len(asked) != 1 or not asked <= shown or not await _offered(turn):
        return answer
    (number,) = asked
    place = turn.conversation.found_in.get(number, "")
    (run,) = await turn.run((document_read(f"incident-{number}@{place}" if place else f"incident-{number}"),))
    hits = hits_of(run)
    if not hits:
        turn.runs.remove(run)  # what the workspace said stands alone
        return answer
    telling_of = _Telling(turn, KnowledgeWish(sought=Sought.SECTION, incident=number), Frame(""), [run])
    telling_of.of_hit("not_held", hits[0])
    for hit in hits:
        say_section(telling_of.writer, hit)
    if not any("Closing comment" in hit.text for hit in hits):
        telling_of.closing(hits)
    telling_of.of_run("freshness", run)
    return telling_of.finish(focus=past_item(hits[0]))


async def offer_steps(turn: OfflineTurn, answer: Answer) -> Answer:
    """`answer`; behind one that tells a whole incident stands the question what to do about it."""
    asked = turn.conversation.talk.before
    told = asked is not None and asked.view is View.INCIDENT and not asked.aspects
    focus = turn.conversation.talk.current(INCIDENT)
    if not told or focus is None or answer.outcome is not Outcome.ANSWERED or not await _offered(turn):
        return answer
    return replace(answer, suggestions=(*answer.suggestions, f"What should I do about incident {focus.value}?"))


# --- playbooks


async def _answer_playbook(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """What the playbooks say about something. Whoever asks whether there is one, or how to deal with something, is told
    which one it is and its first steps; whoever asks for one thing in it gets the section that tells it."""
    called = technique_called(wish.topic)
    techniques = _filter(wish, "technique") or ((called,) if called else ())
    about = About(wish.topic, (), techniques, wish.phase)
    query = " ".join((wish.topic, wish.phase, *techniques))
    (search,) = await turn.run((playbook_search(query, wish.filters),))
    if search.worked and wish.filters and not hits_of(search):
        (search,) = await turn.run((playbook_search(query, {}),))
    if not search.worked:
        return turn.failed_answer([search])
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], about)
    told = _Telling(turn, wish, frame, [search])
    if not hits:
        told.of_run("no_playbook", search, topic=Echo(wish.topic))
        return told.finish(Outcome.NO_DATA)
    if not wish.phase and (_is_title(wish.topic, hits[0]) or (wish.whole and _is_for(hits, about))):
        # The whole playbook is asked for: it is told from its beginning.
        about = replace(about, phase=PHASES[0])
    sure = fits(hits[0], about)
    found = hits[0] if sure and about.phase and not wish.phase else None
    if sure and about.phase:
        hits = await _with_phase(told, hits, about)
    told.best(hits, about, sure=sure, found=found)
    return told.finish(Outcome.ANSWERED if sure else Outcome.NO_DATA)


async def told_in_playbooks(turn: OfflineTurn, frame: Frame) -> Answer | None:
    """The section that tells of most words of a question that nothing else answers; None if none does."""
    words = frame.said
    about, wanted = About(words), telling(words)
    if len(wanted) < _FEWEST_WORDS or len(words) > _LONGEST_QUESTION or not await _offered(turn):
        return None
    (search,) = await turn.run((playbook_search(words, {}),))
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], about)
    best = held(wanted, f"{hits[0].title} {' '.join(hits[0].path)} {hits[0].text}") if hits else frozenset()
    if len(best) < max(_FEWEST_WORDS, _MOST_OF * len(wanted)):
        turn.runs.remove(search)  # the question back stands alone
        return None
    told = _Telling(turn, KnowledgeWish(sought=Sought.PLAYBOOK, topic=words), frame, [search])
    told.best(hits, about)
    return told.finish()


async def _with_phase(told: _Telling, hits: list[KnowledgeHit], about: About) -> list[KnowledgeHit]:
    """The section of the best playbook for the phase in front, then its other sections in their order and what else was
    found; the hits as they are if it has no such section."""
    (read,) = await told.turn.run((document_read(hits[0].source),))
    told.searches.append(read)
    sections = hits_of(read)
    wanted = [hit for hit in sections if phase_of(hit.path) == about.phase]
    others = [hit for hit in hits if hit.source != hits[0].source]
    return [*wanted, *(hit for hit in sections if hit not in wanted), *others] if wanted else hits


def _is_title(topic: str, hit: KnowledgeHit) -> bool:
    """True if the words only name the playbook."""
    wanted = telling(topic)
    return held(wanted, f"{hit.title} {hit.source}") == wanted


def _is_for(hits: Sequence[KnowledgeHit], about: About) -> bool:
    """True if the best hit's playbook is for what was asked, and does not only mention it in one section."""
    own = {hit.citation for hit in hits if hit.source == hits[0].source and fits(hit, about)}
    named = bool(held(telling(about.words), when_to_use(hits[0], hits)))
    return named or len(own) >= 2 or bool(about.techniques)


async def _answer_catalogue(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """The playbooks by file and title."""
    (run,) = await turn.run((PlannedCall(SEARCH_TOOL, {"collection": PLAYBOOKS}),))
    if not run.worked:
        return turn.failed_answer([run])
    told = _Telling(turn, wish, frame, [run])
    documents = [hit for hit in hits_of(run) if hit.is_playbook]
    if not documents:
        told.of_run("no_playbook", run, topic=Echo("playbooks"))
        return told.finish(Outcome.NO_DATA)
    told.of_run("catalogue", run)
    names, cell = ("document_id", "title", "tactics"), told.writer.cell
    rows = [
        [Fact(f"[{place}]"), *(cell(hit.run, f"{hit.pointer}/{name}") for name in names)]
        for place, hit in enumerate(documents, start=1)
    ]
    told.writer.table("Playbooks", ("", "File", "Title", "Tactics"), rows)
    told.items += [replace(section_item(hit), value=hit.source) for hit in documents]
    return told.finish()


async def _answer_term(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame) -> Answer | None:
    """What a word of the trade means: by MITRE ATT&CK, and by the playbook section that fits it."""
    term, meaning = wish.topic, meant_by(wish.topic)
    runs = list(await turn.run((playbook_search(term, {}),))) if await _offered(turn) else []
    about = About(term, (), (str(wish.filters["technique"]),) if wish.filters else ())
    hits = by_fit([hit for run in runs for hit in hits_of(run) if hit.is_playbook], about)
    if hits and fits(hits[0], about):
        told = _Telling(turn, replace(wish, sought=Sought.PLAYBOOK), frame, runs)
        for line in meaning:
            told.writer.fixed(line)
        told.best(hits, about, lead="In the playbooks, {} tells of it")
        return told.finish()
    if meaning:
        suggestions = (f"Which alerts have technique {term}?",) if wish.filters else ()
        return turn.plain_answer(Outcome.ANSWERED, "\n".join(meaning), suggestions)
    return turn.plain_answer(Outcome.NO_DATA, _said("no_term"), ("Which playbooks are there?",)) if runs else None


# --- the incident that others are held against


def _detail_of(incident: str) -> PlannedCall:
    return PlannedCall("get_incident_detail", {"incident": incident})


def _in_knowledge(turn: OfflineTurn, incident: str) -> str:
    """The incident as the knowledge base names it, in the workspace that the conversation is at."""
    place = turn.conversation.workspace
    if place == ALL_WORKSPACES:
        place = turn.conversation.found_in.get(incident, "")
    return f"{incident}@{place}" if place else incident


def _not_kept(search: ToolRun) -> bool:
    """True if the knowledge base does not hold the incident that others were to be like."""
    outcome = search.outcome
    refused = isinstance(outcome, Failed) and outcome.error.code is QueryErrorCode.INVALID_ARGUMENT
    return refused or (search.worked and not hits_of(search))


def _told_apart_by(detail: ToolRun, search: ToolRun) -> str:
    """The incident as the knowledge base names it where its number alone means several: in the workspace that answered
    for it. Empty where that does not tell."""
    outcome, result = search.outcome, detail.result
    if not isinstance(outcome, Failed) or len(detail.rows) != 1 or result is None:
        return ""
    ending = f"@{result.coverage.workspace}".casefold()
    return next((each for each in outcome.error.allowed if each.casefold().endswith(ending)), "")


def _others_than(incident: str, detail: ToolRun | None, search: ToolRun) -> list[Group]:
    """The past incidents of a search without the one that is asked about; one of that number in another workspace is
    another incident."""
    at = detail.result.coverage.workspace if detail is not None and detail.result is not None else ""

    def itself(hit: KnowledgeHit) -> bool:
        return hit.number == incident and (not hit.workspace or not at or hit.workspace.casefold() == at.casefold())

    return [group for group in by_incident(hits_of(search)) if not itself(group[0])]


async def _no_such_incident(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame, detail: ToolRun) -> Answer:
    """The incident that was named is not there, or its number means several: told as a question for it is."""
    if not detail.worked:
        return turn.failed_answer([detail])
    turn.runs.clear()
    return await carry_out(turn, Plan(view=View.INCIDENT, calls=(_detail_of(wish.incident),), frame=frame))


async def _with_closings(turn: OfflineTurn, groups: Sequence[Group], most: int) -> list[Group]:
    """The groups, the first `most` of them with all parts of a closed incident whose closing was not among the hits."""
    told = list(groups)
    lacking = [n for n, group in enumerate(groups[:most]) if group[0].status == "Closed" and not closing_words(group)]
    if lacking:
        runs = await turn.run([document_read(groups[place][0].document) for place in lacking])
        for place, run in zip(lacking, runs, strict=True):
            told[place] = (*groups[place], *hits_of(run))
    return told


async def _answer_steps(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """The section of the playbook that fits an incident by its title, tactics and techniques, beside the incident and a
    past one like it. What was done is told from the incident's own record, never from a playbook."""
    like = _in_knowledge(turn, wish.incident)
    past, detail = await turn.run((past_search("", {}, like=like), _detail_of(wish.incident)))
    if len(detail.rows) != 1:
        return await _no_such_incident(turn, wish, frame, detail)
    new = str(detail.rows[0].get("status") or "") == "New"
    about = about_incident(detail.rows[0], wish.phase or ("triage" if new else "containment"))
    calls = [playbook_search(f"{about.query} {wish.topic}".strip(), {})]
    if exact := _told_apart_by(detail, past):
        calls.append(past_search("", {}, like=exact))
    elif _not_kept(past):
        calls.append(past_search(about.query, {}))
    search, *fallback = await turn.run(calls)
    past = fallback[0] if fallback else past
    told = _Telling(turn, wish, frame, [search, past])
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], replace(about, phase=""))
    sure = bool(hits) and fits(hits[0], about, hits)
    found = hits[0] if sure else None
    if sure:
        hits = await _with_phase(told, hits, about)
    fitting, alike = only_fitting(_others_than(wish.incident, detail, past), about)
    fitting = await _with_closings(turn, fitting, 1 if alike else 0)
    told.of_run("one_line", detail)
    if wish.done:
        told.of_run("reason", detail)
        recorded = any(detail.at(f"/rows/0/{name}") for name in ("comments", "classification_comment"))
        told.fixed("all_recorded" if recorded else "nothing_recorded")
    outcome = Outcome.ANSWERED
    if not search.worked:
        outcome = say_failures(told.writer, [search], some_worked=True)
    elif hits:
        told.best(hits, about, sure=sure, found=found)
    else:
        told.of_run("no_playbook", search, topic=Echo(about.words))
        outcome = Outcome.NO_DATA
    if alike and told.closing(fitting[0]):
        told.fixed("past_like")
    for remark in wish.remarks:
        told.writer.fixed(remark)
    return told.finish(outcome, incident=wish.incident)


# --- past incidents


@dataclass(frozen=True, slots=True)
class _Apart:
    """Incidents that are alike, and what keeps them from being what was asked for; `said` stands in the places of the
    sentence."""

    title: str
    sentence: str
    groups: Sequence[Group]
    said: tuple[Echo, ...] = ()


async def _answer_past(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """Past incidents like an incident, or about words, with what does not quite belong told apart."""
    about = About(wish.topic, _filter(wish, "tactic"), _filter(wish, "technique"), names=wish.names)
    detail: ToolRun | None = None
    if wish.incident:
        like = _in_knowledge(turn, wish.incident)
        *searches, detail = await turn.run((*_searches(wish, "", like), _detail_of(wish.incident)))
        if len(detail.rows) == 1:
            found = about_incident(detail.rows[0])
            about = replace(found, words=f"{found.words} {wish.topic}".strip(), names=wish.names)
        elif not searches[0].worked:
            return await _no_such_incident(turn, wish, frame, detail)
        if exact := _told_apart_by(detail, searches[0]):
            searches = await turn.run(_searches(wish, "", exact))
        if _not_kept(searches[0]) and len(detail.rows) == 1:
            # An incident that the knowledge base does not hold is searched by what the workspace tells of it.
            searches = await turn.run(_searches(wish, about.query, ""))
    else:
        searches = await turn.run(_searches(wish, wish.topic, ""))
    if not searches[0].worked:
        return turn.failed_answer([searches[0]])
    return await _tell_past(_Telling(turn, wish, frame, searches), about, detail)


async def _tell_past(told: _Telling, about: About, detail: ToolRun | None) -> Answer:
    turn, wish, searches, one = told.turn, told.wish, told.searches, detail is not None and len(detail.rows) == 1
    groups = _others_than(wish.incident, detail, searches[0])
    more = [group for run in searches[1:] for group in _others_than(wish.incident, detail, run)]
    open_ones, sure_open = only_fitting([group for group in more if group[0].status in OPEN], about)
    if detail is not None and one:
        told.of_run("one_line", detail)
    if wish.still_open:
        groups = [group for group in groups if group[0].status in OPEN]
    fitting, sure = only_fitting(groups, about)
    apart: list[_Apart] = []
    if sure and not wish.still_open:
        created = str(detail.rows[0].get("created_time") or "") if detail is not None and one else ""
        fitting, apart = _told_apart(fitting, about, created)
    if sure_open and (still := _told_apart(open_ones, about, "")[0]):
        apart.append(_Apart("Still open", "Still open, so no past ones yet", still))
    closings = (3 if wish.sought is Sought.CLOSED else 1) if sure else 0
    fitting = (await _with_closings(turn, fitting, closings))[: wish.most or None]
    if fitting:
        lead = "still_open" if wish.still_open else "like" if wish.incident else "fit"
        told.fixed(lead if closings else "unsure")
        told.past("Still open" if wish.still_open else "Past incidents", fitting, about)
        for group in fitting[:closings]:
            told.closing(group)
        still_open = [told.cited(group[0]) for group in fitting[:MOST_PAST] if group[0].status in OPEN]
        if still_open and not wish.still_open:
            told.writer.say("Not closed yet: {}.", still_open)
        if closings and len(fitting) > MOST_PAST:
            told.fixed("more")
    else:
        _say_none(told, wish)
    for each in apart:
        cited = [told.cited(group[0]) for group in each.groups[:MOST_PAST]]
        told.writer.say(f"{each.sentence}: {{}}.", *each.said, cited)
        told.past(each.title, each.groups, about)
    if told.items:
        told.of_run("freshness", searches[0])
    for remark in wish.remarks:
        told.writer.fixed(remark)
    return told.finish(Outcome.ANSWERED if told.items else Outcome.NO_DATA, incident=wish.incident)


def _say_none(told: _Telling, wish: KnowledgeWish) -> None:
    """That nothing was found, with the filters that could be left out."""
    search = told.searches[0]
    if search.at("/freshness/incidents") == 0:
        told.fixed("no_past")
        return
    given = [(name, str(search.call.arguments[name])) for name in _FILTERS if search.call.arguments.get(name)]
    times, zone = ("since", "until"), told.writer.zone
    values = [Echo(show_value(value, zone) if name in times else value, word=True) for name, value in given]
    filters = f" ({', '.join(f'{name} {{}}' for name, _ in given)})" if given else ""
    about = Echo(wish.topic or f"incident {wish.incident}" if wish.topic or wish.incident else "any")
    sentence = f"No past incident was found for {{}}{filters}. Leave a filter out, or say it in other words."
    told.writer.say(sentence, about, *values)


def _searches(wish: KnowledgeWish, query: str, like: str) -> tuple[PlannedCall, ...]:
    """The search; where only closed incidents are past ones, also one without that filter, for those still open."""
    search = past_search(query, wish.filters, like=like)
    without = {name: value for name, value in wish.filters.items() if name != "status"}
    over = wish.filters.get("status") == "Closed"
    return (search, past_search(query, without, like=like)) if over else (search,)


def _told_apart(groups: Sequence[Group], about: About, created: str) -> tuple[list[Group], list[_Apart]]:
    """The incidents that are what was asked for, and those that are not quite: they do not name what the question
    names, or were created after the incident that they are held against."""
    left = list(groups)
    apart: list[_Apart] = []
    for name in about.names:
        unnamed = [group for group in left if not any(names_it(hit, name) for hit in group)]
        left = [group for group in left if group not in unnamed]
        alike = [group for group in unnamed if _shares(group, about).text != EMPTY_CELL]
        if alike:
            apart.append(_Apart("Alike", "Alike in other ways, without naming {}", alike, (Echo(name),)))
    later = [group for group in left if created and group[0].time > created]
    if later:
        left = [group for group in left if group not in later]
        apart.append(_Apart("Created later", "Like it too, but created after it", later))
    return left, apart


def _filter(wish: KnowledgeWish, name: str) -> tuple[str, ...]:
    value = wish.filters.get(name)
    return (value,) if isinstance(value, str) else ()


# --- a section that was shown


async def _answer_section(turn: OfflineTurn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """The section whole, its KQL, the next one, or another phase of its playbook. It is read again, so it is quoted as
    it is now, not as it was shown."""
    section, further = ListItem(SECTION, wish.section), wish.further
    document, *path = section.value.split(" > ")
    goes_on = further in (Further.NEXT, Further.WHOLE)
    (run,) = await turn.run((document_read(document, " > ".join(path) if goes_on else ""),))
    told, hits = _Telling(turn, wish, frame, [run]), hits_of(run)
    if isinstance(run.outcome, Failed) and run.outcome.error.code is QueryErrorCode.INVALID_ARGUMENT:
        told.fixed("section_gone")
        return told.finish(Outcome.NO_DATA)
    if not run.worked:
        return turn.failed_answer([run])
    if further is Further.KQL:
        return _kql(told, section, hits)
    if further is Further.NEXT:
        hits = [hit for hit in hits if hit.citation != section.value]
        best, lead, none = hits[:1], "The section that comes next is {}", "last_section"
    elif further is Further.PHASE:
        best = [hit for hit in hits if phase_of(hit.path) == wish.phase][:1]
        lead, none = "From the same playbook, {}", "no_such_heading"
    else:
        own = [hit for hit in hits if (hit.citation == section.value if path else phase_of(hit.path) == PHASES[0])]
        best, lead, none = (own or hits)[:1], "From the playbook, {}", "last_section"
    if best:
        told.best([*best, *(hit for hit in hits if hit is not best[0])], About(), lead=lead)
        return told.finish()
    told.fixed(none)
    told.others(hits)
    return told.finish(Outcome.NO_DATA, focus=section)


def _kql(told: _Telling, section: ListItem, hits: Sequence[KnowledgeHit]) -> Answer:
    """The KQL of the section, else of the first sections of its playbook that have some, said to be of those."""
    own = [hit for hit in hits if hit.citation == section.value and kql_of(hit)]
    others = list(dict.fromkeys(hit.citation for hit in hits if kql_of(hit)))[:MOST_KQL]
    shown = own or [hit for hit in hits if hit.citation in others and kql_of(hit)]
    if not shown:
        told.fixed("no_kql")
        return told.finish(Outcome.NO_DATA, focus=section)
    if own:
        told.of_hit("kql_of_section", own[0])
    else:
        told.fixed("kql_of_others")
    said = section.value
    for hit in shown:
        if hit.citation != said:
            told.of_hit("kql_from", hit)
            said = hit.citation
        say_kql(told.writer, hit)
    return told.finish(focus=section)
