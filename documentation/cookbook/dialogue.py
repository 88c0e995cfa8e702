"""A page of the cookbook as steps, and the running sample estate that they are tried on.

A box `text` whose first line begins with `> ` is a question of a conversation, and below it stands the answer; a box
`sh` is typed in another terminal, and the box `text` after it is what it prints. Questions of a page are one
conversation, which goes on after a box `sh`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BOX = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "> "
WORKSPACE = "cookbook"
END = "2026-11-20T08:00:00Z"
"""The last moment of the estate, so that its rows are the same whenever it is made."""

_MARK = "Days and times are those of UTC."
"""What the chat prints for `/tz`, which is typed after each question to tell one answer from the next."""


@dataclass(frozen=True, slots=True)
class Question:
    """One line of the conversation."""

    text: str


@dataclass(frozen=True, slots=True)
class Typed:
    """Lines of a shell."""

    lines: str


Step = Question | Typed


def pages(repository: Path) -> list[Path]:
    """The investigations, in their order."""
    return sorted((repository / "docs" / "cookbook").glob("[0-9]*.md"))


def steps(page: str) -> list[Step]:
    """What is asked and typed on a page, in order."""
    found: list[Step] = []
    for kind, content in BOX.findall(page):
        if kind == "sh":
            found.append(Typed(content))
        elif content.startswith(PROMPT):
            found.append(Question(content.split("\n", 1)[0].removeprefix(PROMPT)))
    return found


def shown(page: str) -> list[str]:
    """What the page says that each step prints."""
    found: list[str] = []
    boxes = BOX.findall(page)
    for place, (kind, content) in enumerate(boxes):
        if kind == "sh":
            follows = boxes[place + 1] if place + 1 < len(boxes) else ("", "")
            is_output = follows[0] == "text" and not follows[1].startswith(PROMPT)
            found.append(follows[1] if is_output else "...\n")
        elif content.startswith(PROMPT):
            found.append(content.split("\n", 1)[1])
    return found


def with_outputs(page: str, outputs: Sequence[str]) -> str:
    """The page with these outputs in the place of those that it shows."""
    left = list(outputs)
    typed = False

    def box(found: re.Match[str]) -> str:
        nonlocal typed
        kind, content = found[1], found[2]
        if kind == "sh":
            typed = True
            return found[0]
        if content.startswith(PROMPT):
            if typed:  # what was typed before shows nothing
                left.pop(0)
            typed = False
            return f"```text\n{content.split(chr(10), 1)[0]}\n{left.pop(0)}```"
        if typed:
            typed = False
            return f"```text\n{left.pop(0)}```"
        return found[0]

    return BOX.sub(box, page)


class Estate:
    """The product over the cookbook's workspace, running."""

    def __init__(self, repository: Path, home: Path) -> None:
        self._repository = repository
        self._home = home

    @classmethod
    @contextmanager
    def running(cls, repository: Path, home: Path) -> Iterator[Estate]:
        """Make the estate in the empty folder `home`, read playbooks and incidents in, and serve it for the block."""
        estate = cls(repository, home)
        estate._sentinel("workspace", "generate", "--workspace", WORKSPACE, "--end", END)
        estate._sentinel("knowledge", "ingest", "--workspace", WORKSPACE)
        with subprocess.Popen(
            [*cls._command(), "up", "--json", "--workspace", WORKSPACE],
            env=estate._environment(),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                if not (line := process.stdout.readline()):
                    raise RuntimeError(f"sentinel up did not start: {process.communicate()[1]}")
                json.loads(line)
                yield estate
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)

    def run(self, steps: Sequence[Step]) -> list[str]:
        """What each step prints."""
        outputs: list[str] = []
        begun = False
        place = 0
        while place < len(steps):
            step = steps[place]
            if isinstance(step, Typed):
                outputs.append(self._shell(step.lines))
                place += 1
                continue
            asked = []
            while place < len(steps) and isinstance(question := steps[place], Question):
                asked.append(question.text)
                place += 1
            outputs += self._chat(asked, resume=begun)
            begun = True
        return outputs

    def _chat(self, questions: Sequence[str], *, resume: bool) -> list[str]:
        typed = "".join(f"{question}\n/tz\n" for question in questions)
        going_on = ("--resume",) if resume else ()
        # A line before the first question: what a resumed conversation says when it begins belongs to no answer.
        printed = self._sentinel("chat", "--workspace", WORKSPACE, *going_on, stdin=f"/tz\n{typed}")
        parts = re.split(rf"^{re.escape(_MARK)}\n", printed, flags=re.MULTILINE)
        assert len(parts) == len(questions) + 2, printed
        return [part.rstrip("\n") + "\n" for part in parts[1:-1]]

    def _shell(self, lines: str) -> str:
        done = subprocess.run(
            ["bash", "--norc", "--noprofile", "-c", lines],
            env=self._environment(),
            cwd=self._home,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    def _sentinel(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self._command(), *arguments],
            input=stdin,
            env=self._environment(),
            cwd=self._home,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"sentinel {arguments[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    @staticmethod
    def _command() -> tuple[str, ...]:
        return (str(Path(sys.executable).parent / "sentinel"),)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SENTINEL_HOME": str(self._home / "home"),
            # Found by words alone: whether the model for meaning is installed must not change an answer.
            "SENTINEL_EMBEDDINGS": "none",
        }
