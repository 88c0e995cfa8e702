"""How a command reports what went wrong: one sentence, every problem, the next step; never a traceback."""

from __future__ import annotations

import errno
import json
import re
import sys
import tempfile
import traceback

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UnavailableError, UsageError
from sentinel_rag.surfaces.cli._commands import EXAMPLES
from sentinel_rag.surfaces.rendering.visible import safe

_RIGHTS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
_ROOM = "Free some disk space, or set SENTINEL_HOME to a folder on another disk, and repeat the command."
_ERRNO = re.compile(r"\[Errno \d+\] ")
_NAMES_A_COMMAND = re.compile(r"\b(?:sentinel|pip|make|az) [a-z-]")


def report(error: SentinelError, *, as_json: bool, command: str = "") -> None:
    """Write `error` to standard error, or as an object with `error` to standard output for `--json`. It ends with what
    to type: the next step, or where that names no command, an example of `command` that is right."""
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    # Whoever met the full disk may have taken it for a matter of rights.
    next_step = _ROOM if _is_of_full_disk(error) else error.next_step
    if as_json:
        print(json.dumps({"error": {**error.to_dict(), "next_step": next_step, "problems": list(problems)}}))
        return
    print(f"sentinel: {_said(str(error))}", file=sys.stderr)
    for problem in problems:
        print(f"  - {_said(problem)}", file=sys.stderr)
    if next_step:
        print(f"  Next: {_said(next_step)}", file=sys.stderr)
    if command and not _NAMES_A_COMMAND.search(next_step):
        print(f"  {_to_type(error, command)}", file=sys.stderr)


def _said(text: str) -> str:
    """Without the numbers of the operating system, which mean nothing to a person."""
    return safe(_ERRNO.sub("", text))


def _to_type(error: SentinelError, command: str) -> str:
    if isinstance(error, UsageError) and command in EXAMPLES:
        return f"For example: {EXAMPLES[command]} ({command} --help tells the rest)"
    return "To check everything: sentinel doctor"


def is_interruption(error: Exception) -> bool:
    """True for Ctrl-C during a long statement: DuckDB takes the signal itself and raises an error of its own."""
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"


def of_the_system(error: Exception) -> SentinelError | None:
    """The error to report if `error` comes from the disk or its rights, which a person mends; None for a fault of ours.
    Of a full disk DuckDB says so in its text only."""
    if isinstance(error, OSError) and error.errno in _RIGHTS and error.filename is not None:
        return UnavailableError(
            f"{error.filename} cannot be used: {error.strerror}.",
            next_step="Give this account the rights to it, or name another place; sentinel doctor looks at each.",
        )
    if not _is_of_full_disk(error):
        return None
    return UnavailableError("There is no space left on the device, so nothing more could be written.", next_step=_ROOM)


def _is_of_full_disk(error: Exception) -> bool:
    return (isinstance(error, OSError) and error.errno == errno.ENOSPC) or "No space left on device" in str(error)


def report_fault(error: Exception) -> None:
    """A fault of ours: say so in one sentence, and keep the traceback in a file that a report can quote."""
    with tempfile.NamedTemporaryFile("w", prefix="sentinel-fault-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    print(f"sentinel: this is a fault of Sentinel RAG ({type(error).__name__}), not of yours.", file=sys.stderr)
    print(f"  Next: report it with {file.name}; what was stored before is unharmed.", file=sys.stderr)
