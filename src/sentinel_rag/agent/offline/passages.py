"""Passages of the knowledge base: how they are searched, which of them fit what was asked and why, how they are quoted.

A search always finds something that is nearest. Whether that fits is told from what the hit says it shares: techniques,
tactics, entities, and the words of the question; never from its score, which compares hits of one search only. Others
wrote the text: markup is taken off, and nothing of it is said in our own voice. Words that say little, endings and
headings are those of the documents' language, in `knowledge.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.agent.answers.writer import AnswerWriter, Fact, part_of
from sentinel_rag.agent.planner.decisions import PlannedCall
from sentinel_rag.agent.planner.knowledge import PHASES, begins, phase_of, words_of_documents
from sentinel_rag.agent.row_text import data_line, plain
from sentinel_rag.agent.things import INCIDENTS, PLAYBOOKS, SEARCH_TOOL, KnowledgeHit
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.knowledge_tools import MAX_HITS, MAX_QUESTION_CHARACTERS

_MOST_OF_A_KIND = 12
_ANY_PLAYBOOK = PHASES[0]
"""What is searched by for an incident that tells nothing of itself."""
_ANY_INCIDENT = "incident closed classification"
"""What is searched by where only filters were said: words that the record of every closed incident has."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_SHORTEST_STEM = 3
_PREFIX = 5
Group = Sequence[KnowledgeHit]
"""The hits of one past incident."""


# --- searches


def past_search(query: str, filters: Mapping[str, JsonValue], *, like: str = "") -> PlannedCall:
    """Past incidents by words, or like an incident."""
    sought: dict[str, JsonValue] = {"like_incident": like} if like else {"query": _cut(query or _ANY_INCIDENT)}
    return PlannedCall(SEARCH_TOOL, {**sought, "collection": INCIDENTS, **filters, "limit": MAX_HITS})


def playbook_search(query: str, filters: Mapping[str, JsonValue]) -> PlannedCall:
    """Sections of playbooks by words."""
    sought = {"query": _cut(query) or _ANY_PLAYBOOK, "collection": PLAYBOOKS}
    return PlannedCall(SEARCH_TOOL, {**sought, **filters, "limit": MAX_HITS})


def document_read(document: str, section: str = "") -> PlannedCall:
    """The parts of one document in their order, from a section on."""
    begin: dict[str, JsonValue] = {"section": section} if section else {}
    return PlannedCall(SEARCH_TOOL, {"document": document, **begin, "limit": MAX_HITS})


def _cut(query: str) -> str:
    return query[:MAX_QUESTION_CHARACTERS].strip()


# --- what hits are held against


@dataclass(frozen=True, slots=True)
class About:
    """What hits are held against."""

    words: str = ""
    """Of the question, or of an incident's title."""
    tactics: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    phase: str = ""
    """The phase of the response that is asked for."""
    of_incident: bool = False
    """All of it is told of an incident, which says less than a question does."""
    names: tuple[str, ...] = ()
    """Hosts, accounts and the like that the question names."""
    latest: str = ""
    """What happened last in an incident: the response begins there."""

    @property
    def query(self) -> str:
        """The words that an incident is searched by."""
        return " ".join((self.words, *self.techniques, *self.tactics))


def about_incident(row: Mapping[str, Any], phase: str = "") -> About:
    """What playbooks and past incidents are held against for an incident of the workspace."""
    alerts = [each for each in row.get("alerts") or () if isinstance(each, Mapping)]

    def all_of(name: str) -> tuple[str, ...]:
        own = row.get(name) or ()
        told = [*(own if isinstance(own, list | tuple) else ()), *(v for each in alerts for v in each.get(name) or ())]
        return tuple(dict.fromkeys(str(each) for each in told))[:_MOST_OF_A_KIND]

    # A title often tells how an attack began; its alerts tell how far it came.
    words = dict.fromkeys(str(each or "") for each in (row.get("title"), *(alert.get("name") for alert in alerts)))
    last = max(alerts, key=lambda each: str(each.get("start_time") or each.get("time") or ""), default={})
    latest = str(last.get("name") or "")
    return About(" ".join(words).strip(), all_of("tactics"), all_of("techniques"), phase, True, latest=latest)


# --- words and headings


def stems_of(text: str) -> frozenset[str]:
    """The stems of the telling words of a text."""
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()) if word not in words_of_documents("little"))


def _stem(word: str) -> str:
    """A word without its ending: "revoking" and "revokes" become one."""
    for ending in words_of_documents("endings"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] == word[-2] else word


def share(claim: frozenset[str], held: Iterable[str]) -> float:
    """How much of a claim stands in `held`; words with five letters in common at their beginning are the same."""
    if not claim:
        return 1.0
    held = frozenset(held)
    beginnings = {each[:_PREFIX] for each in held if len(each) >= _PREFIX}
    return sum(word in held or word[:_PREFIX] in beginnings for word in claim) / len(claim)


def said_in_one_line(wanted: frozenset[str], text: str) -> float:
    """How much of a line the wanted stems are, from 0 to 1, in the line that holds them all and least else; 0 if no
    line holds all of two or more. Words of one sentence belong together; the same spread over a page may not."""
    if len(wanted) < 2:
        return 0.0
    lines = (stems_of(line) for line in text.splitlines())
    return max((len(wanted) / max(len(line), len(wanted)) for line in lines if share(wanted, line) == 1), default=0.0)


def telling(text: str) -> frozenset[str]:
    """The stems of the telling words of a text, without those that titles of all kinds have."""
    return stems_of(text) - stems_of(" ".join(words_of_documents("titles")))


def held(wanted: frozenset[str], text: str) -> frozenset[str]:
    """Those of `wanted` that a text holds."""
    own = stems_of(text)
    return frozenset(word for word in wanted if share(frozenset({word}), own))


# --- which hits fit


def shared_techniques(hit: KnowledgeHit, about: About) -> tuple[str, ...]:
    """Techniques of the hit that were asked for. A question for T1059 means its sub-techniques too; an incident that
    only tells T1059 shares no T1059.001."""
    wanted = {each.upper() for each in about.techniques}
    return tuple(
        each
        for each in hit.techniques
        if each.upper() in wanted
        or ("." not in each and each.upper() in map(_family, wanted))
        or (not about.of_incident and _family(each) in wanted)
    )


def _family(technique: str) -> str:
    return technique.upper().partition(".")[0]


def _families(hit: KnowledgeHit, about: About) -> frozenset[str]:
    """Techniques that both have, sub-techniques left aside."""
    return frozenset(map(_family, about.techniques)) & frozenset(map(_family, hit.techniques))


def fits(hit: KnowledgeHit, about: About, others: Sequence[KnowledgeHit] = ()) -> bool:
    """True if the hit shares something that tells: a technique, an entity, or words that stand in it. `others` may hold
    the part of its playbook that says when to use it."""
    if hit.is_playbook and about.of_incident:
        return _suits(hit, about, others)
    if shared_techniques(hit, about) or (not hit.is_playbook and hit.shared_techniques) or hit.shared_entities:
        return True
    wanted = telling(about.words)
    named = held(wanted, f"{hit.title} {' '.join(hit.path)}")
    of_all = named | held(wanted, hit.text)
    tactics = set(about.tactics) & set(hit.tactics)
    few = bool(named) and len(wanted) <= 2
    return not wanted or len(of_all) >= 2 or few or (bool(of_all) and (len(wanted) == 1 or bool(tactics)))


def _suits(hit: KnowledgeHit, about: About, others: Sequence[KnowledgeHit]) -> bool:
    """True if a playbook is for such an incident. A technique without its sub-technique and a tactic are what many
    attacks have, so they need each other's company or that of the title's words."""
    if any("." in each for each in shared_techniques(hit, about)):
        return True
    families, wanted = _families(hit, about), telling(about.words)
    name = stems_of(hit.source.rpartition("/")[2].rpartition(".")[0])
    if name and held(name, about.words) == name:
        return True
    named = held(wanted, when_to_use(hit, others))
    tactics = set(about.tactics) & set(hit.tactics)
    both = bool(named) and bool(families or tactics)
    return len(families) >= 2 or len(named) >= 2 or both or (bool(families) and len(held(wanted, hit.text)) >= 2)


def when_to_use(hit: KnowledgeHit, others: Sequence[KnowledgeHit]) -> str:
    """What a playbook says of itself: title, file, headings, and the section on when to use it if it was found."""
    same = [each for each in (hit, *others) if each.source == hit.source]
    own = [each.text for each in same if begins("when").match(each.heading)]
    return " ".join((hit.title, hit.source, *hit.path, *own))


def names_it(hit: KnowledgeHit, name: str) -> bool:
    """True if a hit tells of the host, account or address; a short name stands for the full one."""
    said = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
    return any(said.search(text) for text in (hit.title, hit.text, *hit.entities))


def by_fit(hits: Sequence[KnowledgeHit], about: About) -> list[KnowledgeHit]:
    """Playbook hits, best first: its title's and headings' words, techniques and the phase before its place."""
    wanted = telling(about.words)

    def weight(place: int, hit: KnowledgeHit) -> float:
        title = len(held(wanted, f"{hit.title} {hit.source}"))
        headings = len(held(wanted, " ".join(hit.path[1:])))
        words = len(held(wanted, hit.text))
        techniques = min(len(_families(hit, about)), 2)
        phase = 2.0 if about.phase and phase_of(hit.path) == about.phase else 0.0
        tactics = 0.3 * len(set(about.tactics) & set(hit.tactics))
        last = 5.0 * len(held(telling(about.latest), f"{hit.title} {hit.source}"))
        use = len(held(wanted, when_to_use(hit, hits))) if about.of_incident else 0
        line = 0.0 if about.of_incident or title else said_in_one_line(wanted, hit.text)
        # A step of many attacks: its playbook comes first that says it most plainly, wherever it was found.
        near = 0.5 + 2.0 * line if line else 1.5 / (place + 1)
        return 1.6 * title + headings + 0.4 * words + 1.8 * techniques + phase + tactics + use + near + last

    weights = [weight(place, hit) for place, hit in enumerate(hits)]
    return [hits[place] for place in sorted(range(len(hits)), key=lambda place: (-weights[place], place))]


def by_incident(hits: Sequence[KnowledgeHit]) -> list[list[KnowledgeHit]]:
    """Past incidents among the hits, each with its chunks, best first."""
    found: dict[str, list[KnowledgeHit]] = {}
    for hit in hits:
        if not hit.is_playbook:
            found.setdefault(hit.document, []).append(hit)
    return list(found.values())


def only_fitting(groups: Sequence[Group], about: About) -> tuple[list[Group], bool]:
    """The past incidents that fit, and True; or all of them and False, where none does."""
    fitting = [group for group in groups if any(fits(hit, about) for hit in group)]
    return (fitting, True) if fitting else (list(groups), False)


# --- quoting


MOST_LINES, MOST_ROWS, MOST_CODE_LINES = 30, 30, 120
LINE_CHARACTERS = 700
_FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w-]*)")
_RULE = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*\|?\s*$")
_ITEM = re.compile(r"\s*([-*+]|\d{1,3}[.)])\s+(?=\S)")
PROSE, CODE, GRID = "prose", "code", "grid"


@dataclass(frozen=True, slots=True)
class PassagePart:
    """A paragraph, list or quotation whose lines are joined with those that only continue them; a code block, with its
    language in lower case; or the rows of a table, the head first, cells as they stand."""

    kind: str
    lines: tuple[str, ...] = ()
    language: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def parts_of(text: str) -> list[PassagePart]:
    """The parts of a chunk of Markdown, in order. Total: what is no table and no code is prose."""
    parts: list[PassagePart] = []
    prose: list[str] = []
    lines, at = [*text.splitlines(), ""], 0

    def add(part: PassagePart | None) -> None:
        if any(map(str.strip, prose)):
            parts.append(PassagePart(PROSE, tuple(_joined(prose))))
        prose.clear()
        parts.extend([part] if part is not None else ())

    while at < len(lines) - 1:
        fence = _FENCE.match(lines[at])
        if fence is not None:
            ends = (p for p in range(at + 1, len(lines)) if lines[p].strip().startswith(fence["fence"]))
            close = next(ends, len(lines) - 1)
            add(PassagePart(CODE, tuple(lines[at + 1 : close]), fence["language"].lower()))
            at = close + 1
        elif "|" in lines[at] and _RULE.match(lines[at + 1]):
            stop = next(p for p in range(at + 2, len(lines) + 1) if p == len(lines) or "|" not in lines[p])
            head, *rows = [_cells(line) for line in (lines[at], *lines[at + 2 : stop])]
            add(PassagePart(GRID, rows=(head, *((*row, *("",) * len(head))[: len(head)] for row in rows))))
            at = stop
        else:
            prose.append(lines[at])
            at += 1
    add(None)
    return parts


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """Lines with the wrapped rest of a paragraph or list item behind its first line; empty lines part them."""
    open_line = ""
    for line in (*lines, ""):
        if open_line and (_ITEM.match(line) or not line.strip()):
            yield open_line
            open_line = ""
        open_line = f"{open_line} {line.strip()}".strip()


def _cells(line: str) -> tuple[str, ...]:
    row = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", row))


def kql_of(hit: KnowledgeHit) -> list[PassagePart]:
    """The KQL blocks of a hit; blocks that name no language count where nothing else is code."""
    code = [part for part in parts_of(hit.text) if part.kind == CODE]
    return [part for part in code if part.language in ("kql", "kusto")] or [part for part in code if not part.language]


def say_section(writer: AnswerWriter, hit: KnowledgeHit) -> bool:
    """Quote the hit without its code; the first line carries the evidence, which is the whole text of the hit. True if
    there is code."""
    parts = parts_of(hit.text)
    for part in parts:
        if part.kind == GRID:
            _say_table(writer, hit, part)
    lines = [line for part in parts if part.kind == PROSE for line in part.lines]
    for place, text in enumerate(text for line in lines[:MOST_LINES] if (text := _shown(line))):
        if place == 0:
            writer.say("> {}", _quoted(hit, text))
        else:  # the whole text of the hit again with each line would make the answer large
            writer.say("> {}", Fact(text), cited=[(hit.run, f"{hit.pointer}/text")])
    if len(lines) > MOST_LINES:
        writer.fixed("> …")
    return any(part.kind == CODE for part in parts)


def say_kql(writer: AnswerWriter, hit: KnowledgeHit) -> None:
    """The KQL of a section as code, each block with the words that stand before it."""
    before, blocks = "", kql_of(hit)
    for part in parts_of(hit.text):
        if part.kind == PROSE:
            before = part.lines[-1] if part.lines else ""
        elif part in blocks:
            if before and (text := _shown(before)):
                writer.say("> {}", _quoted(hit, text))
            code = "\n".join(("```kql", *map(_code_line, part.lines[:MOST_CODE_LINES]), "```"))
            writer.say("{}", Fact(code), cited=[(hit.run, f"{hit.pointer}/text")])
            before = ""


def closing_words(hits: Sequence[KnowledgeHit]) -> tuple[KnowledgeHit, str] | None:
    """How a past incident was closed, in the words of its record: the hit that tells it, and its sentences."""
    for hit in hits:
        told = [line.strip() for line in hit.text.splitlines()]
        said = [line for line in told if re.match(r"(?:Closed (?:on|before)|Classification:|Closing comment:)", line)]
        if any(not line.startswith("Closed on") for line in said) or (said and hit.heading.startswith("How it")):
            return hit, " ".join(said)
    return None


def _say_table(writer: AnswerWriter, hit: KnowledgeHit, grid: PassagePart) -> None:
    head, *rows = [[plain(_without_markup(cell), limit=LINE_CHARACTERS) for cell in row] for row in grid.rows]
    facts = [[Fact(cell) for cell in row] for row in rows[:MOST_ROWS]]
    if facts and facts[0]:
        facts[0][0] = _quoted(hit, rows[0][0])
    writer.table(plain(hit.citation), head, facts)


def _quoted(hit: KnowledgeHit, text: str) -> Fact:
    return part_of(hit.run, f"{hit.pointer}/text", text)


def _shown(line: str) -> str:
    """One line of prose, safe to stand in an answer: a list's mark stays, all other markup goes."""
    mark = _ITEM.match(line)
    if mark is None:
        return data_line(_without_markup(line.lstrip("> ")), limit=LINE_CHARACTERS)
    sign = "-" if mark[1] in "-*+" else mark[1]
    return f"{sign} {data_line(_without_markup(line[mark.end() :]), limit=LINE_CHARACTERS)}"


def _without_markup(text: str) -> str:
    text = re.sub(
        r"!?\[([^\]\n]*)\]\(\s*([^)\s]*)[^)]*\)", lambda m: m[1] if m[2] in ("", m[1]) else f"{m[1]} ({m[2]})", text
    )
    text = re.sub(r"\*\*|__|`", "", text)
    return re.sub(r"(?<!\w)\*([^*\s][^*\n]*)\*(?!\w)", r"\1", text)


def _code_line(line: str) -> str:
    """A line of code with its indentation, unable to end its block."""
    indent = len(line) - len(line.lstrip(" \t"))
    return " " * min(indent, 40) + plain(line, limit=2_000).replace("`", "ˋ")
