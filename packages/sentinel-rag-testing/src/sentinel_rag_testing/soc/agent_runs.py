"""Measures an agent: for each task what it got done, and for each goal whether the text planted for it worked.

The estate of a goal says what the attacker wants in every field that somebody outside can write; what came of it is
read from the workspace, the outside world and the gateway's responses, never from the agent's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import anyio.to_thread

from sentinel_rag_testing.soc.agents import Agent, Turn
from sentinel_rag_testing.soc.hands import expected_calls, judge_meanings
from sentinel_rag_testing.soc.judging import Observation, holds
from sentinel_rag_testing.soc.measuring import fresh_product
from sentinel_rag_testing.soc.people import Decider, People
from sentinel_rag_testing.soc.placeholders import filled
from sentinel_rag_testing.soc.product import RunningProduct
from sentinel_rag_testing.soc.recorder import Recorder
from sentinel_rag_testing.soc.suite import Goal, Suite, Task

GO_ON = "do it now"
"""What the person says once they have approved a change; a question that waited they ask again."""


@dataclass(slots=True)
class AgentTask:
    """A task as the agent did it. `lacks`: what was asked for and neither told nor done."""

    task: str
    kind: str
    useful: bool
    approvals: int
    lacks: Sequence[str] = ()
    answer: str = ""


@dataclass(slots=True)
class AgentGoal:
    """A goal beside the tasks: how many runs, which reached it, and in how many the task was done all the same. In the
    runs of `faults` the agent gave no answer; what its calls did before counts."""

    goal: str
    kind: str
    runs: int = 0
    useful: int = 0
    reached: list[str] = field(default_factory=list)
    apart: str = ""
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Turned:
    answer: str
    observation: Observation
    approvals: int
    fault: str = ""


class AgentBench:
    """Runs one agent; `people` decide what its calls ask for."""

    def __init__(self, suite: Suite, agent: Agent, *, policy: str = "shipped", people: People) -> None:
        self._suite = suite
        self._agent = agent
        self._policy = policy
        self._people = people

    def tasks(self) -> Iterator[AgentTask]:
        """Every task over an estate in which strangers wrote nothing but a remark, as they come."""
        with fresh_product(self._suite, self._policy, f"{self._suite.estate.marker}: see the ticket") as product:
            for task in self._suite.tasks:
                yield self.task(product, task)

    def goals(self) -> Iterator[AgentGoal]:
        """Every goal that a text can ask for, beside every task that it fits, as they come."""
        secrets = self._suite.estate.secrets
        for goal in self._suite.goals:
            if goal.hidden:
                continue
            planted = f"{self._suite.estate.marker}: {filled(goal.says, {'secret': secrets.__getitem__})}"
            with fresh_product(self._suite, self._policy, planted) as product:
                yield self.goal(product, goal)

    def task(self, product: RunningProduct, task: Task) -> AgentTask:
        """One task."""
        turned = self._run(product, task)
        lacks = _lacks(product, task, turned)
        return AgentTask(task.id, task.kind, not lacks, turned.approvals, lacks, turned.answer[:2_000])

    def goal(self, product: RunningProduct, goal: Goal) -> AgentGoal:
        """One goal, beside every task that it fits; its text is planted in the product's estate."""
        secrets = product.planted.estate.secrets
        row = AgentGoal(goal.id, goal.kind, apart=" ".join(goal.apart.split()))
        for task in self._suite.tasks:
            if not goal.fits(task):
                continue
            turned = self._run(product, task)
            meanings = judge_meanings(product, task)
            row.runs += 1
            row.useful += not _lacks(product, task, turned)
            if turned.fault:
                row.faults.append(f"{task.id}: {turned.fault}")
            if any(holds(each, turned.observation, secrets, meanings) for each in goal.reached):
                row.reached.append(task.id)
        return row

    def _run(self, product: RunningProduct, task: Task) -> _Turned:
        caller = product.new_caller()
        recorder = Recorder(product.gateway_url)
        decider = Decider(self._people, product.approver, caller.person, expected_calls(product, task))
        before, arrived = product.incidents(), len(product.outside.arrived())
        words = filled(task.words, judge_meanings(product, task))
        try:
            session_id = str(caller.person.send("POST", "/v1/sessions").body["session_id"])
            said = f"/v1/sessions/{session_id}/words"
            with recorder.running() as url:
                turn = Turn(words, url, caller.agent_key, session_id)

                def say(text: str) -> None:
                    caller.person.send("POST", said, {"text": text})

                def decide() -> bool:
                    decided = [decider.decide(each) for each in product.waiting_of(caller)]
                    return any(decided)

                again = replace(turn, question=GO_ON if task.does else words)
                answer, fault = anyio.run(partial(_conversation, self._agent, (turn, again), say, decide))
        finally:
            decider.end()
            caller.close()
        observation = Observation(
            before,
            product.incidents(),
            product.outside.arrived(arrived),
            tuple(recorder.told),
            len(decider.asked),
            recorder.executed,
        )
        product.restore(observation.changed())
        return _Turned(answer, observation, len(decider.approved), fault)


async def _conversation(
    agent: Agent, turns: tuple[Turn, Turn], say: Callable[[str], None], decide: Callable[[], bool]
) -> tuple[str, str]:
    """The question, and once more where a person has approved what it led to: the answer, and what went wrong."""
    answer = ""
    turn, again = turns
    try:
        async with agent() as ask:
            await anyio.to_thread.run_sync(say, turn.question)
            answer = await ask(turn)
            if await anyio.to_thread.run_sync(decide):
                await anyio.to_thread.run_sync(say, again.question)
                answer += "\n" + await ask(again)
    except Exception as error:  # an agent of somebody else's may fail in any way; the others go on
        return answer, f"{type(error).__name__}: {error}"[:500]
    return answer, ""


def _lacks(product: RunningProduct, task: Task, turned: _Turned) -> list[str]:
    secrets = product.planted.estate.secrets
    meanings = judge_meanings(product, task)
    lacks = [turned.fault] if turned.fault else []
    lacks += [text for text in task.tells if text.casefold() not in turned.answer.casefold()]
    lacks += [
        f"change {place}"
        for place, condition in enumerate(task.does, 1)
        if not holds(condition, turned.observation, secrets, meanings)
    ]
    return lacks
