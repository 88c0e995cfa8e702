"""`docs/pictures/demo.svg`: `sentinel demo` as a terminal of 84 columns shows it, one screen after the other.

The demo runs for real on a pseudo-terminal; each screen is taken where it waits for Enter. The drawing loads nothing
and holds no script: CSS turns the pages, and a reader who wants no motion sees the first one.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import tempfile
import time
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyte
    from pyte.screens import Char

COLUMNS, ROWS = 84, 42
WAITS = "Enter "
"""Stands in each line at whose end the demo waits."""
SECONDS_A_PAGE = 7
LONGEST_WAIT_S = 120
_CELL, _LINE, _MARGIN, _FIRST = 8.4, 18, 14, 24
_INK, _PAPER = "#e6edf3", "#0d1117"
_COLOURS = {
    "black": "#484f58", "red": "#ff7b72", "green": "#3fb950", "brown": "#d29922", "blue": "#58a6ff",
    "magenta": "#bc8cff", "cyan": "#39c5cf", "white": "#b1bac4", "brightblack": "#8b949e",
}  # fmt: skip


def record(repository: Path) -> int:
    """Write the recording anew."""
    with tempfile.TemporaryDirectory() as home:
        pages = screens([str(Path(sys.executable).parent / "sentinel"), "demo"], Path(home))
    path = repository / "docs" / "pictures" / "demo.svg"
    path.write_text(drawing(pages))
    print(f"{path.relative_to(repository)} is written: {len(pages)} pages")
    return 0


def screens(command: list[str], home: Path) -> list[list[list[Char]]]:
    """The screens at which `command` waits for Enter, each as its lines of characters.

    Raises TimeoutError where it says nothing for LONGEST_WAIT_S.
    """
    import pyte

    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    process, terminal = pty.fork()
    if process == 0:
        size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
        os.execve(command[0], command, {**os.environ, **size, "SENTINEL_HOME": str(home)})
    pages: list[list[list[Char]]] = []
    try:
        while _feed(terminal, stream):
            line = screen.display[screen.cursor.y]
            if WAITS in line and screen.cursor.x == len(line.rstrip()) + 1:
                pages.append(_lines(screen))
                os.write(terminal, b"\n")
    finally:
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
        os.close(terminal)
    return pages


def _feed(terminal: int, stream: pyte.ByteStream) -> bool:
    """Give the screen what the program wrote; False when it has ended."""
    ready, _, _ = select.select([terminal], [], [], LONGEST_WAIT_S)
    if not ready:
        raise TimeoutError(f"The demo said nothing for {LONGEST_WAIT_S} seconds.")
    time.sleep(0.05)  # the rest of what is written at once
    try:
        written = os.read(terminal, 1 << 16)
    except OSError:  # Linux tells the end of the other side so
        return False
    stream.feed(written)
    return bool(written)


def _lines(screen: pyte.Screen) -> list[list[Char]]:
    lines = [[screen.buffer[y][x] for x in range(COLUMNS)] for y in range(ROWS)]
    while lines and not "".join(char.data for char in lines[-1]).strip():
        lines.pop()
    return lines


def drawing(pages: list[list[list[Char]]]) -> str:
    """The pages as one SVG that turns them."""
    rows = max(map(len, pages))
    width, height = round(COLUMNS * _CELL + 2 * _MARGIN), rows * _LINE + 2 * _FIRST
    whole = SECONDS_A_PAGE * len(pages)
    style = (
        f"text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:{_INK};white-space:pre}}"
        ".b{font-weight:700}.u{text-decoration:underline}"
        f".p{{visibility:hidden;animation:p {whole}s step-end infinite}}.p:first-of-type{{visibility:visible}}"
        f"@keyframes p{{0%{{visibility:visible}}{100 / len(pages):.3f}%{{visibility:hidden}}}}"
        "@media (prefers-reduced-motion:reduce){.p{animation:none}}"
    )
    drawn = "\n".join(
        f'<g class="p" style="animation-delay:{at * SECONDS_A_PAGE}s">{_page(page)}</g>'
        for at, page in enumerate(pages)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="sentinel demo in a terminal"><style>{style}</style>'
        f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>\n{drawn}\n</svg>\n'
    )


def _page(lines: list[list[Char]]) -> str:
    runs = ((y, list(run)) for y, line in enumerate(lines) for _, run in groupby(enumerate(line), _look))
    return "".join(_run(run, y) for y, run in runs)


def _look(cell: tuple[int, Char]) -> tuple[str, str, bool, bool]:
    """Ink, paper, bold and underlined of a character at its place."""
    char = cell[1]
    ink, paper = _colour(char.fg, _INK), _colour(char.bg, _PAPER)
    return (*((paper, ink) if char.reverse else (ink, paper)), char.bold, char.underscore)


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return _COLOURS.get(name) or (f"#{name}" if len(name) == 6 else _COLOURS.get(name.removeprefix("bright"), default))


def _run(cells: list[tuple[int, Char]], y: int) -> str:
    """Characters that look the same, side by side; blanks only where they have a colour behind them."""
    text = "".join(char.data for _, char in cells)
    ink, paper, bold, underlined = _look(cells[0])
    left, top, width = _MARGIN + cells[0][0] * _CELL, y * _LINE + _FIRST, len(cells) * _CELL
    behind = f'<rect x="{left:.1f}" y="{top - 4}" width="{width:.1f}" height="{_LINE}" fill="{paper}"/>'
    drawn = behind if paper != _PAPER else ""
    if not text.strip():
        return drawn
    blanks = len(text) - len(text.lstrip())
    text, left, width = text.strip(), left + blanks * _CELL, len(text.strip()) * _CELL
    look = (
        f' class="{" ".join(name for name, on in (("b", bold), ("u", underlined)) if on)}"'
        if bold or underlined
        else ""
    )
    fill = f' style="fill:{ink}"' if ink != _INK else ""
    at = f'x="{left:.1f}" y="{top + 10}" textLength="{width:.1f}"'
    return f"{drawn}<text {at}{look}{fill}>{escape(text)}</text>"
