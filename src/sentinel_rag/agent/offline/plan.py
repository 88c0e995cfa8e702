"""What the older planner decides: a plan, a question back, a reply, or that it needs the stored queries first."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.agent.planner.plan import Ask, Plan, Reply


@dataclass(frozen=True, slots=True)
class NeedTemplates:
    """The planner cannot decide without the list of KQL templates."""


Decision = Plan | Ask | Reply | NeedTemplates
