"""The things that a person can point at afterwards: incidents, alerts, entities, offered questions, sections and cases
found in the knowledge base.

A thing holds the id, which a later call is made with, and the few words by which a person tells one line from the next
("the high one", "the one from yesterday"). Those words are what the screen showed then; no answer is ever made of them.
A line of a list is tied only to an id that this conversation's tool results hold and that the line plainly leads with,
or that is the only one in it. Any other line stays a line without a thing: "[2]" of it is asked back.

References and the offline analyst read hits through this module. A hit that does not have the agreed shape is no
hit. The texts are words of others; nothing here reads them for meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames.phrases import WORD, phrase_book
from sentinel_rag.language.lexicon import fold

SEARCH_TOOL = "search_knowledge_base"
PLAYBOOKS, INCIDENTS = "playbooks", "sentinel_incidents"
_INCIDENT_ID = re.compile(r"incident-(\d{1,10})(?:@([\w.-]{1,40}))?")
"""A past incident as the knowledge base names it, with its workspace where there are several."""


@dataclass(frozen=True, slots=True)
class KnowledgeHit:
    """One hit of one search. `pointer` is its place in the result of `run`; `path` are the headings down to its
    section; `number` is the past incident's, empty for a playbook, `workspace` its own where there are several. The
    `shared_*` are what it has in common with what was asked, as the search told it."""

    run: ToolRun
    pointer: str
    citation: str
    document: str
    title: str
    path: tuple[str, ...]
    text: str
    number: str
    workspace: str
    severity: str
    status: str
    classification: str
    time: str
    tactics: tuple[str, ...]
    techniques: tuple[str, ...]
    entities: tuple[str, ...]
    shared_words: tuple[str, ...]
    shared_tactics: tuple[str, ...]
    shared_techniques: tuple[str, ...]
    shared_entities: tuple[str, ...]

    @property
    def is_playbook(self) -> bool:
        return not self.number

    @property
    def source(self) -> str:
        """The file, or the incident, as the citation names it."""
        return self.citation.split(" > ")[0]

    @property
    def heading(self) -> str:
        """The section's own heading; empty for an incident."""
        return self.path[-1] if self.path else ""


def hits_of(run: ToolRun) -> list[KnowledgeHit]:
    """The hits of a search in their order; none for any other call and for one that did not work."""
    if run.call.tool_name != SEARCH_TOOL or not run.worked:
        return []
    found = run.at("/hits")
    rows = found if isinstance(found, list | tuple) else ()
    hits = (_hit(run, f"/hits/{place}", row) for place, row in enumerate(rows) if isinstance(row, Mapping))
    return [hit for hit in hits if hit is not None]


def incident_number(row: Mapping[str, JsonValue]) -> str:
    """The number of the incident that a hit is of; empty for a hit of a playbook and for any other object."""
    if row.get("collection") != INCIDENTS:
        return ""
    match = _INCIDENT_ID.fullmatch(str(row.get("document_id") or ""))
    return match[1] if match else ""


def _hit(run: ToolRun, pointer: str, row: Mapping[str, Any]) -> KnowledgeHit | None:
    citation, document, text = row.get("citation"), row.get("document_id"), row.get("text")
    number = incident_number(row)
    if not all(isinstance(each, str) and each for each in (citation, document, text)):
        return None
    if row.get("collection") != PLAYBOOKS and not number:
        return None
    why = row.get("why")
    why = why if isinstance(why, Mapping) else {}
    section = _text_of(row.get("section"))
    return KnowledgeHit(
        run=run,
        pointer=pointer,
        citation=str(citation),
        document=str(document),
        title=_text_of(row.get("title")),
        path=tuple(section.split(" > ")) if section and not number else (),
        text=str(text),
        number=number,
        workspace=(match[2] or "") if (match := _INCIDENT_ID.fullmatch(str(document))) else "",
        severity=_text_of(row.get("severity")),
        status=_text_of(row.get("status")),
        classification=_text_of(row.get("classification")),
        time=_text_of(row.get("time")),
        tactics=_texts(row.get("tactics")),
        techniques=_texts(row.get("techniques")),
        entities=_texts(row.get("entities")),
        shared_words=_texts(why.get("words")),
        shared_tactics=_texts(why.get("tactics")),
        shared_techniques=_texts(why.get("techniques")),
        shared_entities=_texts(why.get("entities")),
    )


def _text_of(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


Row = Mapping[str, JsonValue]
LONGEST_WORDS = 200
"""Characters of a title that are kept: enough to tell lines apart."""
LONGEST_ID = 2_000
"""Characters of an id: above every incident, alert and URL; a longer one is cut nowhere, its line is not kept."""
INCIDENT, ALERT, ENTITY, QUESTION, ROW, SECTION = "incident", "alert", "entity", "question", "row", "section"
OWNER = "owner"
"""The kind of a person who works on an incident, and is not one of those that it names."""


@dataclass(frozen=True, slots=True)
class ListItem:
    """One numbered line. `value` is the incident's number (its GUID where workspaces may use a number twice), the
    alert's id, the entity's name, the key of a row, the name of a playbook's section or a whole question; empty for a
    line whose thing is not known. `incident` is the number of the incident that an alert belongs to, `time` the
    creation of an incident or the time of an alert. `title`, `severity`, `status` and `owner` are as they were shown;
    `place` is the entity that an alert names first.
    """

    kind: str
    value: str = ""
    entity_kind: str = ""
    time: str = ""
    incident: str = ""
    title: str = ""
    severity: str = ""
    status: str = ""
    owner: str = ""
    place: str = ""
    guid: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two lines the same thing."""
        return (self.kind, self.entity_kind, self.value.casefold())

    @property
    def of_kind(self) -> str:
        """The kind that a noun asks for: `incident`, `alert`, or the entity's own, such as `host`."""
        return self.entity_kind if self.kind == ENTITY and self.entity_kind else self.kind


def incident_item(row: Mapping[str, JsonValue], *, by_guid: bool = False) -> ListItem:
    """A row of query_incidents, get_incident_detail or get_threat_summary; `by_guid` where a number is not unique."""
    guid = _text(row, "incident_name")
    number = _text(row, "number")
    return ListItem(
        INCIDENT,
        guid if by_guid and guid else number,
        time=_text(row, "created_time"),
        incident=number,
        title=_text(row, "title")[:LONGEST_WORDS],
        severity=_text(row, "severity"),
        status=_text(row, "status"),
        owner=_text(row, "owner")[:LONGEST_WORDS],
        guid=guid,
    )


def alert_item(row: Mapping[str, JsonValue], *, incident: str = "") -> ListItem:
    """A row of query_alerts, or an alert of an incident's detail, whose number is then given."""
    return ListItem(
        ALERT,
        _text(row, "alert_id"),
        time=_text(row, "time"),
        incident=_text(row, "incident_number") or incident,
        title=_text(row, "name")[:LONGEST_WORDS],
        severity=_text(row, "severity"),
        status=_text(row, "status"),
        place=_text(row, "compromised_entity")[:LONGEST_WORDS],
    )


def entity_item(kind: str, name: str) -> ListItem:
    """A named thing of the logs."""
    return ListItem(ENTITY, name, entity_kind=kind)


def row_items(tool: str, arguments: Row, rows: Sequence[Row], call_id: str = "") -> tuple[ListItem, ...]:
    """The rows of one result as things, in their order: number n of a list that shows them all is the nth."""
    if tool == "get_top_entities":
        return tuple(entity_item(_text(arguments, "kind"), _text(row, "name")) for row in rows)
    return tuple(_row_item(row, f"{call_id}/rows/{place}") for place, row in enumerate(rows))


def _row_item(row: Row, where: str) -> ListItem:
    if row.get("number") is not None and "title" in row:
        return incident_item(row)
    if row.get("alert_id"):
        return alert_item(row)
    if isinstance(row.get("section"), str) and row.get("section"):
        source = _text(row, "file") or _text(row, "source")
        return ListItem(SECTION, f"{source} § {row['section']}" if source else str(row["section"]))
    words = " ".join(str(value) for value in row.values() if isinstance(value, str | int | float))
    return ListItem(ROW, where, title=words[:LONGEST_WORDS])


def inner_items(rows: Iterable[Row]) -> Iterator[ListItem]:
    """The things that rows hold inside: alerts of an incident, entities, its owner, the incident of an alert."""
    for row in rows:
        number = _text(row, "number")
        for alert in _rows(row.get("alerts")):
            yield alert_item(alert, incident=number)
            yield from _entities(alert)
        yield from _entities(row)
        if owner := _text(row, "owner"):
            yield entity_item(OWNER, owner)
        if row.get("incident_number") is not None:
            yield ListItem(INCIDENT, str(row["incident_number"]), incident=str(row["incident_number"]))


def _entities(row: Row) -> Iterator[ListItem]:
    """Entities as an incident's detail groups them (kind -> names) or as an alert lists them (kind and name each)."""
    entities = row.get("entities")
    if isinstance(entities, Mapping):
        for kind, named in entities.items():
            for entity in _rows(named):
                yield entity_item(str(kind), _text(entity, "name"))
    for entity in _rows(entities):
        yield entity_item(_text(entity, "kind"), _text(entity, "name"))


def _rows(value: JsonValue) -> list[Row]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def section_item(hit: KnowledgeHit) -> ListItem:
    """A section of a playbook, by its citation."""
    return ListItem(SECTION, hit.citation, title=hit.title[:LONGEST_WORDS])


def past_item(hit: KnowledgeHit) -> ListItem:
    """A past incident, by its number."""
    return ListItem(
        INCIDENT,
        hit.number,
        incident=hit.number,
        title=hit.title[:LONGEST_WORDS],
        severity=hit.severity,
        status=hit.status,
        time=hit.time,
    )


def hit_item(hit: KnowledgeHit) -> ListItem:
    """What a hit is of."""
    return section_item(hit) if hit.is_playbook else past_item(hit)


LONGEST_NAME = 200
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:{}-]{0,199}")
_SIGNS_OF_A_NAME = re.compile(r"[\w.@:\\/$%+~()&=#\u27e6\u27e7 -]+")
_WORDS_OF_A_NAME = 3
_KIND_WORDS = {
    "filehash": "hash",
    "ip": "ip",
    "dns": "domain",
    "mailmessage": "mail",
    "cloud-application": "application",
    "azure-resource": "resource",
}


def words_for(item: ListItem) -> str | None:
    """The words for `item`; None if its id is unknown or may not stand in a sentence."""
    if item.kind == INCIDENT:
        return f"incident {item.value}" if _ID.fullmatch(item.value) else None
    if item.kind == ALERT:
        return f"alert {item.value}" if _ID.fullmatch(item.value) else None
    if item.kind == QUESTION:
        return item.value
    if not is_a_name(item.value):
        return None
    kind = _KIND_WORDS.get(item.entity_kind, item.entity_kind) if item.kind == ENTITY else item.kind
    return f'{kind} "{item.value}"'.lstrip()


def is_a_name(value: str) -> bool:
    """True for what reads as a name and not as a sentence: few words, no sign that ends a quotation or a clause."""
    return (
        0 < len(value) <= LONGEST_NAME
        and plain(value, limit=LONGEST_NAME) == value
        and _SIGNS_OF_A_NAME.fullmatch(value) is not None
        and len(value.split()) <= _WORDS_OF_A_NAME
        and not reads_like_instruction(value)
    )


def shown_words(item: ListItem) -> str:
    """The thing as a footnote or a question back names it: one safe line."""
    if item.kind in (INCIDENT, ALERT):
        return f"{item.kind} {plain(item.value, limit=80)}"
    return f"{item.of_kind} {plain(item.value, limit=120)}".strip()


def _text(row: Mapping[str, JsonValue], name: str) -> str:
    value = row.get(name)
    return "" if value is None or isinstance(value, list | tuple | Mapping) else str(value)


UNKNOWN = "line"
MOST_LINES = 1000
_LINE = re.compile(
    r"^\s{0,12}(?:[-*+]\s+)?(?:\|\s*)?(?:\*\*|__)?\s*(?:\[(?P<bracket>\d{1,4})\]|(?P<plain>\d{1,4})(?:[.)](?=\s|\*)|(?=\s*\|)))"
    r"(?:\*\*|__)?[\s|:–—-]*(?P<rest>.*)$"
)
_LEADING = frozenset({"f", "definite", "kind", "severity", "status"})
"""Types of words that may stand before the thing that a line is about."""
_GOES_ON, _BEGAN = re.compile(r"[\w@]|[.-]\w"), re.compile(r"[\w@.-]")
_LONGEST_TITLE_OF_WORDS = 8
"""Characters that a title must have more of to stand for its incident."""
_PARAMETER_KINDS = {
    "account": "account", "user": "account", "actor": "account", "caller": "account", "host": "host", "ip": "ip",
    "domain": "dns", "process": "", "sender": "", "destination": "", "address": "", "indicator": "",
}  # fmt: skip
"""Parameters of stored queries that name a thing, and its kind where alerts hold such a value under no other kind."""


def occurrences(words: str, text: str) -> Iterator[int]:
    """Where `words` begin in `text`; both in one case. "web-3" is not found in "web-30" or in "web-3.example"."""
    begin = text.find(words) if words else -1
    while begin >= 0:
        end = begin + len(words)
        if not _BEGAN.match(text[max(begin - 1, 0) : begin]) and not _GOES_ON.match(text[end : end + 2]):
            yield begin
        begin = text.find(words, begin + 1)


def things_of(runs: Iterable[ToolRun]) -> tuple[ListItem, ...]:
    """Every thing that these results name, each once: rows, the alerts and entities inside them, their incidents."""
    found: dict[tuple[str, str, str], ListItem] = {}
    for run in runs:
        rows = row_items(run.call.tool_name, run.call.arguments, run.rows, run.call.call_id)
        for item in (*rows, *map(hit_item, hits_of(run)), *inner_items(run.rows), *_ranked(run)):
            if item.value and (item.key not in found or item.title):
                found.setdefault(item.key, item)
    return tuple(found.values())


def _ranked(run: ToolRun) -> Iterator[ListItem]:
    for kind, name in (("account", "top_accounts"), ("host", "top_hosts"), ("ip", "top_ips")):
        rows = run.at(f"/summary/{name}")
        for entity in rows if isinstance(rows, list | tuple) else ():
            if isinstance(entity, Mapping):
                yield entity_item(kind, str(entity.get("name") or ""))


def told_in(runs: Iterable[ToolRun], text: str) -> list[ListItem]:
    """The things of these results that a text names."""
    folded = text.casefold()
    return [item for item in things_of(runs) if next(occurrences(item.value.casefold(), folded), None) is not None]


def asked_about(runs: Sequence[ToolRun]) -> Iterator[ListItem]:
    """What calls that found something were about: entities before incidents and alerts, so that "it" is the incident in
    which the alerts of a host were asked for."""
    worked = [run for run in runs if run.rows]
    for run in worked:
        entity = run.call.arguments.get("entity")
        if isinstance(entity, str) and entity:
            yield entity_item(str(run.call.arguments.get("entity_kind") or ""), entity)
        yield from _named_to_a_query(run.call.arguments.get("parameters"))
    for run in worked:
        incident, alert = run.call.arguments.get("incident"), run.call.arguments.get("alert_id")
        if run.call.tool_name == "get_incident_detail" and len(run.rows) == 1:
            yield incident_item(run.rows[0])
        elif isinstance(incident, str | int) and incident:
            yield ListItem(INCIDENT, str(incident), incident=str(incident))
        only = row_items(run.call.tool_name, run.call.arguments, run.rows)[:1] if len(run.rows) == 1 else ()
        if only and only[0].kind in (INCIDENT, ALERT) and "limit" not in run.call.arguments:
            yield only[0]
        if isinstance(alert, str) and alert:
            yield ListItem(ALERT, alert)


def _named_to_a_query(parameters: JsonValue) -> Iterator[ListItem]:
    for name, value in parameters.items() if isinstance(parameters, Mapping) else ():
        if name in _PARAMETER_KINDS and isinstance(value, str) and value:
            yield entity_item(_PARAMETER_KINDS[name], value)


def shown_text(answer: Answer) -> str:
    """Everything that a person reads of an answer above its footnote."""
    cells = (cell for table in answer.tables for row in (table.columns, *table.rows) for cell in row)
    return "\n".join((answer.text, *cells))


@dataclass(frozen=True, slots=True)
class _Name:
    """One way in which a line may name a thing."""

    item: ListItem
    begin: int
    end: int
    certain: bool


def numbered_lists(text: str, known: Sequence[ListItem]) -> tuple[tuple[ListItem, ...], ...]:
    """The lists of `text`, each numbered from 1 without a gap; a line without a known thing has the kind `line`."""
    lists: list[list[ListItem]] = []
    expected = 0
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        number = int(match["bracket"] or match["plain"])
        if number == 1:
            lists.append([])
        elif number != expected:
            expected = 0
            continue
        lists[-1].append(_thing_of(match["rest"], known))
        expected = number + 1
    return tuple(tuple(each[:MOST_LINES]) for each in lists if len(each) > 1 or each[0].value)


def _thing_of(line: str, known: Sequence[ListItem]) -> ListItem:
    named = sorted(_names_in(line, known), key=lambda name: (name.begin, -name.end))
    certain = {name.item.key: name.item for name in named if name.certain}
    leading = [name for name in named if _leads(line[: name.begin])]
    if leading:
        first = leading[0]
        same = {name.item.key for name in leading if name.begin == first.begin and name.end == first.end}
        if len(same) == 1 and (first.certain or _stands_for_an_incident(first, line, named)):
            return first.item
    elif len(certain) == 1:
        return next(iter(certain.values()))
    return ListItem(UNKNOWN, "", title=line.strip()[:LONGEST_WORDS])


def _leads(before: str) -> bool:
    """True if only nouns, levels, states and times stand before a name."""
    book = phrase_book("en")
    return all(
        word[0].isdigit() or any(type_ in _LEADING for type_, _ in book.senses(word))
        for word in WORD.findall(fold(before))
    )


def _stands_for_an_incident(name: _Name, line: str, named: Sequence[_Name]) -> bool:
    """True for a bare number that leads its line and cannot be a count: its incident's title is there too, or no word
    follows it and no other thing is named."""
    if name.item.title and name.item.title.casefold() in line.casefold():
        return True
    others = {each.item.key for each in named} - {name.item.key}
    return not others and re.match(r"\s*[^\W\d_]", line[name.end :]) is None


def _names_in(line: str, known: Sequence[ListItem]) -> Iterator[_Name]:
    """A number counts as an incident's for certain behind that word or a `#`; elsewhere it may be a count."""
    folded = line.casefold()
    for item in known:
        for words in {item.value, item.guid, item.title if len(item.title) > _LONGEST_TITLE_OF_WORDS else ""} - {""}:
            for begin in occurrences(words.casefold(), folded):
                number = item.kind == INCIDENT and words.isdigit()
                yield _Name(item, begin, begin + len(words), not number or _called_incident(folded[:begin]))


def _called_incident(before: str) -> bool:
    words = WORD.findall(before)
    behind = before.rstrip(" *_#:-")
    said = bool(words) and behind.endswith(words[-1]) and ("kind", "incident") in phrase_book("en").senses(words[-1])
    return said or before.rstrip().endswith("#")
