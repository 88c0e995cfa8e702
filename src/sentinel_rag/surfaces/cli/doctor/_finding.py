"""One line of `sentinel doctor`: a name, how it stands, what is there, and what mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError
from sentinel_rag.settings import Settings


class Level(StrEnum):
    """WARN is for what works less well than it could, or will fail later; only FAIL makes the exit code 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`fix` is a command or a sentence; empty where nothing is wrong."""

    name: str
    level: Level
    detail: str
    fix: str = ""

    def to_dict(self) -> dict[str, object]:
        """The form of `--json`: `name`, `level`, `ok` (false for a fault only), `detail`, `fix`."""
        ok = self.level is not Level.FAIL
        return {"name": self.name, "level": self.level.value, "ok": ok, "detail": self.detail, "fix": self.fix}


Check = Callable[[Settings], Finding]


def fine(name: str, detail: str) -> Finding:
    """Nothing to mend."""
    return Finding(name, Level.OK, detail)


def warning(name: str, detail: str, fix: str) -> Finding:
    """Works, and could work better."""
    return Finding(name, Level.WARN, detail, fix)


def fault(name: str, detail: str, fix: str) -> Finding:
    """Does not work."""
    return Finding(name, Level.FAIL, detail, fix)


def told(name: str, error: SentinelError) -> Finding:
    """An error as a fault, with all its problems."""
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    return fault(name, " ".join([str(error), "; ".join(problems)]).strip(), error.next_step)


def guarded(name: str, check: Check, settings: Settings) -> Finding:
    """What the check finds; an error that it meets is a finding too."""
    try:
        return check(settings)
    except SentinelError as error:
        return told(name, error)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return fault(name, f"{error.strerror or error}{where}", "check the owner and the rights of the folder")
