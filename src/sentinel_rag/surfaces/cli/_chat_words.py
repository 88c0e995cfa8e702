"""What Tab completes in a chat: commands and what follows them, and the numbers and names that the last answer shows.

Names come from log rows. Only those that look like an id, a host, an address or an account are offered, so that no
sentence of somebody else gets into a question by a slip of the finger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from zoneinfo import available_timezones

from prompt_toolkit.completion import CompleteEvent, Completer, Completion  # noqa: TID253  # imported with the prompt
from prompt_toolkit.document import Document  # noqa: TID253  # as above

from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._chat_commands import COMMANDS
from sentinel_rag.surfaces.cli._marked_text import source_names

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:'\\/-]{0,127}")
_TELLING = re.compile(r"[0-9.@\\_-]")
MOST_OFFERED = 200


class ChatCompleter(Completer):
    """Completes the word before the cursor. `last_answer` gives the answer on the screen, `served` are workspaces."""

    def __init__(self, settings: Settings, last_answer: Callable[[], Answer | None], served: Sequence[str]) -> None:
        self._settings = settings
        self._last_answer = last_answer
        self._served = served
        self._templates: tuple[str, ...] | None = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        word = line.split(" ")[-1].rpartition("\n")[2]
        if line.startswith("/") and " " not in line:
            for name, meaning in COMMANDS.items():
                if name.startswith(line):
                    yield Completion(name, -len(line), display_meta=meaning)
            return
        for found in _fitting(self._words(line), word.removeprefix("#")):
            yield Completion(found, -len(word.removeprefix("#")))

    def _words(self, line: str) -> Iterable[str]:
        command = line.split(" ")[0]
        answer = self._last_answer()
        if command == "/tz":
            return sorted(available_timezones())
        if command == "/workspace":
            return self._served
        if command == "/verbosity":
            return tuple(Verbosity)
        if command in ("/refresh", "/clear"):
            return ("all",)
        if command == "/evidence":
            return evidence_numbers(answer) if answer is not None else ()
        if command == "/found":
            return ("only", "all")
        if command == "/export":
            return ("md", "html", "csv", "--force", "--reveal")
        if command.startswith("/"):
            return ()
        return (*(shown_names(answer) if answer is not None else ()), *self._template_names())

    def _template_names(self) -> tuple[str, ...]:
        if self._templates is None:
            from sentinel_rag.contracts.errors import SentinelError
            from sentinel_rag.sentinel.template_registry import load_templates

            try:
                self._templates = tuple(load_templates(own=self._settings.templates))
            except SentinelError:  # broken templates are told where they are used
                self._templates = ()
        return self._templates


def evidence_numbers(answer: Answer) -> list[str]:
    """What `/evidence` takes for this answer: its sources, then its facts."""
    facts = [str(number) for number in range(1, len(answer.evidence) + 1)]
    return [*source_names(answer.sentences).values(), *facts]


def shown_names(answer: Answer) -> tuple[str, ...]:
    """Numbers and names that the answer shows, in its order, each once: what a next question may be about."""
    cells = (cell for table in answer.tables for row in table.rows for cell in row)
    texts = (*(piece.text for piece in answer.evidence), *cells)
    return tuple(dict.fromkeys(text for text in texts if _NAME.fullmatch(text) and _TELLING.search(text)))


def _fitting(words: Iterable[str], begun: str) -> list[str]:
    if not begun:
        return list(words)[:MOST_OFFERED]
    return [word for word in words if word.lower().startswith(begun.lower()) and word != begun][:MOST_OFFERED]
