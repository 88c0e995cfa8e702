"""Past incidents as an answer: a numbered table, what each shares with what was asked, and how it was closed.

Each is named by its citation, which is how the knowledge base knows it; its state is as it was taken in, and the answer
says when that was.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.offline.answer_writer import EMPTY_CELL, AnswerWriter, Echo, Fact, part_of
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.knowledge.fitting import About, fits, held, names_it, shared_techniques, telling
from sentinel_rag.agent.offline.knowledge.quoted_section import closing_words
from sentinel_rag.agent.row_text import plain, quoted
from sentinel_rag.agent.things import past_item
from sentinel_rag.agent.times import show_value
from sentinel_rag.agent.tool_runs import ToolRun

MOST_PAST = 6
OPEN = ("New", "Active")
_MOST_SHARED = 5
_COLUMNS = ("", "Incident", "Severity", "Outcome", "Created", "Shares", "Title")


def say_past(
    writer: AnswerWriter,
    groups: Sequence[Sequence[KnowledgeHit]],
    about: About,
    *,
    title: str = "Past incidents",
    closings: int = 1,
) -> tuple[ListItem, ...]:
    """The table of past incidents, numbered from 1, and of the first `closings` how they were closed."""
    items = say_apart(writer, title, groups, about, first=0)
    for group in groups[:closings]:
        say_closing(writer, group)
    return items


def say_apart(
    writer: AnswerWriter,
    title: str,
    groups: Sequence[Sequence[KnowledgeHit]],
    about: About,
    *,
    first: int,
) -> tuple[ListItem, ...]:
    """Incidents that are not quite what was asked for, in a table of their own, numbered from `first` + 1."""
    rows = [[Fact(f"[{first + place}]"), *_cells(writer, group, about)] for place, group in enumerate(groups, start=1)]
    writer.table(title, _COLUMNS, rows)
    return tuple(past_item(group[0]) for group in groups)


def say_still_open(writer: AnswerWriter, groups: Sequence[Sequence[KnowledgeHit]]) -> None:
    """Which of the incidents that were just told are not over."""
    cited = [cited_as(writer, group[0]) for group in groups if group[0].status in OPEN]
    if cited:
        writer.say("Not closed yet: {}.", cited)


def say_closing(writer: AnswerWriter, group: Sequence[KnowledgeHit]) -> bool:
    """How one of them was closed, quoted; False if no hit of it tells."""
    found = closing_words(group)
    if found is None:
        return False
    hit, words = found
    text = part_of(hit.run, f"{hit.pointer}/text", quoted(words, limit=700))
    writer.say("How {} ended: {}", cited_as(writer, hit), text)
    return True


def cited_as(writer: AnswerWriter, hit: KnowledgeHit) -> Fact:
    """The citation of a hit."""
    return writer.exact(hit.run, f"{hit.pointer}/citation")


def only_fitting(groups: Sequence[Sequence[KnowledgeHit]], about: About) -> tuple[list[Sequence[KnowledgeHit]], bool]:
    """The past incidents that fit, and True; or all of them and False, where none does."""
    fitting = [group for group in groups if any(fits(hit, about) for hit in group)]
    return (fitting, True) if fitting else (list(groups), False)


def say_freshness(writer: AnswerWriter, run: ToolRun) -> None:
    """Up to when past incidents are known."""
    if run.at("/freshness/incidents_as_of"):
        writer.say("The knowledge base knows incidents as of {}.", writer.time(run, "/freshness/incidents_as_of"))


def filters_told(run: ToolRun, zone: tzinfo) -> tuple[str, list[Echo]]:
    """The filters of a search as a template with its parts, for the sentence that says what was looked for."""
    named = ("severity", "status", "classification", "technique", "tactic", "since", "until")
    given = [(name, str(run.call.arguments[name])) for name in named if run.call.arguments.get(name)]
    told = [show_value(value, zone) if name in ("since", "until") else value for name, value in given]
    return ", ".join(f"{name} {{}}" for name, _ in given), [Echo(value, word=True) for value in told]


def _cells(writer: AnswerWriter, group: Sequence[KnowledgeHit], about: About) -> list[Fact]:
    hit = group[0]
    # One that was opened again keeps the classification of its first closing.
    outcome = "classification" if hit.classification and hit.status not in OPEN else "status"
    return [
        writer.cell(hit.run, f"{hit.pointer}/citation"),
        writer.cell(hit.run, f"{hit.pointer}/severity"),
        writer.cell(hit.run, f"{hit.pointer}/{outcome}"),
        writer.time_cell(hit.run, f"{hit.pointer}/time"),
        shares(group, about),
        writer.cell(hit.run, f"{hit.pointer}/title"),
    ]


def shares(group: Sequence[KnowledgeHit], about: About) -> Fact:
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
    if not kept:
        return Fact(EMPTY_CELL)
    return part_of(hit.run, f"{hit.pointer}/why", ", ".join(kept))
