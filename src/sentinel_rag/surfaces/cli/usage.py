"""`sentinel usage`, and `/cost` of a chat: what questions took in tokens, and in money where a model has a price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sentinel_rag.app.conversations import kept_conversations
from sentinel_rag.app.places import database_configuration, people_database, people_folder, record_file, record_schema
from sentinel_rag.contracts.conversations import QuestionCost, total_cost
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.rendering.visible import safe_cell

COLUMNS = ("questions", "model requests", "tokens in", "tokens out", "cost", "helped", "did not")
HERE = "this machine's terminal"
"""Who asked where nobody signed in."""


def run(*, days: int, by: str, as_json: bool) -> int:
    """Print what the questions of the last days took; 3 if there were none."""
    settings, now = load_settings(), utc_now()
    costs = _costs(settings, format_time(now - timedelta(days=days)), format_time(now))
    groups: defaultdict[str, list[QuestionCost]] = defaultdict(list)
    for number, each in enumerate(costs):
        day, minute = each.asked_at[:10], each.asked_at[:16].replace("T", " ")
        groups[{"day": day, "person": each.person, "question": f"{number} {minute} {each.question}"}[by]].append(each)
    if as_json:
        told = [
            {by: each[0].question, "asked_at": each[0].asked_at, "person": each[0].person, **total_cost(each)}
            if by == "question"
            else {by: name, **total_cost(each)}
            for name, each in groups.items()
        ]
        print_json({"days": days, "total": total_cost(costs), "by": told})
    elif costs:
        names = [name.partition(" ")[2] if by == "question" else name for name in groups]
        rows = list(zip(map(safe_cell, names), groups.values(), strict=True))
        rows += [("all", costs)] if len(rows) > 1 else []
        cells = [(name, *_cells(total_cost(each))) for name, each in rows]
        heads = {"day": "day (UTC)", "person": "person", "question": "question, asked (UTC)"}
        print_table((heads[by], *COLUMNS), cells)
    else:
        print(f"Nothing was asked in the last {days} days, or it is not kept.")
    return 0 if costs else 3


def print_conversation(settings: Settings, session_id: str, last: Mapping[str, Any] | None) -> None:
    """Print what the last answer took (`last` is what it tells of models), and its conversation."""
    try:
        with closing(kept_conversations(settings)) as store:
            asked = [each for each in store.costs("", "9") if each.session_id == session_id]
    except UsageError:  # nothing is kept, and the answer knows its own
        asked = []
    answer = QuestionCost("", session_id, "", last)
    rows = [("the last answer", [answer]), *([("this conversation", asked)] if asked else [])]
    print_table(("", *COLUMNS[:5]), [(name, *_cells(total_cost(each))[:5]) for name, each in rows])


def _costs(settings: Settings, since: str, until: str) -> list[QuestionCost]:
    """Those of people at the page with their names, then those of the terminal, in the order of their times."""
    of_people = _of_people(settings, since, until)
    sessions = {each.session_id for each in of_people}
    with closing(kept_conversations(settings)) as store:
        here = [each for each in store.costs(since, until) if each.session_id not in sessions]
    return sorted((*of_people, *(replace(each, person=HERE) for each in here)), key=lambda each: each.asked_at)


def _of_people(settings: Settings, since: str, until: str) -> list[QuestionCost]:
    from sentinel_rag.surfaces.users import UserStore
    from sentinel_rag.surfaces.users.store import MIGRATIONS as PEOPLE_TABLES
    from sentinel_rag.surfaces.web.turns.record import MIGRATIONS, ConversationRecord

    database, file = people_database(database_configuration(settings)), record_file(settings.home)
    if database is None and not file.exists():
        return []
    turns = record_schema(database, "turns", MIGRATIONS, what="The record of conversations")
    people = record_schema(database, "people", PEOPLE_TABLES, what="The accounts")
    record = ConversationRecord(file, clock=utc_now, keep_days=settings.chat_keep_days, records=turns, serves=False)
    with closing(record), closing(UserStore(people_folder(settings.home), clock=utc_now, records=people)) as accounts:
        names = {each.user_id: each.name for each in accounts.list()}
        return [replace(each, person=names.get(each.person, each.person)) for each in record.costs(since, until)]


def _cells(told: Mapping[str, Any]) -> tuple[str, ...]:
    money = f"{float(told['cost_usd']):.4f} USD"
    cost = "none" if not told["requests"] else "not known" if told["unpriced"] else money
    counts = (f"{told[name]:,}" for name in ("questions", "requests", "input_tokens", "output_tokens"))
    return (*counts, cost, str(told["helped"]), str(told["not_helped"]))
