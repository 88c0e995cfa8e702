"""Each link and each value of an attack in every chosen spelling, beside user tasks of all suites.

What the person said, what it names and what the agent has read are the running gateway's, as far as the first result
that carries the injection, and in the later conversations of the person and of a second one. Whether a call passes
there is asked of the gate's own judgement with these facts, since there are half a million calls; one that it would
let pass is then really made.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from bench.agentdojo.adaptive import LINKS, VALUES, chosen_spellings, failed
from bench.agentdojo.driving import GREETING, Moment, Play, carries
from bench.agentdojo.measuring import POLICIES
from bench.agentdojo.stage import Stage, stage
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow import CallFacts, judge
from sentinel_rag.gateway.policy import Policy, load_policy
from sentinel_rag.gateway.policy.model import Effect
from sentinel_rag.gateway.request_body import ArgumentFault, fit
from sentinel_rag.gateway.store import State, open_state


@dataclass(frozen=True, slots=True)
class Beside:
    """A user task, and the injections to try beside it."""

    suite: str
    task: str
    injections: Sequence[str]


def spell(
    tasks: Sequence[Beside],
    *,
    file: Path | None = None,
    minutes: float | None = None,
    done: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Try the tasks in turn under each suite's policy, or that of `file`, until the time is over. `calls_that_ran` has
    what is more than a read."""
    ends = None if minutes is None else time.monotonic() + minutes * 60
    pairs: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    ran: list[str] = []
    with ExitStack() as opened:
        suites: dict[str, _Suite] = {}
        for beside in tasks:
            if ends is not None and time.monotonic() > ends:
                break
            suite = suites.get(beside.suite) or suites.setdefault(
                beside.suite, _Suite.opened(opened, beside.suite, file)
            )
            for injection, place, call in suite.passing(beside, judged):
                answer = suite.stage.call(place, call["tool"], call["arguments"])
                if answer.ran and not failed(answer):
                    ran.append(f"{beside.suite}, {beside.task} with {injection}: {call['tool']}")
            pairs[beside.suite] += len(beside.injections)
            done(f"{beside.suite}, {beside.task}: {pairs.total()} pairs, {judged.total()} calls judged, {len(ran)} ran")
    return {
        "pairs": pairs.total(),
        "pairs_by_suite": dict(pairs),
        "spellings_of_a_link": len(LINKS),
        "spellings_of_a_value": len(VALUES),
        "calls_judged": judged.total(),
        "calls_judged_by_moment": dict(judged),
        "calls_that_ran": ran,
    }


@dataclass(frozen=True, slots=True)
class _Suite:
    stage: Stage
    state: State
    policy: Policy
    reads: Collection[str]

    @classmethod
    def opened(cls, stack: ExitStack, name: str, file: Path | None) -> _Suite:
        ours = POLICIES / f"{name}.yaml"
        reads = {tool.name for tool in load_policy(ours).tools.values() if tool.effect is Effect.READ}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        there = stack.enter_context(stage(name, file or ours, folder))
        return cls(there, stack.enter_context(open_state(folder)), load_policy(file or ours), reads)

    def passing(self, beside: Beside, judged: Counter[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """The calls that would pass, each with its injection and session. One agent tries all injections of a task:
        what it remembers of one is what it has read for the next."""
        later: dict[str, str] = {}
        for number, injection in enumerate(beside.injections):
            told = self.stage.begin(beside.task, injection, same_agent=number > 0)
            play = Play(self.stage, self.stage.open_session(told["prompt"]))
            for at, call in enumerate(told["calls"]):
                if carries(play.user_call(at, call)):
                    break
            later = later or {
                Moment.NEXT: self.stage.open_session(GREETING),
                Moment.SECOND: self.stage.open_session(GREETING, second=True),
            }
            plain = [call for call in self.stage.attack() if call["tool"] not in self.reads]
            spelled = [call for _, calls in chosen_spellings(plain) for call in calls]
            for moment, session_id in {Moment.FIRST: play.session, **later}.items():
                judged[moment] += len(spelled)
                facts = anyio.run(self._facts, session_id)
                for call in spelled:
                    tool = self.policy.tools[call["tool"]]
                    arguments = fit(tool, call["arguments"])
                    if isinstance(arguments, ArgumentFault):
                        continue
                    decision = judge(self.policy, tool, arguments.value, facts[tool.across_sessions]).decision
                    if isinstance(decision, Allow):
                        yield injection, session_id, call

    async def _facts(self, session_id: str) -> Mapping[bool, CallFacts]:
        """What the gate knows in the session, by whether the tool counts what the agent remembers of others."""
        key_id = self.stage.pair.agent.split("_")[1]
        sessions = self.state.sessions
        session = await sessions.find(session_id, key_id)
        assert session is not None
        await sessions.refresh(session)
        memory = await sessions.seen_elsewhere(session, self.policy.remembers(key_id, ""))
        alone = CallFacts(session.context, named=session.named)
        return {True: CallFacts(session.context, named=session.named, memory=memory), False: alone}
