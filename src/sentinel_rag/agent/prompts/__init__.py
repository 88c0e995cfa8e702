"""What models are told, as versioned files: `NAME.md` begins with `version: N`, an empty line, and then the text.

A change of a text needs a new version, which stands in the footnote of every answer: so an answer can be traced to the
words that it was written under. A test holds each version to its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_HEAD = re.compile(r"version: ([1-9]\d{0,5})\n\n")
NAMES = ("rules", "rules_small", "last_round", "query_first", "rows_shortened", "second_look", "redraft", "sources")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One text with its version."""

    name: str
    version: int
    text: str

    @property
    def label(self) -> str:
        """`rules v1`, as a footnote shows it."""
        return f"{self.name} v{self.version}"


@cache
def prompt(name: str) -> Prompt:
    """The shipped text of that name. Raises ValueError for a file without a version."""
    content = files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").replace("\r\n", "\n")
    head = _HEAD.match(content)
    if head is None:
        raise ValueError(f"the prompt {name} does not begin with its version and an empty line")
    return Prompt(name, int(head[1]), content[head.end() :].strip())
