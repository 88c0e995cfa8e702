"""A policy's no as an exception, for who calls a tool directly; agents are told its text instead."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import ToolException

from sentinel_rag.integrations.gateway.answer_texts import block_message, block_step
from sentinel_rag.integrations.gateway.answers import Blocked


class SecurityBlockException(ToolException):
    """The gateway answered 403. `str()` is the source template's sentence: message, then `Reason:` and `reason`.

    `block` is the gateway's whole word: reason code, rule, audit id and, where a person may allow the call, the
    approval's id.
    """

    def __init__(self, message: str, tool_name: str, reason: str, block: Blocked | None = None) -> None:
        super().__init__(f"{message} Reason: {reason}")
        self.message = message
        self.tool_name = tool_name
        self.reason = reason
        self.block = block or Blocked(reason, "")

    @classmethod
    def of(cls, tool_name: str, block: Blocked) -> SecurityBlockException:
        return cls(block_message(tool_name), tool_name, block.detail, block)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.tool_name, self.reason, self.block)


def told_block(error: ToolException) -> str:
    """What an agent is told of a tool's exception: for a block the sentence and what to do about it."""
    return f"{error} {block_step(error.block)}" if isinstance(error, SecurityBlockException) else str(error)
