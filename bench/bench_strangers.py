"""How a set of questions is planned that nobody here had seen: `python -m bench strangers FILE [--ask] [--verbose]`.

FILE is YAML in the form of `bench/questions`, or JSON lines; each item has `q`, what came `after`, and what is right:
`tool` with `args`, `any_of`, or an `outcome`; `ask_ok` where a question back is right too. The world is the small
estate and its clock, unless the file (its first line, in JSON lines) tells `now` and `names` (accounts, hosts).
`templates: shipped` takes the stored queries that ship. A file of `dialogues` holds turns instead, each with what is
said and the calls that are right, `call` ("tool name=value", a list for any of them), `asks` or the kind of decision
that it `says`; a first turn opens and is not judged. The planner alone is asked; `--ask` asks the whole analyst.
What counts is the first run of a set: each run is a line of `results/strangers_history.jsonl`, so that a second one is
seen as such.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import alert_id
from tests.support.small_estate_templates import TEMPLATES

from bench.bench_offline_accuracy import ask as ask_analyst
from bench.bench_offline_accuracy import expected_calls, judge, normal, same
from sentinel_rag.agent.planner import Decision, DecisionKind, Planner, StoredQueries, Talk, View
from sentinel_rag.agent.things import inner_items, row_items
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME
from sentinel_rag.language.frames import Reader, WorkspaceNames
from sentinel_rag.language.times import Now, read_time_in_its_zone
from sentinel_rag.sentinel.templates.template_registry import load_templates

HISTORY = Path(__file__).parent / "results" / "strangers_history.jsonl"
_OUTCOMES = {
    DecisionKind.ASK: Outcome.CLARIFICATION,
    DecisionKind.OUT_OF_SCOPE: Outcome.OUT_OF_SCOPE,
    DecisionKind.CHANGE: Outcome.OUT_OF_SCOPE,
}
_LISTING = ("query_incidents", "query_alerts", "get_top_entities", "get_threat_summary")
_BOOLEANS = {"true": True, "false": False}
_OF_QUERIES = TOOLS_BY_NAME["run_kql_query"].parameter_schemas().keys()
"""What a call of a stored query takes itself; every other name is a parameter of the query."""
_FIGURES = ("right", "right_tool", "confidently_wrong", "needlessly_asked")
_TEXTS = {
    DecisionKind.CHANGE: "I can only read",
    DecisionKind.HELP: "I read Microsoft Sentinel",
    DecisionKind.SAMPLE: "context poisoning",
}


@cache
def _stored_queries(shipped: bool) -> StoredQueries:
    """The stored queries that ship, or the small estate's; read without names and at any time, as the product does."""
    queries = [template.to_row() for template in load_templates().values()] if shipped else TEMPLATES
    clock = Now(NOW, UTC)
    return StoredQueries(queries, Reader(lambda text: read_time_in_its_zone(text, clock)))


class World:
    """A workspace to plan for: its names, clock and stored queries; the small estate's rows for what points at them."""

    def __init__(self, told: dict[str, Any]) -> None:
        estate = small_estate()
        self.answers = {} if "names" in told else estate.answers
        self.now = datetime.fromisoformat(str(told["now"])) if "now" in told else NOW
        names = told.get("names") or {
            kind: [str(row["name"]) for row in estate.answers["get_top_entities"]({"kind": kind, "limit": 100}).rows]
            for kind in ("account", "host")
        }
        clock = Now(self.now, UTC)
        reader = Reader(lambda text: read_time_in_its_zone(text, clock), WorkspaceNames.of(names))
        shipped = told.get("templates") == "shipped" or "names" in told
        self.reader = reader
        self.planner = Planner(_stored_queries(shipped), reader.names)

    def rows(self, decision: Decision) -> list[Any]:
        """What the first call of a decision comes back with."""
        if not decision.calls:
            return []
        answer = self.answers.get(decision.calls[0].tool)
        return list(answer(dict(decision.calls[0].arguments)).rows) if callable(answer) else []

    def decide(self, text: str, talk: Talk) -> Decision:
        """What becomes of one sentence of a conversation."""
        decision = talk.decide(self.planner, self.reader, text, self.now)
        rows = self.rows(decision)
        made = decision.calls[0] if decision.calls else None
        lists = made is not None and made.tool in _LISTING and not decision.frame.has("op:count")
        items = row_items(made.tool, made.arguments, rows) if made is not None and lists else ()
        offset = int(str(made.arguments.get("offset", 0))) if made is not None else 0
        known = bool(rows) or made is None or made.tool == "get_incident_detail" or not self.answers
        talk.remember(decision, items, first=offset, told=tuple(inner_items(rows)) if not items else (), found=known)
        return decision


def answered(decision: Decision) -> tuple[Any, list[Any]]:
    """A decision in the form that the judge of answers reads."""
    answer = SimpleNamespace(
        outcome=_OUTCOMES.get(decision.kind, Outcome.ANSWERED),
        text=_TEXTS.get(decision.kind, "") + decision.sentence,
    )
    calls = [SimpleNamespace(tool_name=call.tool, arguments=call.arguments) for call in decision.calls]
    return answer, calls if decision.kind in (DecisionKind.CALL, DecisionKind.SAMPLE) else []


def loaded(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The questions of a file, and what it tells of its world."""
    if path.suffix != ".jsonl":
        document = yaml.safe_load(path.read_text())
        return document["questions"], document
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    told = lines.pop(0) if "q" not in lines[0] else {"templates": "shipped"}
    return lines, told


def call_of(text: str) -> tuple[str, dict[str, Any]]:
    """A call as a dialogue writes it: "query_alerts incident=12 limit=3"; "a7" is an alert of the small estate, and a
    parameter of a stored query may stand with or without "parameters." before its name."""
    tool, *pairs = shlex.split(text)
    told: dict[str, Any] = {}
    for name, _, value in (pair.partition("=") for pair in pairs):
        read: Any = int(value) if name in ("limit", "offset") else _BOOLEANS.get(value, value)
        if re.fullmatch(r"a\d", value):
            read = alert_id(value)
        if name.startswith("parameters.") or (tool == "run_kql_query" and name not in _OF_QUERIES):
            told.setdefault("parameters", {})[name.removeprefix("parameters.")] = read
        else:
            told[name] = read
    return tool, told


def same_call(wanted: tuple[str, dict[str, Any]], tool: str, made: Mapping[str, Any]) -> bool:
    """Whether a call is the one that is wanted; the number of an incident only where it is told."""
    name, told = wanted
    got = {key: value for key, value in made.items() if key in told or key != "incident_number"}
    if "parameters" in got:  # a dialogue writes the number of a parameter as it writes its words
        got["parameters"] = {
            key: value if isinstance(value, bool) else str(value) for key, value in got["parameters"].items()
        }
    return name == tool and same(normal(tool, told), normal(tool, got))


def verdict(turn: Mapping[str, Any], decision: Decision) -> str:
    """`right`, `asked` where a call was wanted, or `wrong`, which is something else said with certainty."""
    asked = decision.kind is DecisionKind.ASK
    if asked and (turn.get("asks") or turn.get("or_asks")):
        return "right"
    if asked:
        return "asked"
    if "says" in turn:  # sets of questions call an order "guard"
        return "right" if decision.kind == {"guard": DecisionKind.CHANGE}.get(turn["says"], turn["says"]) else "wrong"
    # All that is recorded of a thing begins with the call that is judged, as each answer of the whole analyst does.
    calls = decision.calls[:1] if decision.view is View.PROFILE else decision.calls
    options = turn.get("call", [])
    for option in [options] if isinstance(options, str) else options:
        wanted = [call_of(each) for each in option.split(" + ")]
        if len(wanted) == len(calls) and all(
            same_call(each, call.tool, call.arguments) for each, call in zip(wanted, calls, strict=True)
        ):
            return "right"
    return "wrong"


def measure_dialogues(document: dict[str, Any], *, verbose: bool) -> dict[str, Any]:
    """How the follow-ups of conversations are bound."""
    world = World(document)
    count: Counter[str] = Counter()
    for dialogue in document["dialogues"]:
        talk = Talk()
        for place, turn in enumerate(dialogue["turns"]):
            decision = world.decide(turn["say"], talk)
            if place == 0 and not {"call", "asks", "says"} & set(turn):
                continue
            judged = verdict(turn, decision)
            count[judged] += 1
            if verbose and judged != "right":
                made = [f"{call.tool} {dict(call.arguments)}" for call in decision.calls]
                print(f"{judged.upper()} {dialogue['name']}: {turn['say']!r}\n   want {turn.get('call', 'a question')}")
                print(f"   got  {decision.kind.value} {made} {decision.row} {decision.sentence}")
    total = sum(count.values())
    return {
        "follow_ups": total,
        "right": round(count["right"] / total, 3),
        "asked": round(count["asked"] / total, 3),
        "wrong": round(count["wrong"] / total, 3),
    }


def measure(path: Path, *, analyst: bool, verbose: bool) -> dict[str, Any]:
    """The figures of one set."""
    if path.suffix == ".yaml" and "dialogues" in (document := yaml.safe_load(path.read_text())):
        return measure_dialogues(document, verbose=verbose)
    items, told = loaded(path)
    world = World(told)
    count: Counter[str] = Counter()
    spent: list[float] = []
    for item in items:
        if analyst:
            answer, calls = asyncio.run(ask_analyst(item, shipped=told.get("templates") == "shipped"))
            why = answer.text[:100]
        else:
            talk = Talk()
            for before in item.get("after", ()):
                world.decide(before, talk)
            start = time.perf_counter()
            decision = world.decide(item["q"], talk)
            spent.append((time.perf_counter() - start) * 1e3)
            answer, calls = answered(decision)
            why = f"{decision.row}: {decision.sentence}"
        tool, exact = judge(item, answer, calls, world.now)
        asked = answer.outcome is Outcome.CLARIFICATION
        refused = answer.outcome is Outcome.OUT_OF_SCOPE
        count["right_tool"] += tool
        count["right"] += exact
        count["needlessly_asked"] += asked and not exact
        count["confidently_wrong"] += not exact and not asked and not refused
        if verbose and not exact:
            made = [(call.tool_name, dict(call.arguments)) for call in calls]
            mark = "ASKED" if asked else "WRONG"
            want = expected_calls(item, world.now) or item.get("outcome")
            print(f"{mark} {item.get('after', '')} {item['q']!r}\n   want {want}")
            print(f"   got  {made} {answer.outcome.value} {why}")
    total = len(items)
    spent.sort()
    return {
        "questions": total,
        **{
            name: round(count[name] / total, 3)
            for name in ("right", "right_tool", "confidently_wrong", "needlessly_asked")
        },
        **({"ms_median": round(spent[total // 2], 2), "ms_95": round(spent[int(total * 0.95)], 2)} if spent else {}),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench strangers", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--ask", action="store_true", help="ask the whole analyst")
    parser.add_argument("--verbose", action="store_true", help="list what was not right")
    parser.add_argument("--no-history", action="store_true", help="keep no line of the run")
    options = parser.parse_args()
    if not options.files:
        print("bench strangers: name a file of questions", file=sys.stderr)
        return 0
    for path in options.files:
        figures = measure(path, analyst=options.ask, verbose=options.verbose)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        known = HISTORY.read_text().splitlines() if HISTORY.exists() else []
        run = 1 + sum(json.loads(line)["set"] == digest for line in known)
        line = {
            "file": path.name,
            "set": digest,
            "run": run,
            "asked": "analyst" if options.ask else "planner",
            **figures,
        }
        print(json.dumps(line))
        if not options.no_history:
            HISTORY.write_text("\n".join([*known, json.dumps(line)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
