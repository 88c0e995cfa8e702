"""Whether references in dialogues resolve to the right thing: 200 scripted dialogues with the offline analyst.

Hand-written dialogues and generated ones (a seed is a parameter: `python -m bench dialogues --seed 7`), with the
wordings that were held apart told apart. Every reference is right, asked back, or wrong; asking back where a careful
person would know is a miss and is reported as such.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import yaml

from bench.dialogues.judging import Thing, judge
from bench.dialogues.people import Person, Said, wordings
from bench.dialogues.screen import Screen
from bench.harness import write
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.testing.scripted_gateway import ScriptedGateway
from sentinel_rag.testing.small_estate import NOW, alert_id, small_estate

DIALOGUES = Path(__file__).parent / "dialogues"
SEED = 2024
GENERATED = 100
"""For each of the two sets of wordings."""


class Session:
    """One conversation with the analyst: questions, /clear, and /resume into a new analyst."""

    def __init__(self) -> None:
        self.gateway: ScriptedGateway = small_estate()
        self._analyst = self._new()

    def _new(self) -> OfflineAnalyst:
        return OfflineAnalyst(self.gateway, clock=lambda: NOW)

    async def say(self, words: str) -> Answer | None:
        """The answer; None for a command."""
        self.gateway.calls.clear()
        if words == "/clear":
            self._analyst.clear("s", ())
            return None
        if words == "/resume":
            remembered = self._analyst.remembered("s")
            self._analyst = self._new()
            if remembered is not None:
                self._analyst.recall("s", remembered)
            return None
        return await self._analyst.answer(words, session_id="s")


async def alerts_of_the_estate() -> dict[tuple[str, str], Thing]:
    """(time, name) as an answer shows them -> the alert, where that is one."""
    answer: Any = small_estate().answers["query_alerts"]
    found: dict[tuple[str, str], Thing] = {}
    for row in answer({"limit": 100}).rows:
        shown = (str(row["time"]).replace("T", " ").replace("Z", " UTC"), str(row["name"]))
        found[shown] = Thing("alert", str(row["alert_id"]), str(row["incident_number"]))
    return found


def meant_by(written: Any, incidents: dict[str, str]) -> list[Thing]:
    """Things of a hand-written dialogue: `incident 31`, `alert a3`, `account m.keller`."""
    found = []
    for each in written if isinstance(written, list) else [written]:
        kind, _, value = each.partition(" ")
        if kind == "alert":
            found.append(Thing("alert", alert_id(value), incidents[alert_id(value)]))
        else:
            found.append(Thing(kind, value))
    return found


class Tally:
    """Verdicts by kind of reference."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.verdicts: dict[str, Counter[str]] = defaultdict(Counter)
        self._verbose = verbose

    def count(self, kind: str, verdict: str, wanted: str, dialogue: str, words: str, answer: Answer) -> None:
        self.verdicts[kind][verdict] += 1
        if self._verbose and verdict in ("wrong", "missed"):
            print(
                f"{verdict.upper()} {kind} {dialogue}: {words!r} means {wanted}; {answer.footnote} {answer.text[:99]!r}"
            )

    def report(self) -> dict[str, Any]:
        total: Counter[str] = Counter()
        for verdicts in self.verdicts.values():
            total += verdicts
        known = total["right"] + total["missed"] + total["wrong"]
        return {
            "references": sum(total.values()) - total["untouched"],
            "resolved_right": total["right"],
            "rightly_asked_back": total["rightly asked"],
            "asked_back_though_clear": total["missed"],
            "wrong": total["wrong"],
            "resolved_where_a_careful_person_knows": round(total["right"] / known, 4) if known else None,
            "words_that_point_at_nothing_left_alone": total["untouched"],
            "by_kind": {kind: dict(verdicts) for kind, verdicts in sorted(self.verdicts.items())},
        }


def verdict_on(said: Said, answer: Answer, session: Session) -> str:
    """`missed` is a question back where the meaning is clear."""
    outcome = judge(said.meant, answer, session.gateway.calls)
    if said.to_be_asked:
        asked = judge([Thing("nothing", "")], answer, session.gateway.calls) == "asked"
        return "rightly asked" if asked else "right" if said.meant and outcome == "right" else "wrong"
    if not said.meant:
        return "untouched" if outcome == "right" else "wrong"
    if outcome == "asked":
        return "rightly asked" if said.may_be_asked else "missed"
    return outcome


def dialogues_of(path: Path) -> list[dict[str, Any]]:
    """The dialogues of one file."""
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text())["dialogues"]
    return found


async def run_written(path: Path, tally: Tally) -> int:
    """The hand-written dialogues of one file; how many turns they have."""
    alerts = await alerts_of_the_estate()
    incidents = {thing.value: thing.incident for thing in alerts.values()}
    turns = 0
    for dialogue in dialogues_of(path):
        session = Session()
        for turn in dialogue["turns"]:
            turns += 1
            answer = await session.say(turn["say"])
            if answer is None:
                continue
            means = turn.get("means")
            said = Said(
                turn["say"],
                meant_by(means, incidents) if means and means != "ask" else [],
                to_be_asked=means == "ask",
                may_be_asked=bool(turn.get("or_ask")),
            )
            verdict = verdict_on(said, answer, session)
            tally.count("written", verdict, str(means), dialogue["name"], turn["say"], answer)
    return turns


async def run_generated(part: str, seed: int, dialogues: int, tally: Tally) -> int:
    """Dialogues that a person who reads the screen makes up, with the wordings of `part`."""
    alerts = await alerts_of_the_estate()
    turns = 0
    for place in range(dialogues):
        chance = random.Random(f"{seed}/{part}/{place}")
        session = Session()
        person = Person(chance, Screen(alerts), wordings(DIALOGUES / "wordings.yaml", part))
        for _ in range(chance.randint(5, 40)):
            turns += 1
            said = person.speak()
            answer = await session.say(said.words)
            if answer is None:
                continue
            verdict = verdict_on(said, answer, session)
            if said.kind != "opening":
                wanted = ", ".join(thing.words for thing in said.meant) or ("ask" if said.to_be_asked else "nothing")
                tally.count(said.kind, verdict, wanted, f"{part} {place}", said.words, answer)
            person.listen(said, answer, understood=verdict in ("right", "untouched"))
    return turns


async def measure(seed: int, dialogues: int, *, verbose: bool) -> dict[str, Any]:
    measured: dict[str, Any] = {"seed": seed}
    for part, written in (("development", "handwritten.yaml"), ("heldout", "handwritten_heldout.yaml")):
        # The held-apart ones are never listed, so that nobody tunes on them by accident.
        tally = Tally(verbose=verbose and part == "development")
        turns = await run_written(DIALOGUES / written, tally)
        turns += await run_generated(part, seed, dialogues, tally)
        count = dialogues + len(dialogues_of(DIALOGUES / written))
        measured[part] = {"dialogues": count, "turns": turns, **tally.report()}
    return measured


def main() -> None:
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else SEED
    measured = asyncio.run(measure(seed, GENERATED, verbose="--verbose" in sys.argv))
    write("dialogues", measured, claim="No reference in a dialogue resolves to a wrong thing; most resolve.")


if __name__ == "__main__":
    main()
