"""From `sentinel_config.yaml` to a Policy, all or nothing.

The file has the form of the source template (`tools[]` with `name`, `description`, `parameters[]`, `taint_rules[]`) and
a few optional keys. Every fault is reported at once as `file:line: sentence`; a key, type or name that is not known
refuses the file, because a rule that never fires is worse than no rule. So is a text in a condition that no argument
can equal: `file_path.startswith('/etc')` never fires where canonical paths begin with no slash.

The policy in force (`Policies` of a file), how another one takes its place while calls run, and the past ones.

A file that does not load changes nothing: the last good policy stays, and log, journal and `/readyz` say so. A call
holds the `Policy` it began with; sessions and their labels do not change with the policy. Every text that was ever in
force is kept by the hash that audit records name, so that a decision can be replayed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from typing import assert_never

import anyio
import anyio.to_thread

from sentinel_rag.audit.events import PolicyLoaded, PolicyRefused
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.gateway.argument_formats import FORMATS, NotCanonical
from sentinel_rag.gateway.policy import flow_section
from sentinel_rag.gateway.policy.conditions import (
    RESERVED,
    ConditionError,
    Expression,
    Reachability,
    Shadowed,
    TypeName,
    Unsatisfiable,
    ValueType,
    check,
    children,
    compile_rules,
    tree,
)
from sentinel_rag.gateway.policy.flow_section import MANY_NAMES, OWN_TOOLS, QUERY_SHAPED
from sentinel_rag.gateway.policy.model import (
    DEFAULT_SERVER,
    Effect,
    NamedKind,
    Parameter,
    Policies,
    Policy,
    TaintRule,
    ToolPolicy,
)
from sentinel_rag.gateway.policy.section import PolicyProblem, Section, UnreadableYaml, read_yaml

_CONTINUATIONS = ("", "x", "x/y", "/x", "1", "1/x", "=1")
_WHOLE_HOST = re.compile(r"https?://[^/]+/[^%]*")


def impossible_texts(condition: Expression, parameters: Mapping[str, Parameter]) -> Iterator[str]:
    """A sentence for each such text."""
    for name, text, part in _texts(condition):
        parameter = parameters[name]
        form = parameter.format
        if form is None or (part is _Part.ELEMENT) is not (parameter.type.kind is TypeName.ARRAY):
            continue  # `'a' in x` over a text asks for a part of it, which no format speaks about
        if part is _Part.BEGINNING:
            if not _may_begin(form, text):
                yield f"{name} has the format {form} and can never begin with {text!r}"
            continue
        found = _canonical(form, text)
        if found != text:
            verb = "hold" if part is _Part.ELEMENT else "be"
            hint = f"; write {found!r}" if found is not None else ""
            yield f"{name} has the format {form} and can never {verb} {text!r}{hint}"


class _Part(Enum):
    """What of a parameter's value a text is compared with."""

    WHOLE = auto()
    BEGINNING = auto()
    ELEMENT = auto()


def _texts(node: Expression) -> Iterator[tuple[str, str, _Part]]:
    """Each parameter, the text that it is compared with, and how."""
    match node:
        case tree.Compare(tree.Argument(name), ((("==" | "!="), tree.Constant(str(text))),)):
            yield name, text, _Part.WHOLE
        case tree.Compare(tree.Constant(str(text)), ((("==" | "!="), tree.Argument(name)),)):
            yield name, text, _Part.WHOLE
        case tree.Compare(tree.Argument(name), ((("in" | "not in"), tree.Choices(values)),)):
            yield from ((name, value, _Part.WHOLE) for value in values if isinstance(value, str))
        case tree.StringTest("startswith", tree.Argument(name), tree.Constant(str(text))):
            yield name, text, _Part.BEGINNING
        case tree.Compare(tree.Constant(str(text)), ((("in" | "not in"), tree.Argument(name)),)):
            yield name, text, _Part.ELEMENT
        case tree.StringTest("startswith", tree.Argument(name), tree.Choices(values)):
            yield from ((name, value, _Part.BEGINNING) for value in values if isinstance(value, str))
        case _:
            for child in children(node):
                yield from _texts(child)


def _canonical(form: str, text: str) -> str | None:
    try:
        return FORMATS[form](text)
    except NotCanonical:
        return None


def _may_begin(form: str, text: str) -> bool:
    """Whether some canonical text begins with `text`; true where that is not certain."""
    if form not in ("path", "path-any-case") and not (form == "url" and _WHOLE_HOST.fullmatch(text)):
        return True
    return any((_canonical(form, text + more) or "").startswith(text) for more in _CONTINUATIONS)


MAX_RULES = 2_000
"""Rules of one tool."""

MAX_TIMEOUT_S = 600.0

CONFIRMS = ("asker", "other")
"""Who is asked about a call: the person who asked for it, or another one."""

AT_YES = ("run", "wait")
"""What an approved call does: it runs at once, or waits until the agent sends it again."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_KINDS = {kind.value: kind for kind in TypeName if kind is not TypeName.NULL}

ROOT_KEYS = (
    "tools",
    "servers",
    "declassification",
    "endorsement",
    "link_hosts",
    "kinds",
    "agents",
    "memory_days",
    "denial_hours",
    "volume",
)
TOOL_KEYS = (
    *("name", "description", "parameters", "taint_rules", "server", "effect", "aliases", "timeout_s"),
    *("accepts", "output_labels", "exposure", "reads", "writes", "approvers", "rate"),
    *("row_labels", "sends_readers", "across_sessions", "named_limit", "result"),
    *("deed", "preview"),
)
PARAMETER_KEYS = ("name", "type", "required", "description", "items", "format", "accepts", "attest", "together")
RULE_KEYS = (
    *("rule_id", "condition", "taint_level", "requires_approval", "deny", "offers_approval", "accepts", "confirm"),
    "at_yes",
)


def load_policy(path: Path) -> Policy:
    """The policy of a file. Raises ConfigurationError with every problem found."""
    return parse_policy_bytes(read_policy_file(path), source=str(path))


def read_policy_file(path: Path) -> bytes:
    """The bytes of a policy file, read once. Raises ConfigurationError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The policy file {path} cannot be read: {error.strerror}.",
            next_step="Check the path and its permissions.",
        ) from error


def parse_policy_bytes(content: bytes, *, source: str) -> Policy:
    """The policy of a file's bytes; `source` names it in problems. Raises ConfigurationError."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"The policy file {source} is not UTF-8.",
            problems=(f"{source}:1: byte {error.start} is not UTF-8",),
            next_step="Save the file as UTF-8.",
        ) from error
    return parse_policy(text, source=source)


def parse_policy(text: str, *, source: str = "policy") -> Policy:
    """The policy of a text; `source` names it in problems. Raises ConfigurationError with every problem found."""
    try:
        root, problems = read_yaml(text)
    except UnreadableYaml as error:
        raise _refused(source, [error.problem]) from None
    file = Section(root, "the file", ROOT_KEYS, problems)
    kinds = flow_section.kinds(file)
    tools = _tools(file, kinds)
    names = {name: tool for tool in tools for name in (tool.name, *tool.aliases)}
    declassifications = flow_section.declassifications(file, names)
    endorsements = flow_section.endorsements(file, names, kinds)
    link_hosts = flow_section.link_hosts(file)
    server_specs = flow_section.servers(file)
    agents, confirming = flow_section.agents(file)
    memory = flow_section.memory(file)
    denial_holds = flow_section.denial_holds(file)
    volumes = flow_section.volumes(file)
    if problems:
        raise _refused(source, problems)
    return Policy(
        tools={tool.name: tool for tool in tools},
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        source=source,
        names=names,
        declassifications=declassifications,
        endorsements=endorsements,
        kinds=kinds,
        link_hosts=link_hosts,
        server_specs=server_specs,
        agents=agents,
        confirming=confirming,
        memory=memory,
        denial_holds=denial_holds,
        volumes=volumes,
    )


def _refused(source: str, problems: list[PolicyProblem]) -> ConfigurationError:
    ordered = sorted(problems, key=lambda problem: problem.line)
    count = "one problem" if len(ordered) == 1 else f"{len(ordered)} problems"
    return ConfigurationError(
        f"The policy {source} was not loaded: {count}.",
        problems=tuple(f"{source}:{problem.line}: {problem.message}" for problem in ordered),
        next_step="Correct the lines above; nothing of the file is in force.",
    )


def _tools(root: Section, kinds: Mapping[str, NamedKind]) -> list[ToolPolicy]:
    tools: list[ToolPolicy] = []
    sections: list[Section] = []
    taken: dict[str, int] = {}
    rule_ids: dict[str, int] = {}
    for section in root.sections("tools", "a tool", TOOL_KEYS, required=True):
        name = section.text("name", required=True, pattern=_NAME)
        aliases = section.texts("aliases", pattern=_NAME)
        for one, line in [(name, section.line("name")), *((alias, section.line("aliases")) for alias in aliases)]:
            _claim(section, one, line, "tool", taken)
        server = section.text("server", pattern=_NAME)
        own = OWN_TOOLS.get(name)
        if own is not None and server in ("", own.server) and not section.has("parameters"):
            parameters, server = dict(own.parameters), own.server
        else:
            parameters = _parameters(section, kinds)
        effect = Effect(section.choice("effect", [effect.value for effect in Effect], Effect.EXTERNAL.value))
        rules = _rules(section, effect, parameters, rule_ids)
        fields = flow_section.fields(section)
        if name in QUERY_SHAPED and (server or DEFAULT_SERVER) == DEFAULT_SERVER:
            flow_section.check_query_shaped(section, fields)
        if server in ("", *OWN_SERVERS) and name in MANY_NAMES:
            flow_section.check_many_names(section, MANY_NAMES[name])
        timeout = section.number("timeout_s", low=0.01, high=MAX_TIMEOUT_S)
        tools.append(
            ToolPolicy(
                name=name,
                description=section.text("description"),
                parameters=parameters,
                rules=tuple(rules),
                first_match=compile_rules([rule.expression for rule in rules]),
                server=server or DEFAULT_SERVER,
                effect=effect,
                aliases=tuple(aliases),
                timeout_s=timeout,
                accepts=flow_section.label(section, "accepts"),
                fields=fields,
                reads=flow_section.resources(section, "reads", parameters),
                writes=flow_section.resources(section, "writes", parameters),
                approvers=tuple(section.texts("approvers", pattern=_NAME)),
                rate=flow_section.rate(section),
                row_labels=flow_section.row_labels(section),
                sends_readers=flow_section.sends_readers(section),
                across_sessions=section.flag("across_sessions", default=effect is not Effect.READ),
                named_limit=flow_section.named_limit(section),
                result=flow_section.result_form(section),
                deed=flow_section.deed(section, parameters),
                preview=flow_section.preview(section, parameters),
            )
        )
        sections.append(section)
    flow_section.check_previews([*zip(tools, sections, strict=True)])
    return tools


def _claim(section: Section, name: str, line: int, what: str, taken: dict[str, int]) -> None:
    if name and name in taken:
        section.fault(line, f"the {what} {name!r} stands twice; first on line {taken[name]}")
    elif name:
        taken[name] = line


def _parameters(tool: Section, kinds: Mapping[str, NamedKind]) -> dict[str, Parameter]:
    parameters: dict[str, Parameter] = {}
    lines: dict[str, int] = {}
    sections: dict[str, Section] = {}
    for section in tool.sections("parameters", "a parameter", PARAMETER_KEYS):
        name = section.text("name", required=True, pattern=_NAME)
        _claim(section, name, section.line("name"), "parameter", lines)
        if name in RESERVED:
            section.fault("name", f"{name!r} has its own meaning in conditions")
        kind = _KINDS[section.choice("type", list(_KINDS), TypeName.STRING.value, required=True)]
        element = section.choice("items", [*_KINDS], "")
        if element and kind is not TypeName.ARRAY:
            section.fault("items", "items belongs to the type array")
            element = ""
        form = section.choice("format", list(FORMATS), "")
        if form and kind is not TypeName.STRING and not (kind is TypeName.ARRAY and element == TypeName.STRING.value):
            section.fault("format", "format belongs to the type string, or an array of strings")
        value_type = ValueType(kind, _KINDS[element] if element else None)
        parameters[name] = Parameter(
            name=name,
            type=value_type,
            required=section.flag("required"),
            description=section.text("description"),
            format=form or None,
            accepts=flow_section.label(section, "accepts"),
            attest=flow_section.attested_kinds(section, "attest", value_type, kinds),
            together=section.text("together"),
        )
        sections[name] = section
    for name, section in sections.items():
        for fault in flow_section.together_faults(parameters, name):
            section.fault("together", fault)
    return parameters


def _rules(
    tool: Section,
    effect: Effect,
    parameters: dict[str, Parameter],
    rule_ids: dict[str, int],
) -> list[TaintRule]:
    rules: list[TaintRule] = []
    types = {name: parameter.type for name, parameter in parameters.items()}
    attested = frozenset(name for name, parameter in parameters.items() if parameter.attest)
    reachability = Reachability()
    placed: list[_Placed] = []
    sections = tool.sections("taint_rules", "a taint rule", RULE_KEYS)
    if len(sections) > MAX_RULES:
        tool.fault(sections[MAX_RULES].start, f"a tool may have at most {MAX_RULES} rules")
        return rules
    for section in sections:
        rule_id = section.text("rule_id", required=True, pattern=_NAME)
        _claim(section, rule_id, section.line("rule_id"), "rule", rule_ids)
        level = section.choice("taint_level", [level.name for level in Sensitivity], "HIGH", required=True)
        condition = section.condition("condition")
        deny, approval, offered = (section.flag(key) for key in ("deny", "requires_approval", "offers_approval"))
        confirm = section.choice("confirm", CONFIRMS, "")
        approval = approval or (bool(confirm) and not offered)
        if deny and (approval or offered):
            section.fault("deny", "a rule that denies cannot ask for approval too")
        expression = _expression(section, condition, types, attested)
        if expression is None:
            continue
        line = section.line("condition")
        for text in impossible_texts(expression, parameters):
            section.fault(line, f"condition: {text}")
        placed.append(_Placed(rule_id, line))
        never = _unreachable(reachability.add(expression), placed)
        if never:
            section.fault(line, never)
        accepts = flow_section.rule_accepts(section, parameters)
        rules.append(
            TaintRule(
                rule_id,
                condition,
                expression,
                Sensitivity[level],
                approval,
                deny,
                line,
                offered,
                accepts,
                asks_the_asker=confirm == "asker",
                runs_at_yes=_runs_at_yes(section, effect, approval or offered, confirm),
            )
        )
    return rules


def _runs_at_yes(rule: Section, effect: Effect, asks: bool, confirm: str) -> bool:
    """By default where the asker confirms: they see it happen. What a read returns is for the agent, that has to ask
    for it again anyhow."""
    by_default = confirm == "asker" and effect is not Effect.READ
    runs = rule.choice("at_yes", AT_YES, "run" if by_default else "wait") == "run"
    if runs and (effect is Effect.READ or not asks):
        rule.fault("at_yes", "at_yes: run is for a call that changes or sends, and asks")
    return runs


@dataclass(frozen=True, slots=True)
class _Placed:
    """A rule and its line."""

    rule_id: str
    line: int


def _expression(
    rule: Section, condition: str, types: dict[str, ValueType], attested: frozenset[str]
) -> Expression | None:
    if not condition:
        return None  # its absence is reported already
    try:
        return check(condition, types, attested)
    except ConditionError as error:
        rule.fault("condition", f"condition, column {error.column}: {error}")
        return None


def _unreachable(found: Unsatisfiable | Shadowed | None, rules: Sequence[_Placed]) -> str:
    """Why a rule can never decide, as a sentence; empty if it may. `rules` are those up to it, by their numbers."""
    match found:
        case None:
            return ""
        case Unsatisfiable(()):
            return "the condition is never true; remove the rule"
        case Unsatisfiable((test,)):
            return f"the condition is never true, because {test} never holds; remove the rule"
        case Unsatisfiable(tests):
            return f"the condition is never true, because {' and '.join(tests)} exclude each other; remove the rule"
        case Shadowed(by):
            before = " and ".join(f"{rules[index].rule_id!r} on line {rules[index].line}" for index in by)
            return f"the rule can never decide: {before} always {'decide' if len(by) > 1 else 'decides'} before it"
        case _:
            assert_never(found)


_SHA256 = re.compile(r"[0-9a-f]{64}")


class PolicyArchive:
    """The folder `folder`: one file a version, readable by its owner only, never written twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: bytes) -> None:
        """Store the bytes of a policy file under their hash. Raises UnavailableError if they cannot be written."""
        path = self._path(hashlib.sha256(content).hexdigest())
        if path.exists():
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="new-")
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(name).replace(path)
        except OSError as error:
            raise UnavailableError(
                f"The policy cannot be kept for later replays: {error.strerror or error}.",
                next_step="Check the permissions and free space of the state folder.",
            ) from error

    def find(self, sha256: str) -> bytes | None:
        """The bytes with that hash; None if that version was never kept here, or its file was changed since."""
        if not _SHA256.fullmatch(sha256):
            return None
        try:
            content = self._path(sha256).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == sha256 else None

    def _path(self, sha256: str) -> Path:
        return self._folder / f"{sha256}.yaml"


POLL_SECONDS = 1.0
MOST_PROBLEMS = 50
MAX_PROBLEM = 300

START, FILE = "start", "file"
"""Who loads a policy, where it is no person: the gateway as it starts, and the watched file."""

logger = logging.getLogger(__name__)

Record = Callable[[PolicyLoaded | PolicyRefused], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """Why the file on disk is not in force. `sha256` is None where it could not be read."""

    sha256: str | None
    problems: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Reload:
    """What a reload did: `changed` if another policy is in force now; `refused` if the file did not load."""

    policy: Policy
    changed: bool
    refused: RefusedFile | None = None


class PolicyBook:
    """The policy of the file at `path`. The constructor loads it and raises ConfigurationError if it cannot be.

    `record` writes to the journal; a policy comes into force only after its record. `objections` may refuse a policy
    that is right in itself (it names a server that is not connected), with a sentence for each reason.
    """

    def __init__(
        self,
        path: Path,
        *,
        archive: PolicyArchive,
        record: Record,
        new_id: Callable[[], str],
        objections: Callable[[Policy], Sequence[str]] = lambda _: (),
        clock: Clock = utc_now,
    ) -> None:
        self._path = path
        self._archive = archive
        self._record = record
        self._new_id = new_id
        self._objections = objections
        self._clock = clock
        self._lock = anyio.Lock()
        self._first_signature = _signature(path)  # before the file is read, so that no change after it is missed
        self._text = read_policy_file(path)
        self._current = parse_policy_bytes(self._text, source=str(path))
        self._loaded_at = clock()
        self._refused: RefusedFile | None = None
        archive.keep(self._text)

    @property
    def current(self) -> Policy:
        return self._current

    @property
    def text(self) -> str:
        """The file of the policy in force, as it was read."""
        return self._text.decode()

    @property
    def loaded_at(self) -> datetime:
        return self._loaded_at

    @property
    def refused(self) -> RefusedFile | None:
        """The newest version of the file, if it did not load; None if it is in force."""
        return self._refused

    async def announce(self) -> None:
        """Put on record which policy this process starts with. Raises UnavailableError if that cannot be."""
        await self._record(self._loaded(self._current, None, START))

    async def reload(self, by: str = FILE) -> Reload:
        """Read the file now. Raises UnavailableError if the change cannot be recorded; then nothing changed."""
        async with self._lock:
            content: bytes | None = None
            try:
                content = await anyio.to_thread.run_sync(read_policy_file, self._path)
                if hashlib.sha256(content).hexdigest() == self._current.sha256:
                    self._refused = None
                    return Reload(self._current, changed=False)
                policy = await anyio.to_thread.run_sync(lambda: parse_policy_bytes(content, source=str(self._path)))
            except ConfigurationError as error:
                return await self._refuse(content, error.problems or (str(error),), by)
            objections = tuple(self._objections(policy))
            if objections:
                return await self._refuse(content, objections, by)
            await anyio.to_thread.run_sync(self._archive.keep, content)
            await self._record(self._loaded(policy, self._current.sha256, by))
            self._current, self._text, self._loaded_at, self._refused = policy, content, self._clock(), None
            logger.info("policy %s is in force, from %s", policy.sha256[:12], self._path.name)
            return Reload(policy, changed=True)

    async def watch(self, *, poll_s: float = POLL_SECONDS) -> None:
        """Reload whenever the file has changed and then stayed the same for one poll. Runs until it is cancelled."""
        seen = read = self._first_signature
        while True:
            await anyio.sleep(poll_s)
            now = _signature(self._path)
            if now == seen != read:
                try:
                    await self.reload()
                    read = now
                except UnavailableError as error:  # not on record, so not in force: tried again at the next poll
                    logger.error("the policy was not reloaded: %s", error)
                except Exception:  # a fault of ours in a new file must not end the gate that judges by the old one
                    logger.exception("the policy was not reloaded")
                    read = now
            seen = now

    async def _refuse(self, content: bytes | None, problems: Sequence[str], by: str) -> Reload:
        sha256 = None if content is None else hashlib.sha256(content).hexdigest()
        refused = RefusedFile(
            sha256, tuple(problem[:MAX_PROBLEM] for problem in problems[:MOST_PROBLEMS]), self._clock()
        )
        known = self._refused
        if known is None or (known.sha256, known.problems) != (refused.sha256, refused.problems) or by != FILE:
            await self._record(
                PolicyRefused(
                    audit_id=self._new_id(),
                    by=by,
                    policy_sha256=self._current.sha256,
                    refused_sha256=sha256,
                    source=str(self._path),
                    problems=refused.problems,
                    problems_in_all=len(problems),
                )
            )
            logger.warning(
                "the policy file %s was refused (%d problems; first: %s); policy %s stays in force",
                self._path.name,
                len(problems),
                problems[0],
                self._current.sha256[:12],
            )
        self._refused = refused
        return Reload(self._current, changed=False, refused=refused)

    def _loaded(self, policy: Policy, previous: str | None, by: str) -> PolicyLoaded:
        return PolicyLoaded(
            audit_id=self._new_id(),
            by=by,
            policy_sha256=policy.sha256,
            previous_sha256=previous,
            source=str(self._path),
            tools=len(policy.tools),
            rules=sum(len(tool.rules) for tool in policy.tools.values()),
        )


@contextlib.asynccontextmanager
async def watching(policies: Policies) -> AsyncIterator[None]:
    """While it is open, a file that changes is read again. Fixed policies need nothing."""
    if not isinstance(policies, PolicyBook):
        yield
        return
    await policies.announce()
    async with anyio.create_task_group() as group:
        group.start_soon(policies.watch)
        yield
        group.cancel_scope.cancel()


def changed_servers(before: Policy, after: Policy) -> list[str]:
    """Why `after` needs a new start: servers are connected when the gateway starts, and stay as they are then."""
    known = before.servers() | before.server_specs.keys() | set(OWN_SERVERS)
    changed = {
        name
        for name, spec in after.server_specs.items()
        if name in before.server_specs and replace(spec, line=0) != replace(before.server_specs[name], line=0)
    }
    sentence = "the tool server {!r} is {}: start the gateway again to bring it in"
    return [
        *(sentence.format(name, "new") for name in sorted((after.servers() | after.server_specs.keys()) - known)),
        *(sentence.format(name, "declared differently") for name in sorted(changed)),
    ]


def _signature(path: Path) -> tuple[int, ...]:
    """Changes with the file: its content, its permissions, another file in its place. Empty where there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
