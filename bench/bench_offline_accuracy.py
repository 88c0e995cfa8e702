"""How often the offline analyst plans the right call, on questions it was not tuned on.

Each question of `questions/heldout.yaml` is asked of a small scripted estate at a fixed time; what counts is the calls
that reached the gateway and the outcome. `questions/development.yaml` was used while building and is told beside it.
The gateway offers the tools of files and of the web as well, so a workspace question that strays there is wrong. No
network, no model, no clock. A set with `templates: shipped` is asked with the templates that ship, the others with the
few of the small estate. `confidently_wrong` counts answers that are neither right nor a question back nor a refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from tests.support.small_estate import NOW, small_estate

from bench.harness import write
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.agent.offline.questions import ALL_TEMPLATES
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import DocumentResult, ToolCall
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT, SENTINEL_TOOLS, SEVERITIES
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.scripted_gateway import rows_result

QUESTIONS = Path(__file__).parent / "questions"
_DEFAULTS: dict[str, Mapping[str, Any]] = {
    tool.name: {
        name: schema["default"]
        for name, schema in tool.parameter_schemas().items()
        if isinstance(schema, dict) and "default" in schema
    }
    for tool in SHIPPED_TOOLS
} | {"list_kql_templates": ALL_TEMPLATES}
_ELSEWHERE = {tool.name: DocumentResult({}) for tool in SHIPPED_TOOLS if tool not in SENTINEL_TOOLS}
_SHIPPED_TEMPLATES = tuple(template.to_row() for template in load_templates().values())
_SAYS_WHY = (Outcome.CLARIFICATION, Outcome.OUT_OF_SCOPE)
_OUTCOMES = frozenset({None, "clarification", "said_why", "out_of_scope", "guard", "help", "sample_data", "small_talk"})
_FIXED = {"guard": "I can only read", "help": "I read Microsoft Sentinel", "sample_data": "context poisoning"}


def normal(tool: str, arguments: dict[str, Any], now: datetime = NOW) -> dict[str, Any]:
    """Arguments without defaults; names short and without case; the top severity as a threshold is that severity.

    The most rows are the same list as by default: strangers who asked for "all" expected the one or the other. Times
    stand in one spelling: a window as its start, an end that is not past as none.
    """
    kept = {name: value for name, value in arguments.items() if _DEFAULTS[tool].get(name) != value}
    if kept.get("limit") == MAX_LIMIT:
        del kept["limit"]
    if kept.get("min_severity") == SEVERITIES[-1]:
        kept["severity"] = kept.pop("min_severity")
    if tool == "search_knowledge_base":
        # Which words are searched by is the analyst's own choice; which documents, and like which incident, is judged.
        kept = {name: "" if name == "query" else value for name, value in kept.items() if name != "limit"}
        if "like_incident" in kept:
            kept.pop("collection", None)
    if isinstance(parameters := kept.pop("parameters", None), dict) and parameters:
        kept["parameters"] = {name: _plain(value, now) for name, value in parameters.items()}
    if (hours := window_hours(str(kept.get("time_window", "")))) is not None:
        del kept["time_window"]
        kept["start_time"] = (now - timedelta(hours=hours)).isoformat()
    told = {name: _plain(value, now) for name, value in kept.items()}
    if isinstance(end := told.get("end_time"), datetime) and end >= now:
        del told["end_time"]
    # Newest first is how lists come anyway.
    return {name: value for name, value in told.items() if (name, value) != ("order", "newest")}


def _plain(value: Any, now: datetime) -> Any:
    """One value as it is compared: a moment, a name without its domain, a number as its digits, or itself."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return value
    if re.match(r"\d{4}-\d\d-\d\d", value):
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    local, at, _ = value.lower().partition("@")
    return (local if at and local else value.lower()).removesuffix(".contoso.example")


_WINDOW = re.compile(r"last_(\d+)([hd])|pt(\d+)h|p(\d+)d", re.IGNORECASE)


def window_hours(text: str) -> int | None:
    """The hours of `last_7d`, `last_12h`, `PT4H` or `P2D`; None for any other text."""
    if (found := _WINDOW.fullmatch(text)) is None:
        return None
    of_last, unit, hours, days = found.groups()
    return int(of_last or hours or days) * (24 if unit in ("d", "D") or days else 1)


def expected_calls(item: dict[str, Any], now: datetime = NOW) -> list[tuple[str, dict[str, Any]]]:
    options = item.get("any_of") or ([item] if "tool" in item else [])
    return [(option["tool"], normal(option["tool"], option.get("args", {}), now)) for option in options]


def same(wanted: dict[str, Any], made: dict[str, Any]) -> bool:
    """Whether two normal forms are one call; the kind of a name counts only where it is wanted."""
    return wanted == {name: value for name, value in made.items() if name in wanted or name != "entity_kind"}


def auxiliary(call: ToolCall) -> bool:
    """Calls that answer nothing by themselves: the directory of names and the list of templates."""
    return (
        call.tool_name == "get_top_entities" and call.arguments == {"kind": call.arguments["kind"], "limit": 100}
    ) or (call.tool_name == "list_kql_templates")


async def ask(item: dict[str, Any], *, shipped: bool = False) -> tuple[Answer, list[ToolCall]]:
    gateway = small_estate()
    gateway.answers.update(_ELSEWHERE)
    if shipped:
        gateway.answers["list_kql_templates"] = lambda _: rows_result(_SHIPPED_TEMPLATES, table="", time_column="")
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    for before in item.get("after", ()):
        await analyst.answer(Question(before, "s"))
    gateway.calls.clear()
    return await analyst.answer(Question(item["q"], "s")), list(gateway.calls)


def judge(item: dict[str, Any], answer: Answer, calls: list[ToolCall], now: datetime = NOW) -> tuple[bool, bool]:
    """(right tool or outcome, also every argument exact). `ask_ok`: to ask back is right too; `said_why`: only a
    sentence is."""
    expected = expected_calls(item, now)
    wants = item.get("outcome")
    if wants not in _OUTCOMES or not (wants or expected):
        raise ValueError(f"{item.get('q')!r} says nothing that can be judged: outcome {wants!r}, no call")
    if item.get("ask_ok") and answer.outcome is Outcome.CLARIFICATION:
        return True, True
    if wants == "said_why":
        return answer.outcome in _SAYS_WHY, answer.outcome in _SAYS_WHY
    wants_templates = any(tool == "list_kql_templates" for tool, _ in expected)
    made = [call for call in calls if wants_templates or not auxiliary(call)]
    if wants == "clarification" and answer.outcome is not Outcome.CLARIFICATION:
        return False, False
    if wants == "out_of_scope" and (answer.outcome is not Outcome.OUT_OF_SCOPE or _FIXED["guard"] in answer.text):
        return False, False
    if wants in _FIXED and _FIXED[wants] not in answer.text:
        return False, False
    if wants == "guard" and answer.outcome is not Outcome.OUT_OF_SCOPE:
        return False, False
    if wants in ("guard", "out_of_scope", "help", "small_talk"):
        return not made, not made
    if not expected:
        return True, True
    if wants is None and answer.outcome is Outcome.CLARIFICATION:
        return False, False
    if not made:
        return False, False
    tool, arguments = made[0].tool_name, normal(made[0].tool_name, dict(made[0].arguments), now)
    options = [wanted for name, wanted in expected if name == tool]
    return bool(options), any(same(wanted, arguments) for wanted in options)


def measure(path: Path, *, verbose: bool) -> dict[str, Any]:
    document = yaml.safe_load(path.read_text())
    items = document["questions"]
    tools = exact = asked_back = rightly = wanted = found = wrongly_sure = 0
    wrong: Counter[str] = Counter()
    for item in items:
        answer, calls = asyncio.run(ask(item, shipped=document.get("templates") == "shipped"))
        tool_right, all_right = judge(item, answer, calls)
        wrongly_sure += not all_right and answer.outcome not in _SAYS_WHY
        tools += tool_right
        exact += all_right
        may_ask = item.get("outcome") in ("clarification", "said_why") or bool(item.get("ask_ok"))
        wanted += item.get("outcome") == "clarification"
        if answer.outcome is Outcome.CLARIFICATION:
            asked_back += 1
            rightly += may_ask
            found += item.get("outcome") == "clarification"
        if not all_right:
            wrong[item.get("tool") or item.get("outcome") or item["any_of"][0]["tool"]] += 1
            if verbose:
                made = [(call.tool_name, dict(call.arguments)) for call in calls]
                want = expected_calls(item) or item.get("outcome")
                print(
                    f"{'ARGS' if tool_right else 'TOOL'} {item['q']!r}\n     want {want}\n"
                    f"     got  {made} {answer.outcome.value}: {answer.text[:110]!r}"
                )
    return {
        "questions": len(items),
        "tool_or_outcome_right": round(tools / len(items), 3),
        "all_arguments_exact": round(exact / len(items), 3),
        "asked_back": asked_back,
        "clarification_precision": round(rightly / asked_back, 3) if asked_back else None,
        "clarification_recall": round(found / wanted, 3) if wanted else None,
        "confidently_wrong": wrongly_sure,
        "wrong_by_expectation": dict(wrong.most_common()),
        "first_measured": document.get("first_measured"),
        **({"after_the_round": document["after_the_round"]} if "after_the_round" in document else {}),
    }


_USED_WHILE_BUILDING = ("development", "triage")
_SETS = (
    "heldout",
    "heldout_late",
    "heldout_final",
    "heldout_round2",
    "heldout_round2_final",
    "heldout_hunting",
    "heldout_manager",
    *_USED_WHILE_BUILDING,
)


def main() -> None:
    verbose = "--verbose" in sys.argv
    measured = {}
    for name in _SETS:
        # The held-apart questions are never listed, so that nobody tunes on them by accident.
        measured[name] = measure(QUESTIONS / f"{name}.yaml", verbose=verbose and name in _USED_WHILE_BUILDING)
    write("offline_accuracy", measured, claim="The offline analyst plans the right call on questions held apart.")


if __name__ == "__main__":
    main()
