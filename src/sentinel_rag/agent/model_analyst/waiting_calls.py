"""The calls that wait for a person, and the rule that "do it now" lets a model make one of them and no other.

A person approved one call and says so in words that name nothing. What a model makes of such words could be another
change, which would then wait under the same words; so code compares it with what waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sentinel_rag.agent.offline.change_repeats import means_again
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_calls import Denied, ToolCall

MOST_AWAITED = 10
_ADDED = frozenset({"workspace", "timezone"})
"""Arguments that the agent adds where the model gives none."""


@dataclass(slots=True)
class WaitingCalls:
    """`calls` by approval id, oldest first, at most MOST_AWAITED. `newest` are those of the turn that asked last."""

    calls: OrderedDict[str, ToolCall] = field(default_factory=OrderedDict)
    newest: tuple[str, ...] = ()
    _asked_now: bool = False
    _asked_before: bool = False

    def begin_turn(self) -> None:
        """Another question begins."""
        self._asked_before, self._asked_now = self._asked_now, False

    def note(self, run: ToolRun) -> None:
        """Keep a call that waits for a person, and drop one that was made since."""
        if isinstance(run.outcome, Denied) and run.outcome.approval_id is not None:
            self._drop(run.call)
            self.calls[run.outcome.approval_id] = run.call
            self.newest = (*(self.newest if self._asked_now else ()), run.outcome.approval_id)
            self._asked_now = True
            while len(self.calls) > MOST_AWAITED:
                self.calls.popitem(last=False)
        elif run.worked:
            self._drop(run.call)

    def meant_by(self, question: str) -> tuple[ToolCall, ...]:
        """The calls of which a question such as "do it now" asks for one; none for any other question, and where none
        waits. Looser words ("go ahead") count right after the turn that asked for an approval."""
        if not self.calls or not means_again(question, just_now=self._asked_before):
            return ()
        newest = tuple(self.calls[each] for each in self.newest if each in self.calls)
        return newest or tuple(self.calls.values())

    def _drop(self, call: ToolCall) -> None:
        for approval_id in [each for each, waiting in self.calls.items() if _same(waiting, call)]:
            del self.calls[approval_id]


def chosen_among(calls: Iterable[ToolCall], tool: str, arguments: Mapping[str, JsonValue]) -> ToolCall | None:
    """The waiting call that a model's call is; it may leave out what the agent added. None if it is another one."""
    own = {name: value for name, value in arguments.items() if name not in _ADDED}
    added = {name: value for name, value in arguments.items() if name in _ADDED}
    for call in calls:
        meant = {name: value for name, value in call.arguments.items() if name not in _ADDED}
        if (
            call.tool_name == tool
            and meant == own
            and all(call.arguments.get(name) == value for name, value in added.items())
        ):
            return call
    return None


def _same(one: ToolCall, other: ToolCall) -> bool:
    return (one.tool_name, dict(one.arguments)) == (other.tool_name, dict(other.arguments))
