"""Whether the query that an answer shows gives the answer's numbers and rows when it is run again.

`python -m bench reproduction --seed 7` makes up other questions; `--verbose` prints each difference. The questions come
from the product's own names: each stored query's, each tool's filters with the values that its schema allows, windows,
and the accounts, hosts and addresses of the sample workspace. They are asked offline of the running product, and so are
those of the cookbook's pages. What was measured of a seed for the first time stays in the result.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.documentation.cookbook.dialogue import WORKSPACE, Estate, pages, steps

from bench.harness import RESULTS, write
from bench.reproduction import kept_turns, run_again
from sentinel_rag.app.processes import running_zones
from sentinel_rag.contracts.tool_schemas import ALERT_STATUSES, SENTINEL_TOOLS, SEVERITIES
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._zones import AgentClient, user_session
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

SEED = 2026
QUESTIONS = 200
REPOSITORY = Path(__file__).resolve().parent.parent
WINDOWS = (
    "", "", "in the last 24 hours", "in the last 3 days", "in the last 7 days", "last 14 days", "yesterday",
    "this week", "since Monday",
)  # fmt: skip
_EXAMPLES = (
    (re.compile(r"[\w.-]+@contoso\.com|\bbob\b|svc-backup|this (?:user|account)"), "accounts"),
    (re.compile(r"\b(?:srv01|DC01|WIN10-FINANCE)\b|this (?:server|machine|device)"), "hosts"),
    (re.compile(r"\b(?:203\.0\.113|198\.51\.100)\.\d+|this IP address"), "addresses"),
)
"""What the stored queries' own example questions name, and what stands in its place here."""


class Maker:
    """Questions over what a workspace holds."""

    def __init__(self, workspace: Workspace, guide: dict[str, Any], chance: random.Random) -> None:
        self._chance = chance
        self._guide = guide
        self.names = {
            "accounts": self._column(workspace, "SigninLogs | distinct UserPrincipalName"),
            "hosts": self._column(workspace, "DeviceProcessEvents | distinct DeviceName"),
            "addresses": [*guide["attacker_addresses"], *self._column(workspace, "SigninLogs | distinct IPAddress")],
            "titles": self._column(workspace, "SecurityAlert | distinct AlertName"),
            "numbers": self._column(workspace, "SecurityIncident | distinct IncidentNumber"),
        }

    @staticmethod
    def _column(workspace: Workspace, query: str) -> list[str]:
        found: Any = workspace.query(query).to_dict()
        return sorted(str(row[0]) for row in found["rows"] if row[0])

    def questions(self) -> list[str]:
        """As many as QUESTIONS: each stored query once, and the rest in turn over the tools."""
        kinds = (self._incidents, self._alerts, self._incidents, self._alerts, self._ranking, self._trend, self._detail,
                 self._compared, self._incidents, self._alerts, self._other)  # fmt: skip
        made = dict.fromkeys(self._stored())
        turn = 0
        while len(made) < QUESTIONS:
            made[" ".join(kinds[turn % len(kinds)]().split())] = None
            turn += 1
        return list(made)

    def _stored(self) -> Iterator[str]:
        for template in load_templates().values():
            text = self._chance.choice(template.questions).rstrip("?.")
            for pattern, names in _EXAMPLES:
                if pattern.search(text):
                    text = pattern.sub(self._chance.choice(self.names[names]), text)
            window = "" if "last" in text else self._window()
            yield f"{text} {window}".strip()

    def _window(self) -> str:
        return self._chance.choice(WINDOWS)

    def _maybe(self, *values: str) -> str:
        return self._chance.choice((*values, "", ""))

    def _asked(self, what: str) -> str:
        return self._chance.choice((f"show {what}", f"how many {what} are there", f"list the {what}", what))

    def _incidents(self) -> str:
        severity = self._maybe(*(each.lower() + " severity" for each in SEVERITIES))
        status = self._maybe("open", "closed", "new", "active", "unassigned")
        about = self._maybe(
            f"with {self._chance.choice(self.names['accounts'])}",
            f"about {self._chance.choice(self.names['hosts'])}",
            "closed as false positive",
            f"named {self._chance.choice(self.names['titles'])}",
        )
        return f"{self._asked(f'{severity} {status} incidents {about}')} {self._window()}"

    def _alerts(self) -> str:
        severity = self._maybe(*(each.lower() + " severity" for each in SEVERITIES))
        status = self._maybe(*(each.lower() for each in ALERT_STATUSES if each != "InProgress"))
        about = self._maybe(
            f"of {self._chance.choice(self.names['accounts'])}",
            f"on {self._chance.choice(self.names['hosts'])}",
            f"naming {self._chance.choice(self.names['addresses'])}",
            f"of incident {self._chance.choice(self.names['numbers'])}",
            f"named {self._chance.choice(self.names['titles'])}",
        )
        return f"{self._asked(f'{severity} {status} alerts {about}')} {self._window()}"

    def _ranking(self) -> str:
        parameters: Any = next(tool.parameters for tool in SENTINEL_TOOLS if tool.name == "get_top_entities")
        kinds = [kind for kind in parameters["properties"]["kind"]["enum"] if "-" not in kind]
        of = self._maybe("of open incidents", "in high severity alerts", "of closed incidents")
        return f"top {self._chance.choice(kinds)}s by alerts {of} {self._window()}"

    def _trend(self) -> str:
        severity = self._maybe("high severity", "medium severity", "low severity")
        return f"{severity} alerts per {self._chance.choice(('day', 'hour', 'week'))} {self._window()}"

    def _detail(self) -> str:
        number = self._chance.choice(self.names["numbers"])
        asked = ("what is incident {} about", "which accounts are involved in incident {}", "timeline of incident {}")
        return self._chance.choice(asked).format(number)

    def _compared(self) -> str:
        return self._chance.choice(
            (
                f"which incidents have more than {self._chance.randint(1, 4)} alerts {self._window()}",
                f"how many {self._chance.choice(('open', 'closed'))} incidents per owner {self._window()}",
                f"what share of the incidents {self._window()} is {self._chance.choice(SEVERITIES).lower()} severity",
                "how many more alerts this week than last week",
                f"alerts of {self._chance.choice(self.names['hosts'])} grouped by severity",
            )
        )

    def _other(self) -> str:
        return self._chance.choice(
            (
                f"what happened {self._window()}",
                "what data do you have",
                f"search the logs for {self._chance.choice(self.names['addresses'])} {self._window()}",
                f"what do you know about {self._chance.choice(self.names['accounts'])}",
                f"what do you know about {self._chance.choice(self.names['hosts'])}",
            )
        )


def measure_generated(folder: Path, seed: int, listed: bool) -> dict[str, Any]:
    """The generated questions over a sample workspace that ends now, each in a conversation of its own."""
    os.environ["SENTINEL_HOME"] = str(folder / "home")
    settings = load_settings()
    store = settings.home / "workspaces" / "sample"
    workspace = Workspace.open(store)
    guide = workspace.generate(EstateOptions()).to_dict()
    asked = Maker(workspace, guide, random.Random(seed)).questions()
    workspace.close()
    outcomes: Counter[str] = Counter()
    with running_zones(settings, workspace="sample", private=False) as zones:
        for question in asked:
            answer = AgentClient(zones.state, user_session(zones.state, settings)).ask(question, lambda _: None)
            outcomes[answer.outcome.value] += 1
            if listed:
                print(f"{answer.outcome.value:14} {question}  ->  {answer.text.splitlines()[0][:100]}", flush=True)
    return {"questions": len(asked), "outcomes": dict(outcomes), **compared(settings.home, "sample")}


def measure_cookbook(folder: Path) -> dict[str, Any]:
    """The questions of the cookbook's pages, each page one conversation."""
    asked = 0
    with Estate.running(folder) as estate:
        for page in pages(REPOSITORY):
            written = steps(page.read_text())
            estate.run(written)
            asked += len(written)
    return {"steps": asked, **compared(folder / "home", WORKSPACE)}


def compared(home: Path, name: str) -> dict[str, Any]:
    """What a stopped home's answers say against what their queries give."""
    workspace = Workspace.open(home / "workspaces" / name)
    try:
        return run_again(kept_turns(home), workspace).to_dict()
    finally:
        workspace.close()


def first_sight(part: str, measured: dict[str, Any]) -> dict[str, Any]:
    """The earliest figures of `part` that the result file holds; `measured` where there are none."""
    file = RESULTS / "reproduction.json"
    kept = json.loads(file.read_text())["measured"].get("first_sight", {}) if file.exists() else {}
    figures = {name: measured[name] for name in ("questions", "outcomes", "calls", "numbers_in_answers")}
    return {**kept, part: kept.get(part, {"measured_at": datetime.now(UTC).isoformat(timespec="seconds"), **figures})}


def _again(measured: dict[str, Any]) -> int:
    return int(measured["calls"]["found again"]) + _differing(measured)


def _differing(measured: dict[str, Any]) -> int:
    return int(measured["calls"].get("differs", 0))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench reproduction", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--verbose", action="store_true", help="print each question and each difference")
    parser.add_argument("--no-cookbook", action="store_true", help="only the generated ones; writes no result")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        generated = measure_generated(Path(folder), options.seed, options.verbose)
    if options.verbose:
        for each in generated["differences"]:
            print(json.dumps(each, ensure_ascii=False))
    if options.no_cookbook:
        print(json.dumps({name: value for name, value in generated.items() if name != "differences"}, indent=1))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cookbook = measure_cookbook(Path(folder))
    parts = (generated, cookbook)
    seen = first_sight(f"seed {options.seed}", generated)
    write(
        "reproduction",
        {"seed": options.seed, "generated": generated, "cookbook": cookbook, "first_sight": seen},
        claim="The query shown gives the number and the rows that the answer says.",
        group="correctness",
        figures={
            "questions made up": generated["questions"],
            "queries of their answers that were run again": _again(generated),
            "that gave another number or other rows": _differing(generated),
            "at first sight, before anything was mended": _differing(seen[f"seed {options.seed}"]),
            "queries of the cookbook's answers that were run again": _again(cookbook),
            "that gave another number or other rows (cookbook)": _differing(cookbook),
            "numbers in all these answers": sum(sum(each["numbers_in_answers"].values()) for each in parts),
            "that the query shown beside them gives": sum(each["numbers_in_answers"]["found again"] for each in parts),
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
