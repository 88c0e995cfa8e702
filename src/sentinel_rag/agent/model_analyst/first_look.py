"""What is read for a model before it answers, and what it is told that nobody has read yet.

A question that names incidents needs their dossiers whatever the model makes of it: they are read at once, with what
the analysts' notes hold of cases like them, the raw rows behind their alerts and the other cases of who is in them, so
that its own rounds go further.
The gateway judges these calls like any other. Nothing is read before an order: a change is asked for as it was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any

import anyio.to_thread
import msgspec
from msgspec import structs

from sentinel_rag.agent.answers.results import Results, Row
from sentinel_rag.agent.model_analyst.tools import answer_calls
from sentinel_rag.agent.model_analyst.turn import ModelTurn
from sentinel_rag.agent.models.answer_parts import unused_id
from sentinel_rag.agent.models.port import SMALL_CONTEXT_TOKENS, AssistantMessage, ModelToolCall, ToolResultMessage
from sentinel_rag.agent.things import INCIDENT, SEARCH_TOOL
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.frame import short_name
from sentinel_rag.language.frames.orders import read_order
from sentinel_rag.language.literals import Kind, Literal, key

MOST_INCIDENTS = 3
MOST_ALERTS = 8
"""Alerts of an incident whose raw rows are read at once; a model reads those of others itself."""
MOST_NAMED = {"account": 2, "host": 3}
"""Accounts and hosts of an incident whose other cases are read at once."""
MOST_LISTED = 12
"""Incidents of one list up to which one that nobody opened is worth a look."""
_WHOLE = {"detail", "remediation", "timeline", "events"}
"""What is asked of an incident that more than its own row answers."""
OWN_RULES = "Azure Sentinel"
"""The product that SecurityAlert names for an analytics rule."""
DOSSIER, EVENTS = "get_incident_detail", "get_alert_events"
_NAMED_BY = ("name", "number", "alert_id", "host_name", "account_name", "address", "upn")
_FOLLOWED = (
    *(("account", "account_activity_timeline"), ("host", "process_on_host")),
    *(("ip", "signins_from_ip"), ("ip", "network_connections_to_ip")),
)
"""Kinds of entities that have a history of their own, and a stored query that tells it; of an address inside the last
one, since nobody signs in from there."""
_INSIDE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))

_OF_LOGS = ("run_kql_query", "search_logs")

MOST_TOLD = 5
"""Things that nobody has read of which a model is told at once."""
Wanted = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""
Unread = tuple[Row, str]
"""A row, and the tool or the stored query that reads what is behind it."""


async def first_look(gateway: ToolGateway, turn: ModelTurn, frame: Frame) -> None:
    """Read what `frame` names, as calls and results of the open turn."""
    memory = turn.memory
    if memory.history.budget.total < SMALL_CONTEXT_TOKENS or read_order(frame.said) is not None:
        return
    pointed = (item.value for each in memory.talk.pointed for item in each.items if item.kind == INCIDENT)
    known = {str(each.arguments.get("incident")) for each in memory.results if each.tool == DOSSIER}
    # "Compare incidents 40 and 18": the second number stands without its noun.
    beside = frame.all("digits") if frame.has("incident") and frame.has("op:compare") else []
    numbers = list(dict.fromkeys([*frame.all("incident"), *beside, *pointed]))
    if not 0 < len(numbers) <= MOST_INCIDENTS:
        return
    numbers = [number for number in numbers if number not in known]
    fields = {*frame.all("attr")} - _WHOLE
    whole = len(numbers) == 1 and not fields and not frame.has("op:count")
    wanted: list[Wanted] = [(DOSSIER, {"incident": number}) for number in numbers]
    wanted += [(SEARCH_TOOL, {"like_incident": number}) for number in numbers if whole]
    answers = await _read(gateway, turn, wanted)
    behind = _behind(memory.results, numbers[0]) if whole else []
    if behind:
        _add(turn, answers)
        answers = await _read(gateway, turn, behind)
    _add(turn, with_not_read(answers, turn))


async def _read(gateway: ToolGateway, turn: ModelTurn, wanted: Sequence[Wanted]) -> list[ToolResultMessage]:
    """Make the calls that are offered now and only read; their answers, which belong into the history."""
    history = turn.memory.history
    offered = {tool.name for tool in turn.tools} & turn.reading - turn.refused_tools.keys()
    known = set(history.call_ids)
    calls = []
    for tool, arguments in wanted:
        if tool in offered:
            call_id = unused_id(known)
            known.add(call_id)
            calls.append(ModelToolCall(call_id, tool, arguments, msgspec.json.encode(arguments).decode()))
    if not calls:
        return []
    history.add(AssistantMessage("", tuple(calls)))
    answers = await answer_calls(gateway, turn, calls, stated=True)
    await anyio.to_thread.run_sync(lambda: turn.memory.evidence.update())
    return answers


def _add(turn: ModelTurn, answers: Sequence[ToolResultMessage]) -> None:
    for answer in answers:
        turn.memory.history.add(answer)


def _behind(results: Results, incident: str) -> list[Wanted]:
    """What lies behind a dossier: the rows of its own rules' alerts, and the cases of its accounts and hosts, closed
    ones too."""
    dossiers = (each for each in results if each.tool == DOSSIER and each.arguments.get("incident") == incident)
    rows = next((each.rows for each in dossiers), ())
    alerts = [row.cells["alert_id"] for row in rows if _has_query(row)][:MOST_ALERTS]
    named = [
        row.cells["name"]
        for kind, most in MOST_NAMED.items()
        for row in [row for row in rows if row.kind == kind and "name" in row.cells][:most]
    ]
    cases: list[Wanted] = [("query_incidents", {"entity": name, "limit": 10}) for name in named]
    return [*((EVENTS, {"alert_id": alert}) for alert in alerts), *cases]


def _has_query(row: Row) -> bool:
    """True for an alert of a rule of the workspace's own: those of other products hold no query."""
    return row.kind == "alert" and row.cells.get("product") == OWN_RULES and "alert_id" in row.cells


def with_not_read(answers: Sequence[ToolResultMessage], turn: ModelTurn) -> list[ToolResultMessage]:
    """The answers, and behind the last of them what is not read yet, each thing once in a question."""
    things = [each for each in unread(turn) if _names(each[0]) not in turn.told_unread] if answers else []
    turn.told_unread.update(_names(row) for row, _ in things)
    if not things:
        return list(answers)
    text = f"{answers[-1].text}\n(Not read so far: {told(things)}. Read of it what decides your answer.)"
    return [*answers[:-1], structs.replace(answers[-1], text=text)]


def told(things: Sequence[Unread]) -> str:
    """By the numbers of their rows. The names in them stay out of it: it is told as no data, and an attacker may have
    chosen them."""
    return ", ".join(f"{row.ref} ({tool})" for row, tool in things)


def unread(turn: ModelTurn, text: str | None = None) -> list[Unread]:
    """What this question's dossiers name, or of them and of its lists what a text names too, and nobody has looked at:
    first what most results of the conversation name."""
    results, fresh = turn.memory.results, {run.call.call_id for run in turn.runs}
    dossiers = [each for each in results if each.tool == DOSSIER]
    opened = {str(row.cells.get("number")) for each in dossiers for row in each.rows if row.kind == "incident"}
    read = {str(each.arguments.get("alert_id")) for each in results if each.tool == EVENTS}
    asked = [_values(each.arguments) for each in results if each.tool in _OF_LOGS]
    found: dict[frozenset[str], Unread] = {}
    for result in (each for each in results if each.ref in fresh):
        listed = text is not None and result.tool == "query_incidents" and len(result.rows) <= MOST_LISTED
        for row in result.rows if listed or result.tool == DOSSIER else ():
            if row.kind == "incident" and str(row.cells.get("number")) not in opened:
                found.setdefault(_names(row), (row, DOSSIER))
            elif _has_query(row) and row.cells["alert_id"] not in read:
                found.setdefault(_names(row), (row, EVENTS))
            for kind, query in _FOLLOWED if not listed else ():
                if row.kind == kind and not _is_followed(query, asked, row):
                    found.setdefault(_names(row), (row, query))
    said = "" if text is None else f" {key(text.replace('[.]', '.'))} "
    holders, ranked = turn.memory.evidence.holders, list[tuple[int, Unread]]()
    for names, thing in found.items():
        forms = [key(name) for name in names]
        if text is None or any(f" {form} " in said for form in forms):
            held = {ref.partition(".")[0] for form in forms for ref in holders(Literal(Kind.ID, form, form, 0, 0))}
            ranked.append((-len(held), thing))
    return [thing for _, thing in sorted(ranked, key=lambda each: each[0])][:MOST_TOLD]


def _is_followed(query: str, asked: Sequence[frozenset[str]], row: Row) -> bool:
    """Whether a call names the row's thing already, or this query does not tell its history."""
    if row.kind == "ip":
        with suppress(ValueError):
            address = ip_address(str(row.cells.get("name")))
            if any(address in each for each in _INSIDE) is not (query == _FOLLOWED[-1][1]):
                return True
    return any(_names(row) & said for said in asked)


def _names(row: Row) -> frozenset[str]:
    """What a call can name the row's thing by."""
    cells = (row.cells.get(column) for column in _NAMED_BY)
    return frozenset(form for cell in cells if cell for form in _forms(str(cell)))


def _values(arguments: Mapping[str, Any]) -> frozenset[str]:
    """The names that the arguments of a call hold."""
    inner = arguments.get("parameters")
    given = [*arguments.values(), *(inner.values() if isinstance(inner, Mapping) else ())]
    return frozenset(form for value in given if isinstance(value, str) for form in _forms(value))


def _forms(name: str) -> frozenset[str]:
    """A name whole, and as people shorten it; of an address the first part is no name."""
    name = name.casefold()
    short = short_name(name)
    return frozenset({name} if short.isdigit() else {name, short})
