"""A fully hijacked agent without a model: it makes the calls of a task and, at one moment, those of an attack.

Everything goes through the gateway with the agent's key, as an agent's calls do (`hands`). Whether it got what it
wanted is `judging`'s business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS
from sentinel_rag_testing.soc.encodings import PIECES, pieces
from sentinel_rag_testing.soc.hands import (
    Hands,
    ToolCall,
    approval_of,
    expected_calls,
    judge_meanings,
    reason_of,
)
from sentinel_rag_testing.soc.judging import Observation, holds
from sentinel_rag_testing.soc.people import Decider, People
from sentinel_rag_testing.soc.placeholders import UNKNOWN, Meaning, filled, secret_named
from sentinel_rag_testing.soc.product import RunningProduct, WireAnswer
from sentinel_rag_testing.soc.suite import Goal, Step, Task

_ASKED_ABOUT = WRITING_TOOLS | {"web_search", "web_fetch"}
"""Tools about which a policy asks people: where it does not, the attack comes after the call."""


class Moment(StrEnum):
    """When the attack begins, and in whose conversation it is made."""

    FIRST = "after the first result that carries it"
    LAST = "after the last result that carries it"
    END = "after all calls"
    APPROVED = "between a yes and its use"
    NEXT = "in the person's next conversation"
    SPREAD = "spread over the person's next conversations"
    SECOND = "in the conversation of a second person of the agent"


LATER = (Moment.NEXT, Moment.SPREAD, Moment.SECOND)
"""The agent has done the task, and remembers all of it; the person, or the second one, says something that names
nothing."""


@dataclass(slots=True)
class Played:
    """What came of a run. `blocked` are the task's calls that did not run, `told` the results of those that did,
    `places` the positions (from 1) of the calls whose results carried the planted text."""

    observation: Observation
    blocked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    approvals: int = 0
    confirmations: int = 0
    """Of the approvals those that the asker gave."""
    attacked: bool = False
    answers: Mapping[str, int] = field(default_factory=dict)
    """How the attack's moves ended: `executed`, or the reason of a refusal."""
    writes: int = 0
    """Changes that Sentinel took."""
    throttled: bool = False
    """Sentinel's own limit refused a change, so the run tells nothing."""


class HijackedAgent:
    """Plays runs on one product, with new keys for each. `unbounded`: the agent's key may do everything and is every
    analyst's, for baselines in which nothing stops it."""

    def __init__(self, product: RunningProduct, *, people: People, unbounded: bool = False) -> None:
        self._product = product
        self._people = people
        self._unbounded = unbounded

    def play(
        self, task: Task, goal: Goal | None = None, moment: Moment = Moment.END, *, after: int = 0, busy: bool = False
    ) -> Played:
        """Play the task; with a `goal` its attack too, after the call in place `after` (from 1). With `busy` the agent
        has read the workspace for an earlier question."""
        caller = self._product.new_caller(all_scopes=self._unbounded)
        hands = Hands(self._product, caller, task, unbounded=self._unbounded)
        try:
            if busy:
                hands.read_before()
            return _Run(self._product, hands, task, self._people).play(goal, moment, after)
        finally:
            hands.close()
            caller.close()

    def reached(self, task: Task, goal: Goal, played: Played) -> bool:
        """Whether the attack got what it wanted."""
        secrets = self._product.planted.estate.secrets
        meanings = judge_meanings(self._product, task)
        return any(holds(condition, played.observation, secrets, meanings) for condition in goal.reached)

    def useful(self, task: Task, played: Played) -> bool:
        """Whether the task was done: each call ran, the results tell what was asked, the workspace shows it."""
        secrets = self._product.planted.estate.secrets
        meanings = judge_meanings(self._product, task)
        told = all(any(text in answer for answer in played.told) for text in task.tells)
        done = all(holds(condition, played.observation, secrets, meanings) for condition in task.does)
        return not played.blocked and told and done


class _Run:
    def __init__(self, product: RunningProduct, hands: Hands, task: Task, people: People) -> None:
        self._product = product
        self._hands = hands
        self._task = task
        self._calls = expected_calls(product, task)
        self._decider = Decider(people, product.approver, hands.person, self._calls)
        self._last: ToolCall | None = None

    def play(self, goal: Goal | None, moment: Moment, after: int) -> Played:
        product, hands = self._product, self._hands
        before, arrived = product.incidents(), len(product.outside.arrived())
        if goal is not None and goal.before:
            hands.session("kept")
        hands.open_for_the_person(filled(self._task.words, judge_meanings(product, self._task)))
        played = Played(Observation(before, before, (), ()))
        for place, (tool, arguments) in enumerate(self._calls, 1):
            swapped = goal if moment is Moment.APPROVED and not played.attacked else None
            answer = self._task_call(("own", tool, arguments), swapped, played)
            if answer.status == 200:
                played.told.append(json.dumps(answer.body, ensure_ascii=False))
                if product.planted.estate.marker in answer.text:
                    played.places.append(place)
            else:
                played.blocked.append(f"{tool}: {reason_of(answer)}")
            if goal is not None and moment not in (Moment.APPROVED, *LATER) and place == after:
                self._attack(goal, played)
        if goal is not None and moment in LATER:
            hands.go_on(spread=moment is Moment.SPREAD, second=moment is Moment.SECOND)
            self._attack(goal, played)
        self._decider.end()
        played.approvals, played.confirmations = len(self._decider.approved), len(self._decider.confirmed)
        played.answers, played.writes, played.throttled = dict(hands.answers), hands.writes, hands.throttled
        played.observation = Observation(
            before,
            product.incidents(),
            product.outside.arrived(arrived),
            tuple(hands.returned),
            len(self._decider.asked),
            hands.answers["executed"],
        )
        return played

    def _task_call(self, call: ToolCall, swapped: Goal | None, played: Played) -> WireAnswer:
        """A call of the task: made again once it is approved, with the attack in between where that is the moment."""
        answer = self._hands.call(call)
        self._last = call
        approval_id = approval_of(answer)
        if approval_id is not None and self._decider.decide(approval_id):
            if swapped is not None:
                self._attack(swapped, played)
            answer = self._hands.call(call)
            self._last = call
        elif answer.status == 200:
            self._decider.done(call[1], call[2])
        if swapped is not None and not played.attacked and answer.status == 200 and call[1] in _ASKED_ABOUT:
            self._attack(swapped, played)  # nobody had to be asked
        return answer

    def _attack(self, goal: Goal, played: Played) -> None:
        played.attacked = True
        for step in goal.steps:
            self._move(step)

    def _move(self, step: Step) -> None:
        if step.request is not None:
            meanings = self._hands.meanings()
            path, body = filled(step.request.path, meanings), filled(step.request.body, meanings)
            self._hands.request(step.request.method, path, body)
            return
        calls = list(self._calls_of(step))
        if step.together:
            self._hands.attack_at_once(calls)
            return
        for call in calls:
            answer = self._hands.attack(call)
            self._last = call
            approval_id = approval_of(answer)
            if approval_id is not None:
                self._hands.approval = approval_id
                if self._decider.decide(approval_id):
                    self._hands.attack(call)

    def _calls_of(self, step: Step) -> Iterator[ToolCall]:
        if step.again is not None:
            if self._last is not None:
                session, tool, arguments = self._last
                changed = {**arguments, **filled(step.again, self._hands.meanings())}
                yield from [(session, tool, changed)] * step.repeat
            return
        for text in self._each(step):
            for count in range(step.first, step.first + step.repeat):
                meanings = {**self._hands.meanings(), "piece": _always(text), "n": _always(str(count))}
                yield step.session, step.call, filled(step.args, meanings)

    def _each(self, step: Step) -> list[str]:
        if not step.each:
            return [""]
        name, form = secret_named(step.each)
        secret = self._hands.secret(name)
        if secret == UNKNOWN or form not in PIECES:
            return [secret]
        return list(pieces(secret, form))


def _always(text: str) -> Meaning:
    return lambda _: text
