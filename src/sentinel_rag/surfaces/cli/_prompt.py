"""The line that a person types into a chat: history, completion, pasted text of several lines, Ctrl-C and Ctrl-D.

What is pasted is text of others until the person sends it: new lines in it do not send it, and characters that a
terminal would obey, or that nobody sees, are left out before they reach the line, which says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession  # noqa: TID253  # this module is the prompt, and imported lazily
from prompt_toolkit.buffer import Buffer  # noqa: TID253  # as above
from prompt_toolkit.completion import Completer  # noqa: TID253  # as above
from prompt_toolkit.history import FileHistory  # noqa: TID253  # as above
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent  # noqa: TID253  # as above
from prompt_toolkit.keys import Keys  # noqa: TID253  # as above

from sentinel_rag.contracts.ports import MAX_QUESTION_CHARACTERS
from sentinel_rag.surfaces.cli._safe_text import safe

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


def prompted_lines(history: Path, completer: Completer) -> Iterator[str]:
    """What the person sends, one message each, until Ctrl-D. Ctrl-C drops the line; a second one tells how to leave."""
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
            line = session.prompt("> ")
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
