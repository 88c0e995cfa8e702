"""A page of the cookbook as steps, and the running sample estate that they are tried on.

A box `text` whose first line begins with `> ` is a question of a conversation, and below it stands the answer; a box
`sh` is typed in another terminal, and the box `text` after it is what it prints. Questions of a page are one
conversation.
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
from typing import NoReturn

BOX = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "> "
WORKSPACE = "cookbook"
END = "2026-11-20T08:00:00Z"
"""The last moment of the estate, so that its rows are the same whenever it is made."""

_MARK = "Days and times are those of UTC.\n"
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


class Conversation:
    """`sentinel chat` in a pipe, question by question."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: str) -> str:
        """What it prints for one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{question}\n/tz\n")
        self._process.stdin.flush()
        printed: list[str] = []
        for line in self._process.stdout:
            if line == _MARK:
                return "".join(printed).rstrip("\n") + "\n"
            printed.append(line)
        raise RuntimeError(f"the chat ended: {''.join(printed)}")


class Estate:
    """The product over the cookbook's workspace, running, with one chat that is open all the time."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @classmethod
    @contextmanager
    def running(cls, home: Path) -> Iterator[Estate]:
        """Make the estate in the empty folder `home`, serve it for the block, and read playbooks and incidents in."""
        estate = cls(home)
        estate._done("workspace", "generate", "--end", END)
        with estate._started("up", "--json") as up:
            assert up.stdout is not None
            json.loads(up.stdout.readline() or "{}") or estate._failed(up)
            try:
                estate._done("knowledge", "ingest", "--days", "3650")
                with estate._started("chat") as chat:
                    estate.chat = Conversation(chat)
                    yield estate
                    assert chat.stdin is not None
                    chat.stdin.close()
            finally:
                up.send_signal(signal.SIGINT)
                up.communicate(timeout=60)

    def run(self, steps: Sequence[Step]) -> list[str]:
        """What each step of a page prints; its conversation knows nothing of the page before."""
        self.chat.ask("/clear all")
        return [self.chat.ask(step.text) if isinstance(step, Question) else self._shell(step.lines) for step in steps]

    def _shell(self, lines: str) -> str:
        done = subprocess.run(
            ["bash", "--norc", "--noprofile", "-c", lines],
            env=self._environment(),
            cwd=self._home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def _done(self, *arguments: str) -> None:
        with self._started(*arguments) as process:
            _, complaint = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"sentinel {' '.join(arguments)} ended with {process.returncode}: {complaint}")

    def _started(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [Path(sys.executable).parent / "sentinel", *arguments],
            env=self._environment(),
            cwd=self._home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def _failed(process: subprocess.Popen[str]) -> NoReturn:
        raise RuntimeError(f"sentinel up did not start: {process.communicate()[1]}")

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",  # pages are folded the same wherever this runs
            "PYTHONUNBUFFERED": "1",  # each answer is waited for
            "SENTINEL_HOME": str(self._home / "home"),
            "SENTINEL_WORKSPACE": WORKSPACE,
            # Found by words alone: whether the model for meaning is installed must not change an answer.
            "SENTINEL_EMBEDDINGS": "none",
        }
