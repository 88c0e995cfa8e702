"""What the identity may do on a resource, from Azure's own list of its actions. Pure.

A role grants actions with wildcards and takes some back (`notActions`); an action is allowed if one grant allows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.rest.arm_errors import protocol_error

UPDATE_INCIDENTS = "Microsoft.SecurityInsights/incidents/write"
WRITE_COMMENTS = "Microsoft.SecurityInsights/incidents/comments/write"


@dataclass(frozen=True, slots=True)
class Permissions:
    """Grants of (actions, actions that are taken back), each a pattern with `*`."""

    grants: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @classmethod
    def from_items(cls, items: Iterable[Mapping[str, Any]]) -> Permissions:
        """Raises QueryFailedError PROTOCOL for items that are no grants."""
        grants = []
        for item in items:
            actions, taken_back = item.get("actions"), item.get("notActions") or []
            if not isinstance(actions, list) or not isinstance(taken_back, list):
                raise QueryFailedError(protocol_error("Azure answered with something that is no list of permissions."))
            grants.append((tuple(map(str, actions)), tuple(map(str, taken_back))))
        return cls(tuple(grants))

    def allows(self, action: str) -> bool:
        """Whether `action` is granted; names of actions know no case."""
        return any(
            any(_matches(pattern, action) for pattern in actions)
            and not any(_matches(pattern, action) for pattern in taken_back)
            for actions, taken_back in self.grants
        )


def _matches(pattern: str, action: str) -> bool:
    parts = [re.escape(part) for part in pattern.split("*")]
    return re.fullmatch(".*".join(parts), action, re.IGNORECASE) is not None
