"""The things that tool results hold: incidents, alerts, entities, sections of documents, and other rows.

`learn` tells a conversation what its calls were about, so that "that host" and "its alerts" have a meaning whichever
analyst made the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sentinel_rag.agent.knowledge_hits import hits_of
from sentinel_rag.agent.references.occurrences import occurrences
from sentinel_rag.agent.references.state import References
from sentinel_rag.agent.things import (
    ALERT,
    ENTITY,
    INCIDENT,
    ROW,
    SECTION,
    ListItem,
    alert_item,
    entity_item,
    hit_item,
    incident_item,
)
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.json_values import JsonValue

Row = Mapping[str, JsonValue]


def rows_as_items(run: ToolRun) -> tuple[ListItem, ...]:
    """The rows of one result as things, in their order: number n of a list that shows them all is the nth."""
    kind = run.call.arguments.get("kind")
    if run.call.tool_name == "get_top_entities":
        return tuple(entity_item(str(kind or ""), str(row.get("name") or "")) for row in run.rows)
    return tuple(_row_item(row, f"{run.call.call_id}/rows/{place}") for place, row in enumerate(run.rows))


def _row_item(row: Row, where: str) -> ListItem:
    if row.get("number") is not None and "title" in row:
        return incident_item(row)
    if row.get("alert_id"):
        return alert_item(row)
    if isinstance(row.get("section"), str) and row.get("section"):
        source = str(row.get("file") or row.get("source") or "")
        return ListItem(SECTION, f"{source} § {row['section']}" if source else str(row["section"]))
    words = " ".join(str(value) for value in row.values() if isinstance(value, str | int | float))
    return ListItem(ROW, where, title=words[:200])


def things_of(runs: Iterable[ToolRun]) -> tuple[ListItem, ...]:
    """Every thing that these results name, each once: rows, the alerts and entities inside them, their incidents."""
    found: dict[tuple[str, str, str], ListItem] = {}
    for run in runs:
        for item in (
            *rows_as_items(run),
            *map(hit_item, hits_of(run)),
            *(each for row in run.rows for each in _inside(row)),
            *_ranked(run),
        ):
            if item.value and (item.key not in found or item.title):
                found.setdefault(item.key, item)
    return tuple(found.values())


def _inside(row: Row) -> Iterator[ListItem]:
    number = "" if row.get("number") is None else str(row.get("number"))
    for alert in _rows(row.get("alerts")):
        yield alert_item(alert, incident=number)
        yield from _entities(alert)
    yield from _entities(row)
    if row.get("incident_number") is not None:
        yield ListItem(INCIDENT, str(row["incident_number"]), incident=str(row["incident_number"]))


def _entities(row: Row) -> Iterator[ListItem]:
    """Entities as an incident's detail groups them (kind -> names) or as an alert lists them (kind and name each)."""
    entities = row.get("entities")
    if isinstance(entities, Mapping):
        for kind, named in entities.items():
            for entity in _rows(named):
                yield entity_item(str(kind), str(entity.get("name") or ""))
    for entity in _rows(entities):
        yield entity_item(str(entity.get("kind") or ""), str(entity.get("name") or ""))


def _ranked(run: ToolRun) -> Iterator[ListItem]:
    for kind, name in (("account", "top_accounts"), ("host", "top_hosts"), ("ip", "top_ips")):
        for entity in _rows(run.at(f"/summary/{name}")):
            yield entity_item(kind, str(entity.get("name") or ""))


def _rows(value: JsonValue) -> list[Row]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def shown_text(answer: Answer) -> str:
    """Everything that a person reads of an answer above its footnote."""
    cells = (cell for table in answer.tables for row in (table.columns, *table.rows) for cell in row)
    return "\n".join((answer.text, *cells))


def _rows_told(told: str, known: Sequence[ListItem]) -> Iterator[tuple[ListItem, ...]]:
    """The things of one kind that stand together in one line of an answer, in the order of its words: for each kind
    that line which names most of them."""
    for kind in sorted({item.of_kind for item in known if item.kind == ENTITY}):
        same = [item for item in known if item.of_kind == kind]
        row: list[tuple[int, ListItem]] = []
        for line in told.splitlines():
            found = [(next(occurrences(item.value.casefold(), line), -1), item) for item in same]
            here = [each for each in found if each[0] >= 0]
            row = here if len(here) > max(len(row), 1) else row
        if row:
            yield tuple(item for _, item in sorted(row, key=lambda each: each[0]))


_PARAMETER_KINDS = {
    "account": "account",
    "user": "account",
    "actor": "account",
    "caller": "account",
    "host": "host",
    "ip": "ip",
    "domain": "dns",
    "process": "",
    "sender": "",
    "destination": "",
    "address": "",
    "indicator": "",
}
"""Parameters of stored queries that name a thing, and its kind where alerts hold such a value under no other kind."""


def _named_to_a_query(arguments: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """The things that a stored query was narrowed to, with their kinds."""
    parameters = arguments.get("parameters")
    for name, value in parameters.items() if isinstance(parameters, Mapping) else ():
        if name in _PARAMETER_KINDS and isinstance(value, str) and value:
            yield _PARAMETER_KINDS[name], value


def learn(references: References, runs: Sequence[ToolRun], *, shown: str) -> None:
    """What these calls were about becomes what is talked about; what the answer `shown` names can be pointed at.

    Calls that failed or found nothing change nothing. Entities come before incidents and alerts, so that "it" is the
    incident in which the alerts of a host were asked for.
    """
    told = shown.casefold()
    worked = [run for run in runs if run.rows]
    known = things_of((*worked, *(run for run in runs if hits_of(run))))
    references.mention(item for item in known if any(occurrences(item.value.casefold(), told)))
    for row in _rows_told(told, known):
        references.tell_row(row)
    for run in worked:
        arguments = run.call.arguments
        entity = arguments.get("entity")
        if isinstance(entity, str) and entity:
            references.focus_on(entity_item(str(arguments.get("entity_kind") or ""), entity))
        for kind, value in _named_to_a_query(arguments):
            references.focus_on(entity_item(kind, value))
    for run in worked:
        incident = run.call.arguments.get("incident")
        if run.call.tool_name == "get_incident_detail" and len(run.rows) == 1:
            references.focus_on(incident_item(run.rows[0]))
        elif isinstance(incident, str | int) and incident:
            references.focus_on(ListItem(INCIDENT, str(incident), incident=str(incident)))
    for run in worked:
        only = rows_as_items(run)[0] if len(run.rows) == 1 else None
        if only is not None and only.kind in (INCIDENT, ALERT) and "limit" not in run.call.arguments:
            references.focus_on(only)
        alert = run.call.arguments.get("alert_id")
        if isinstance(alert, str) and alert:
            references.focus_on(ListItem(ALERT, alert))
