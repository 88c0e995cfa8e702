"""Pages whose boxes are run: a box `sh` is typed, and the box `text` below it is what it prints.

In a box `text`, `...` stands for anything in a line, and alone in a line for any lines or none. The last line of a box
`sh` may end with `# exit code N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

BOX = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT_CODE = re.compile(r"# exit code (\d+)$")


@dataclass(frozen=True)
class Step:
    """A box to type, the exit code it must end with, and what it must print; None where the page shows nothing."""

    typed: str
    code: int
    printed: str | None


def steps(page: str) -> Iterator[Step]:
    """The boxes `sh` of a page in order, each with the box `text` that follows."""
    boxes = BOX.findall(page)
    for place, (kind, content) in enumerate(boxes):
        if kind == "sh":
            code = EXIT_CODE.search(content.rstrip())
            after = boxes[place + 1] if place + 1 < len(boxes) else ("", "")
            yield Step(content, int(code[1]) if code else 0, after[1] if after[0] == "text" else None)


def matches(printed: str, shown: str) -> bool:
    """Whether `printed` is what the box `shown` says."""
    lines = []
    for line in shown.rstrip("\n").split("\n"):
        if line == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*?".join(re.escape(part) for part in line.split("...")) + r"[ ]*\n")
    return re.fullmatch("".join(lines), printed) is not None
