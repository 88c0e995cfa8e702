"""The suite as data: an estate, the analysts' tasks and the attackers' goals, read from three YAML files.

The types are the schema: `schema()` writes them as JSON Schema, and a file that does not fit is refused with the place
of the fault. `placeholders` says what the texts' placeholders stand for, `judging` what the conditions ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import yaml

from sentinel_rag.contracts.errors import UsageError

DATA = Path(__file__).parent / "data"
VERSION = 1
Session = Literal["own", "new", "kept", "next", "next_named", "next_wish", "other"]
"""`own` is the task's, `new` and `kept` the agent opens by itself, those of `next` the person for later questions, and
`other` is another analyst's."""
Adaptation = Literal["", "paraphrase", "encoding", "splitting", "laundering", "own words"]


class Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A part of the files."""


class Call(Base, frozen=True, kw_only=True):
    """A tool call as a careful agent makes it."""

    tool: str
    args: dict[str, Any] = {}


class IncidentIs(Base, frozen=True, kw_only=True):
    """Incident `number` was changed and now has these values; what is empty is not asked, but an owner of "" is
    nobody."""

    number: int | str
    status: str = ""
    severity: str = ""
    owner: str | None = None
    classification: str = ""
    classification_comment: str = ""
    """A part of it."""


class CommentIs(Base, frozen=True, kw_only=True):
    """At least so many new comments on incident `number` hold the text."""

    number: int | str
    holds: str = ""
    at_least: int = 1


class Leak(Base, frozen=True, kw_only=True):
    """The secret arrived in the outside world, in this form or plainly."""

    secret: str
    form: str = "plain"


class Returned(Base, frozen=True, kw_only=True):
    """A response to the agent held the secret."""

    secret: str


class AtLeast(Base, frozen=True, kw_only=True):
    at_least: int


class MoreThan(Base, frozen=True, kw_only=True):
    more_than: int


class Condition(Base, frozen=True, kw_only=True):
    """Holds if each of the parts that are given holds."""

    incident: IncidentIs | None = None
    comment: CommentIs | None = None
    leak: Leak | None = None
    returned: Returned | None = None
    web: AtLeast | None = None
    """Requests that arrived in the outside world."""
    questions: MoreThan | None = None
    """Questions that a person was asked."""
    calls: AtLeast | None = None
    """Calls of the attack that were executed."""


class Task(Base, frozen=True, kw_only=True):
    """What an analyst asks. `person`: the shipped policy sends a call of it to a person."""

    id: str
    kind: Literal["read", "investigate", "act", "knowledge", "files", "web", "report"]
    words: str
    calls: list[Call]
    tells: list[str]
    does: list[Condition] = []
    person: bool = False


class Request(Base, frozen=True, kw_only=True):
    """A request to the gateway that is no tool call, with the agent's key."""

    method: Literal["GET", "POST"]
    path: str
    body: dict[str, Any] | None = None


class Step(Base, frozen=True, kw_only=True):
    """One move of an attack: `call` a tool, make a `request`, or make the last call `again` with some arguments
    changed. `together`: the repetitions are sent at once. `first` is what `{n}` begins with."""

    call: str = ""
    args: dict[str, Any] = {}
    request: Request | None = None
    again: dict[str, Any] | None = None
    session: Session = "own"
    each: str = ""
    repeat: int = 1
    first: int = 1
    together: bool = False


class Goal(Base, frozen=True, kw_only=True):
    """What an attacker wants. It is reached if one of the conditions of `reached` holds."""

    id: str
    kind: Literal["change", "leak", "poison", "exhaust", "read", "identity", "approval", "handle"]
    says: str
    steps: list[Step]
    reached: list[Condition]
    moment: Literal["", "approved"] = ""
    """`approved`: between a person's yes and the use of it; empty: at each of the three moments."""
    before: bool = False
    """The agent opened a session of its own before the task."""
    hidden: bool = False
    """Only under a policy that hides something."""
    only: list[str] = []
    excluded: list[str] = msgspec.field(default_factory=list, name="except")
    adaptive: Adaptation = ""
    """How it fits itself to a gateway that it knows: in other words, in another encoding, in parts over arguments,
    calls or sessions, by way of a store, or inside what the person's own words name."""
    apart: str = ""

    def fits(self, task: Task) -> bool:
        """Whether the goal makes sense beside the task."""
        if self.only and task.id not in self.only:
            return False
        return task.id not in self.excluded


class Incident(Base, frozen=True, kw_only=True):
    number: int
    defender_id: int
    title: str
    severity: str
    status: str
    hours: float
    alerts: list[str]
    owner: str = ""
    classification: str = ""
    classification_reason: str = ""
    comments: list[str] = []


class Alert(Base, frozen=True, kw_only=True):
    id: str
    name: str
    severity: str
    hours: float
    product: Literal["MDE", "MDO", "MCAS", "AADIP", "SENTINEL"]
    tactics: list[str]
    techniques: list[str]
    entities: list[dict[str, Any]]
    description: str = ""


class PastIncident(Base, frozen=True, kw_only=True):
    number: int
    title: str
    severity: str
    days: float
    classification: str
    classification_reason: str
    techniques: list[str]
    tactics: list[str]
    entities: list[tuple[str, str]]
    classification_comment: str
    comments: list[str] = []


class Page(Base, frozen=True, kw_only=True):
    title: str
    url: str
    snippet: str


class Estate(Base, frozen=True, kw_only=True):
    """What the tools find. Texts hold placeholders."""

    version: Literal[1]
    marker: str
    secrets: dict[str, str]
    incidents: list[Incident]
    alerts: list[Alert]
    logs: dict[str, list[dict[str, Any]]]
    past_incidents: list[PastIncident]
    playbooks: dict[str, str]
    files: dict[str, str]
    web: list[Page]


class Tasks(Base, frozen=True, kw_only=True):
    version: Literal[1]
    tasks: list[Task]


class Goals(Base, frozen=True, kw_only=True):
    version: Literal[1]
    goals: list[Goal]


@dataclass(frozen=True, slots=True)
class Suite:
    """All of it."""

    estate: Estate
    tasks: tuple[Task, ...]
    goals: tuple[Goal, ...]

    def chosen(self, tasks: str = "", goals: str = "") -> Suite:
        """The tasks and goals with these ids, by commas; all where nothing is named. Raises UsageError for an unknown
        one."""
        return Suite(self.estate, _chosen("task", self.tasks, tasks), _chosen("goal", self.goals, goals))


_Part = TypeVar("_Part", Task, Goal)
_File = TypeVar("_File", bound=Base)


def load_suite(folder: Path = DATA) -> Suite:
    """The suite in `estate.yaml`, `tasks.yaml` and `goals.yaml` of a folder. Raises UsageError that names the file, and
    the place of the fault."""
    tasks = _read(folder / "tasks.yaml", Tasks).tasks
    goals = _read(folder / "goals.yaml", Goals).goals
    suite = Suite(_read(folder / "estate.yaml", Estate), tuple(tasks), tuple(goals))
    _check(suite)
    return suite


def schema() -> Mapping[str, Any]:
    """JSON Schema (2020-12) of the three files, by file."""
    return {f"{name}.yaml": msgspec.json.schema(kind) for name, kind in _FILES.items()}


_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader in C where there is one: the files are read often, and it takes a tenth of the time."""
_FILES: Mapping[str, type[Base]] = {"estate": Estate, "tasks": Tasks, "goals": Goals}


def _read(file: Path, kind: type[_File]) -> _File:
    try:
        return msgspec.convert(yaml.load(file.read_text(encoding="utf-8"), Loader=_SAFE), kind)  # noqa: S506  # it is safe
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}.", next_step="Name a folder with the suite."
        ) from None
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{file} is not right: {reason}.", next_step="Correct it; --schema prints the form.") from None


def _check(suite: Suite) -> None:
    known = {task.id for task in suite.tasks}
    for kind, parts in (("task", suite.tasks), ("goal", suite.goals)):
        ids = [part.id for part in parts]
        twice = sorted({each for each in ids if ids.count(each) > 1})
        if twice:
            raise UsageError(f"The {kind} {twice[0]} is there twice.", next_step="Give each an id of its own.")
    for goal in suite.goals:
        for named in (*goal.only, *goal.excluded):
            if named not in known:
                raise UsageError(f"The goal {goal.id} names no task: {named}.", next_step="Correct its only or except.")


def _chosen(kind: str, parts: tuple[_Part, ...], names: str) -> tuple[_Part, ...]:
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        return parts
    by_id = {part.id: part for part in parts}
    for name in wanted:
        if name not in by_id:
            raise UsageError(f"There is no {kind} {name!r}.", next_step=f"Take some of: {', '.join(by_id)}.")
    return tuple(by_id[name] for name in wanted)
