"""Answers written from results, one module for each kind of view.

Each composer takes the plan and its runs, writes facts with an `AnswerWriter`, and returns what the conversation must
remember. None of them plans or calls anything.
"""

from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.dispatch import compose
from sentinel_rag.agent.offline.compositions.scope import say_numbered
from sentinel_rag.agent.offline.compositions.unsuccessful import say_failures

__all__ = ["Composed", "compose", "say_failures", "say_numbered"]
