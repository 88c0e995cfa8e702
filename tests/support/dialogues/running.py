"""Has a dialogue with an analyst and counts the verdicts on its references by kind."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import yaml
from tests.support.dialogues.judging import Thing, judge
from tests.support.dialogues.people import Person, Said, wordings
from tests.support.dialogues.screen import Screen

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.agent.row_text import show_time
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.ports import Question, ToolGateway
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT

FOLDER = Path(__file__).parent
WRITTEN = {"development": FOLDER / "handwritten.yaml", "heldout": FOLDER / "handwritten_heldout.yaml"}
WORDINGS = {
    "development": FOLDER / "wordings.yaml",
    "heldout": FOLDER / "wordings.yaml",
    "heldout_late": FOLDER / "wordings_late.yaml",
}

MOST_ALERTS = 1_000


class KeptCalls(ToolGateway, Protocol):
    """A gateway that keeps the calls that reach it."""

    calls: list[ToolCall]


class Session:
    """One conversation with the offline analyst: questions, `/clear`, and `/resume`, which is a new analyst with what
    the old one stored."""

    def __init__(self, gateway: KeptCalls, now: datetime) -> None:
        self.gateway = gateway
        self._now = now
        self._analyst = self._new()

    def _new(self) -> OfflineAnalyst:
        return OfflineAnalyst(self.gateway, clock=lambda: self._now)

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
        return await self._analyst.answer(Question(words, "s"))


async def alerts_shown(gateway: KeptCalls) -> dict[tuple[str, str], Thing]:
    """(time, name) as an answer shows them -> the alert, where there is one alone."""
    found: dict[tuple[str, str], Thing] = {}
    twice: set[tuple[str, str]] = set()
    for offset in range(0, MOST_ALERTS, MAX_LIMIT):
        page = {"limit": MAX_LIMIT, "offset": offset} if offset else {"limit": MAX_LIMIT}
        outcome = await gateway.execute(ToolCall("c0", "s", "query_alerts", page))
        rows: Any = getattr(outcome.result, "rows", ()) if isinstance(outcome, Succeeded) else ()
        for row in rows:
            shown = (show_time(parse_time(str(row["time"])), UTC), str(row["name"]))
            twice |= {shown} & set(found)
            found[shown] = Thing("alert", str(row["alert_id"]), str(row["incident_number"] or ""))
        if len(rows) < MAX_LIMIT:
            break
    return {shown: thing for shown, thing in found.items() if shown not in twice}


class Tally:
    """Verdicts by kind of reference; `tell` hears of each that is wrong or asked back though it is clear."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.verdicts: dict[str, Counter[str]] = defaultdict(Counter)
        self._tell = tell

    def count(self, said: Said, verdict: str, answer: Answer, dialogue: str) -> None:
        self.verdicts[said.kind][verdict] += 1
        if self._tell is not None and verdict in ("wrong", "missed"):
            wanted = ", ".join(thing.words for thing in said.meant) or "a question back, or nothing"
            told = f"{answer.footnote[:1]} {answer.text[:99]!r}"
            self._tell(f"{verdict}: {dialogue}: {said.words!r} means {wanted}; {told}")

    def total(self) -> Counter[str]:
        """Verdicts of all kinds together."""
        return sum(self.verdicts.values(), Counter())

    def report(self) -> dict[str, Any]:
        """Figures for people; `missed` is asked back although a careful person would know."""
        total = self.total()
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


def verdict_on(said: Said, answer: Answer, calls: list[ToolCall]) -> str:
    """`right`, `rightly asked`, `missed`, `wrong`, or `untouched` for words that point at nothing."""
    outcome = judge(said.meant, answer, calls)
    if said.to_be_asked:
        asked = judge([Thing("nothing", "")], answer, calls) == "asked"
        return "rightly asked" if asked else "right" if said.meant and outcome == "right" else "wrong"
    if not said.meant:
        return "untouched" if outcome == "right" else "wrong"
    if outcome == "asked":
        return "rightly asked" if said.may_be_asked else "missed"
    return outcome


def dialogues_of(path: Path) -> list[dict[str, Any]]:
    """The hand-written dialogues of one file."""
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text())["dialogues"]
    return found


async def run_written(
    dialogue: Mapping[str, Any], session: Session, things: Callable[[str], Thing], tally: Tally
) -> int:
    """One hand-written dialogue; how many turns it has. `things` reads `incident 31` and `alert a3`."""
    for turn in dialogue["turns"]:
        answer = await session.say(turn["say"])
        if answer is None:
            continue
        means = turn.get("means")
        written = means if isinstance(means, list) else [means] if means and means != "ask" else []
        said = Said(
            turn["say"],
            [things(each) for each in written],
            kind="written",
            to_be_asked=means == "ask",
            may_be_asked=bool(turn.get("or_ask")),
        )
        tally.count(said, verdict_on(said, answer, session.gateway.calls), answer, dialogue["name"])
    return len(dialogue["turns"])


async def run_generated(
    name: str, part: str, session: Session, alerts: Mapping[tuple[str, str], Thing], tally: Tally
) -> int:
    """One dialogue of 5 to 40 turns, made up from `name` with the wordings of `part`; how many turns it had."""
    chance = random.Random(name)
    person = Person(chance, Screen(alerts), wordings(WORDINGS[part], part))
    turns = chance.randint(5, 40)
    for _ in range(turns):
        said = person.speak()
        answer = await session.say(said.words)
        if answer is None:
            continue
        verdict = verdict_on(said, answer, session.gateway.calls)
        if said.kind != "opening":
            tally.count(said, verdict, answer, name)
        person.listen(said, answer, understood=verdict in ("right", "untouched"))
    return turns
