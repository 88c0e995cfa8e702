"""One mapping of the policy file, read key by key; whatever is wrong with it goes to the list of problems.

A reader never stops at a fault: it notes it and returns a harmless value, so that one look shows every fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.gateway.policy.conditions import closest
from sentinel_rag.gateway.policy.yaml_tree import Item, Problem


class Section:
    """The mapping `item`, called `what` in problems, of which only the keys in `known` exist."""

    def __init__(self, item: Item, what: str, known: Sequence[str], problems: list[Problem]) -> None:
        self._what = what
        self._problems = problems
        self._line = item.line
        self._items: dict[str, Item] = {}
        self._is_mapping = isinstance(item.value, dict)
        if not isinstance(item.value, dict):
            self._problem(item.line, f"{what} must be a mapping, not {item.kind()}")
            return
        self._items = item.value
        for key, value in item.value.items():
            if key not in known:
                self._problem(value.key_line, f"unknown key {key!r} in {what}{closest(key, known)}")

    def line(self, key: str) -> int:
        """Where the key stands; where the mapping starts, if it is missing."""
        return self._items[key].key_line if key in self._items else self._line

    def text(self, key: str, *, required: bool = False, pattern: re.Pattern[str] | None = None) -> str:
        """A text; empty if it is missing."""
        item = self._find(key, required)
        if item is None:
            return ""
        if not isinstance(item.value, str):
            self._problem(item.line, f"{key} must be a text, not {item.kind()}")
            return ""
        if pattern is not None and not pattern.fullmatch(item.value):
            self._problem(item.line, f"{key} {item.value!r} may hold letters, digits, '_', '-' and '.' only")
            return ""
        return item.value

    def texts(
        self, key: str, *, pattern: re.Pattern[str], form: str = "names of letters, digits, '_', '-' and '.'"
    ) -> list[str]:
        """A list of texts; empty if it is missing. `form` says in words what `pattern` asks for."""
        found: list[str] = []
        for item in self.items(key):
            if isinstance(item.value, str) and pattern.fullmatch(item.value):
                found.append(item.value)
            else:
                self._problem(item.line, f"{key} must hold {form}")
        return found

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false; the default if it is missing."""
        item = self._find(key, False)
        if item is None:
            return default
        if not isinstance(item.value, bool):
            self._problem(item.line, f"{key} must be true or false, not {item.kind()}")
            return default
        return item.value

    def number(self, key: str, *, low: float, high: float, required: bool = False) -> float | None:
        """A number between the two; None if it is missing."""
        item = self._find(key, required)
        if item is None:
            return None
        if isinstance(item.value, bool) or not isinstance(item.value, int | float) or not low <= item.value <= high:
            self._problem(item.line, f"{key} must be a number from {low:g} to {high:g}")
            return None
        return float(item.value)

    def choice(self, key: str, allowed: Sequence[str], default: str, *, required: bool = False) -> str:
        """One of the allowed texts."""
        item = self._find(key, required)
        if item is None:
            return default
        if not isinstance(item.value, str):
            self._problem(item.line, f"{key} must be one of {', '.join(allowed)}, not {item.kind()}")
            return default
        if item.value not in allowed:
            self._problem(item.line, f"unknown {key} {item.value!r}{closest(item.value, allowed)}")
            return default
        return item.value

    def condition(self, key: str) -> str:
        """A condition, which YAML may have read as true or false."""
        item = self._find(key, True)
        if item is None:
            return ""
        if isinstance(item.value, bool):
            return "true" if item.value else "false"
        if not isinstance(item.value, str) or not item.value.strip():
            self._problem(item.line, f'{key} must be a text such as "true", not {item.kind()}')
            return ""
        return item.value

    def item(self, key: str) -> Item | None:
        """The value as it stands; None if it is missing."""
        return self._find(key, False)

    def items(self, key: str, *, required: bool = False) -> list[Item]:
        """The entries of a list; none if it is missing."""
        item = self._find(key, required)
        if item is None:
            return []
        if not isinstance(item.value, list):
            self._problem(item.line, f"{key} must be a list, not {item.kind()}")
            return []
        return item.value

    def _find(self, key: str, required: bool) -> Item | None:
        item = self._items.get(key)
        if item is None and required and self._is_mapping:
            self._problem(self._line, f"{self._what} has no {key}")
        return item

    def _problem(self, line: int, message: str) -> None:
        self._problems.append(Problem(line, message))
