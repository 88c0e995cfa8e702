"""Result files as the report reads them: claim, figures by path, the machine, when.

A figure is named by its keys joined with `/`: `session/last_thousand/p50_ms`. Keys that hold a `/` themselves are found
too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


class NoSuchFigure(LookupError):
    """A result has nothing at that path."""


@dataclass(frozen=True, slots=True)
class Result:
    """One file of `bench/results`. `figures` are label and text of what the benchmark itself wants to be shown, `group`
    where it wants to stand; both may be empty."""

    name: str
    claim: str
    measured_at: datetime
    machine: Mapping[str, Any]
    measured: Mapping[str, Any]
    figures: tuple[tuple[str, str], ...] = ()
    group: str = ""

    @classmethod
    def read(cls, path: Path) -> Result:
        document = json.loads(path.read_text())
        return cls(
            name=path.stem,
            claim=document["claim"],
            measured_at=datetime.fromisoformat(document["measured_at"]),
            machine=document["machine"],
            measured=document["measured"],
            figures=tuple((str(label), str(text)) for label, text in document.get("figures", {}).items()),
            group=document.get("group", ""),
        )

    def figure(self, path: str) -> Any:
        """The value at `path`. Raises NoSuchFigure."""
        found = _at(self.measured, path)
        if found is _NOTHING:
            raise NoSuchFigure(f"{self.name}.json has no figure {path}")
        return found

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Path and value of everything that is neither an object nor a list."""
        yield from _leaves(self.measured, ())

    @property
    def busy(self) -> str:
        """How busy the machine was, where the result says so."""
        for key in ("load_average_1_min", "load_of_the_machine", "load_of_the_machine_before"):
            if key in self.measured:
                value = self.measured[key]
                return str(value[0] if isinstance(value, list) else value)
        return ""


_NOTHING = object()


def _at(value: Any, path: str) -> Any:
    if not path:
        return value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if path == key or path.startswith(f"{key}/"):
                found = _at(inner, path[len(key) + 1 :])
                if found is not _NOTHING:
                    return found
    return _NOTHING


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif not isinstance(value, list):
        yield "/".join(path), value
