"""The prompt of `sentinel chat`: lines with history, what is pasted, and the words that Tab completes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from zoneinfo import available_timezones

from prompt_toolkit import PromptSession  # noqa: TID253  # this module is the prompt, and imported lazily
from prompt_toolkit.buffer import Buffer  # noqa: TID253  # as above
from prompt_toolkit.completion import CompleteEvent, Completer, Completion  # noqa: TID253  # imported with the prompt
from prompt_toolkit.document import Document  # noqa: TID253  # as above
from prompt_toolkit.history import FileHistory  # noqa: TID253  # as above
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent  # noqa: TID253  # as above
from prompt_toolkit.keys import Keys  # noqa: TID253  # as above

from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.ports import MAX_QUESTION_CHARACTERS
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._chat_commands import COMMANDS
from sentinel_rag.surfaces.cli._marked_text import source_names
from sentinel_rag.surfaces.rendering.visible import safe

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
            for name, each in COMMANDS.items():
                if name.startswith(line):
                    yield Completion(name, -len(line), display_meta=each.meaning)
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
        if command == "/evidence":
            return evidence_numbers(answer) if answer is not None else ()
        if command.startswith("/"):
            return COMMANDS[command].words if command in COMMANDS else ()
        return (*(shown_names(answer) if answer is not None else ()), *self._template_names())

    def _template_names(self) -> tuple[str, ...]:
        if self._templates is None:
            from sentinel_rag.contracts.errors import SentinelError
            from sentinel_rag.sentinel.templates.template_registry import load_templates

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


LEAVE_HINT = "Ctrl-D or /quit leaves the chat; Ctrl-C stops a question that runs."

_ESCAPE = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC: titles, links, the clipboard
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, moves
    r"|\x1b[PX^_][^\x1b\n]*\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"  # others, and those above that never end: their text is kept
)


def cleaned_paste(text: str) -> tuple[str, int]:
    """Pasted text as it goes into the line, and how many characters that nobody sees were left out."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(each for each in _ESCAPE.sub("", lines) if safe(each) == each)
    return kept, len(lines) - len(kept)


def prompted_lines(history: Path, completer: Completer, draft: Callable[[], str] = str) -> Iterator[str]:
    """What the person sends, one message each, until Ctrl-D. Ctrl-C drops the line; a second one tells how to leave.
    `draft` gives what stands in a new line already."""
    history.touch(mode=0o600)
    notes: list[str] = []
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)),
        completer=completer,
        complete_while_typing=False,  # names come from rows: a person asks for them, with Tab
        key_bindings=_bindings(notes),
        prompt_continuation="| ",
    )

    def tell(buffer: Buffer) -> None:
        session.bottom_toolbar = _toolbar(buffer.text, notes) or None

    session.default_buffer.on_text_changed += tell
    stopped = False
    while True:
        try:
            line = session.prompt("> ", default=draft())
        except KeyboardInterrupt:
            if stopped:
                print(LEAVE_HINT)
            stopped = True
        except EOFError:
            return
        else:
            stopped = False
            yield line
        notes.clear()
        session.bottom_toolbar = None


def _bindings(notes: list[str]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add(Keys.BracketedPaste, eager=True)
    def _(event: KeyPressEvent) -> None:
        kept, left_out = cleaned_paste(event.data)
        if left_out:
            notes[:] = [f"{left_out} invisible or control characters of the pasted text were left out"]
        event.current_buffer.insert_text(kept)

    return keys


def _toolbar(text: str, notes: list[str]) -> str:
    """What to know before sending: pasted text that was cleaned, several lines, too many characters."""
    told = list(notes)
    if len(text) > MAX_QUESTION_CHARACTERS:
        told.append(f"{len(text)} characters, at most {MAX_QUESTION_CHARACTERS} are read: shorten it")
    if lines := text.count("\n"):
        told.append(f"{lines + 1} lines; Enter sends them as one question")
    return " · ".join(told)
