"""A loaded policy as frozen values: which of its rules speaks about a call, what label each part of a result carries.

Whoever holds a `Policy` may rely on it: it was checked as a whole. First match decides; no match denies; a condition
that cannot be decided denies on the spot, before any later rule. Pure. A kind of values of a policy's own is a regular
expression and, if it asks for them, the nouns that must stand beside a value, so that "the general channel" names the
channel `general` and "in general" names none.

A pattern is a JSON pointer (RFC 6901) in which a segment `*` stands for every key or index; it speaks about the value
there and all below. Of the patterns that match a place the most specific decides: the longest, then the one with the
fewest `*`. A result has thousands of values and a policy a handful of patterns, so nearly all values share a few
places: what is said about one is asked once. Pure: what becomes of a hidden value is the business of `gateway.flow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, Protocol, assert_never

from sentinel_rag.contracts.labels import TOP, Integrity, Label, Sensitivity, join_all
from sentinel_rag.contracts.tool_calls import Allow, Decision, Deny, Reason
from sentinel_rag.gateway.policy.conditions import Expression, ValueType, evaluate
from sentinel_rag.gateway.policy.conditions.tree import Regex

ANY = "*"
MAX_SEGMENTS = 16

UNDECLARED = Label(integrity=Integrity.UNTRUSTED)
"""Whatever a tool returns may have been written by an attacker: log lines, file names, web pages."""

Path = tuple[str, ...]


class Exposure(StrEnum):
    """REVEAL: the agent sees the value. QUOTE: it sees it, marked as data of others. HIDE: it gets a handle."""

    REVEAL = "reveal"
    QUOTE = "quote"
    HIDE = "hide"


@dataclass(frozen=True, slots=True)
class FieldLabel:
    """The label of what the pattern `path` matches."""

    path: Path
    label: Label


@dataclass(frozen=True, slots=True)
class FieldExposure:
    """Whether the agent sees what the pattern `path` matches."""

    path: Path
    mode: Exposure


@dataclass(frozen=True, slots=True)
class ResultFields:
    """What a policy declares about the parts of one tool's result."""

    labels: tuple[FieldLabel, ...] = ()
    exposures: tuple[FieldExposure, ...] = ()

    def label_at(self, path: Sequence[str]) -> Label:
        """The declared label of the value at `path`, without the share of the rule and the arguments."""
        matching = [entry for entry in self.labels if covers(entry.path, path)]
        if not matching:
            return UNDECLARED
        best = max(_rank(entry.path) for entry in matching)
        return join_all(entry.label for entry in matching if _rank(entry.path) == best)

    def exposure_at(self, path: Sequence[str]) -> Exposure:
        """Whether the agent sees the value at `path`; of two modes equally specific the stricter."""
        matching = [entry for entry in self.exposures if covers(entry.path, path)]
        best = max((_rank(entry.path) for entry in matching), default=None)
        modes = {entry.mode for entry in matching if _rank(entry.path) == best}
        return next((mode for mode in (Exposure.HIDE, Exposure.QUOTE) if mode in modes), Exposure.REVEAL)

    def label_below(self, path: Sequence[str]) -> Label:
        """The join of the declared labels of the value at `path` and of every part of it."""
        below = (entry.label for entry in self.labels if _overlap(entry.path, path) and len(entry.path) > len(path))
        return join_all([self.label_at(path), *below])

    def is_uniform(self, path: Sequence[str]) -> bool:
        """Whether what holds for the value at `path` holds for every part of it: no longer pattern says otherwise."""
        mode = self.exposure_at(path)
        return not any(
            entry.mode is not mode and len(entry.path) > len(path) and _overlap(entry.path, path)
            for entry in self.exposures
        )

    def names_below(self, path: Sequence[str]) -> frozenset[str]:
        """The keys and indices directly below `path` that a pattern tells apart from the others there."""
        return frozenset(pattern[len(path)] for pattern in self._longer(path)) - {ANY}

    def reaches_below(self, path: Sequence[str]) -> bool:
        """Whether a pattern speaks about parts of the value at `path`."""
        return any(True for _ in self._longer(path))

    def _longer(self, path: Sequence[str]) -> Iterator[Path]:
        patterns = [*(entry.path for entry in self.labels), *(entry.path for entry in self.exposures)]
        return (pattern for pattern in patterns if len(pattern) > len(path) and _overlap(pattern, path))

    @property
    def hides(self) -> bool:
        return any(entry.mode is Exposure.HIDE for entry in self.exposures)

    def revealed(self) -> Label:
        """An upper bound of what the agent may see of a result, known before there is one. Hidden parts are left out
        only where no part of the pattern's region can be seen."""
        regions = [((), UNDECLARED), *((entry.path, entry.label) for entry in self.labels)]
        label = join_all(label for path, label in regions if not self._hidden_whole(path))
        quoted = any(entry.mode is Exposure.QUOTE for entry in self.exposures)
        return label.join(UNDECLARED) if quoted else label

    def whole(self) -> Label:
        """An upper bound of everything in a result, hidden parts too."""
        return join_all([UNDECLARED, *(entry.label for entry in self.labels)])

    def _hidden_whole(self, region: Path) -> bool:
        """Whether no place of the region can be seen: a hiding pattern covers it, and none that shows a part of it is
        more specific."""
        hiding = [_rank(e.path) for e in self.exposures if e.mode is Exposure.HIDE and covers(e.path, region)]
        showing = [_rank(e.path) for e in self.exposures if e.mode is not Exposure.HIDE and _overlap(e.path, region)]
        return bool(hiding) and all(rank <= max(hiding) for rank in showing)


NO_FIELDS = ResultFields()
"""Everything revealed, as text that an attacker may have written."""


def parse_pointer(text: str) -> Path:
    """The segments of a JSON pointer; the empty text is the whole value. Raises ValueError with a reason."""
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError("a pointer is empty or starts with /")
    segments = tuple(segment.replace("~1", "/").replace("~0", "~") for segment in text[1:].split("/"))
    if len(segments) > MAX_SEGMENTS:
        raise ValueError(f"a pointer has at most {MAX_SEGMENTS} segments")
    return segments


def pointer_text(path: Iterable[str]) -> str:
    """Inverse of `parse_pointer`."""
    return "".join("/" + segment.replace("~", "~0").replace("/", "~1") for segment in path)


def covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether `pattern` speaks about `path`: it matches it or a place above it. `path` may be a pattern itself; then
    every place it matches is meant."""
    return len(pattern) <= len(path) and all(
        part in (ANY, segment) for part, segment in zip(pattern, path, strict=False)
    )


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether some place lies in the regions of both."""
    return all(ANY in (a, b) or a == b for a, b in zip(one, other, strict=False))


def _rank(pattern: Path) -> tuple[int, int]:
    """How specific a pattern is; the greater decides."""
    return len(pattern), -sum(segment == ANY for segment in pattern)


class Place:
    """What the patterns say about a value and all below it. `whole` tells that the mode holds for every part of it,
    `silent` that this is to show it as it is; `label` is the join of the declared labels of the value and its parts."""

    def __init__(self, fields: ResultFields, path: Path) -> None:
        self.mode: Exposure = fields.exposure_at(path)
        self.label: Label = fields.label_below(path)
        self.whole: bool = fields.is_uniform(path)
        self.silent: bool = self.whole and self.mode is Exposure.REVEAL
        self._fields = fields
        self._path = path
        self._names = fields.names_below(path)

    def at(self, segment: str) -> Place:
        """The place of the part with that key or index."""
        return self.named.get(segment) or self.other

    @cached_property
    def named(self) -> Mapping[str, Place]:
        """The places of the parts that a pattern names."""
        return {name: Place(self._fields, (*self._path, name)) for name in sorted(self._names)}

    @cached_property
    def other(self) -> Place:
        """The place of every part that no pattern names."""
        # Longer than each name, so it is none of them: it stands for all segments that no pattern names.
        unnamed = "".join(self._names) + "-"
        deeper = self._fields.reaches_below(self._path)
        return Place(self._fields, (*self._path, unnamed)) if deeper else self


@lru_cache(maxsize=1_024)
def root(fields: ResultFields) -> Place:
    """The place of a whole result."""
    return Place(fields, ())


MOST_OF_A_KIND = 200
"""Characters of a value of such a kind."""


@dataclass(frozen=True, slots=True)
class NamedKind:
    """`pattern` is met by the whole of a value, and by nothing else; `regex` is its compiled form, anchored on both
    sides, `start` the one that is anchored at its beginning alone. `beside` are nouns in lower case, one of which
    stands directly before or after a value in words that name it; without any the value names itself. With `any_case`
    two values that differ in case are one."""

    name: str
    pattern: str
    regex: Regex = field(repr=False, compare=False)
    start: Regex = field(repr=False, compare=False)
    beside: tuple[str, ...] = ()
    any_case: bool = False

    def canonical(self, text: str) -> str | None:
        """The text by which a value is compared; None if it is no value of this kind."""
        text = text.strip()
        if not 0 < len(text) <= MOST_OF_A_KIND or self.regex.search(text) is None:
            return None
        return text.casefold() if self.any_case else text


NO_KINDS: Mapping[str, NamedKind] = {}


DEFAULT_SERVER = "sentinel"
"""The MCP server of a tool that names none."""

AS_IT_COMES, JSON_ROWS, KUSTO_V2 = RESULT_FORMS = ("text", "json-rows", "kusto-v2")
"""How a server of another maker may write its rows."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A tool server of another maker: either at `url`, or started as `command`.

    `token_variable` and the values of `secret_environment` name variables of the settings; no secret is in here.
    `era` is a protocol revision, empty to ask the server; `shared`: one process may serve all sessions. `line` is
    where it stands in the file.
    """

    name: str
    url: str = ""
    command: tuple[str, ...] = ()
    token_variable: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    secret_environment: Mapping[str, str] = field(default_factory=dict)
    era: str = ""
    shared: bool = False
    line: int = 0


class Effect(StrEnum):
    """What a call of the tool can change. READ: nothing. WRITE: the operator's own systems. EXTERNAL: it sends data
    out. A tool that does not say is EXTERNAL, the worst."""

    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


DEFAULT_CEILING: Mapping[Effect, Label] = {
    # A read changes nothing and sends nothing out: its arguments reach our own tool server only.
    Effect.READ: Label(Sensitivity.HIGH, Integrity.UNTRUSTED),
    # What is written stays with the operator, so it may be secret; a text of an attacker may not steer it.
    Effect.WRITE: Label(Sensitivity.HIGH, Integrity.TRUSTED),
    # What is sent out must be public; who wrote it does no harm there.
    Effect.EXTERNAL: Label(Sensitivity.LOW, Integrity.UNTRUSTED),
}
"""What the arguments of a tool may carry, where neither the tool nor the parameter says `accepts`."""


class ValueKind(StrEnum):
    """The kinds of values that a user's own words can name whatever the policy, for `attest` and `endorsement`
    (TAINT-5). A policy adds its own as `kinds`; a new one here needs its grammar in `flow.named_values`.

    DAY is a calendar day. SOUGHT is what the user asks to look up, as in "search the web for ..." or "what is ...".
    QUOTED is a text that the user put between quotation marks or after a colon, whole; WORDS any passage of the user's
    words.
    """

    INCIDENT = "incident"
    ACCOUNT = "account"
    IP = "ip"
    HOST = "host"
    EMAIL = "email"
    PATH = "path"
    URL = "url"
    TEMPLATE = "template"
    DAY = "day"
    SOUGHT = "sought"
    QUOTED = "quoted"
    WORDS = "words"


class NoteKind(StrEnum):
    """What a session notes beside the values that words name. No policy may write one of these as a kind.

    FRAME is a quoted text with places such as {name} in it, which is how a QUOTED parameter may be filled in; PLANNED,
    CHOSEN and PASSED are the steps of a plan, what their slots chose, and the steps and named values that have passed;
    ANSWER is which record answered to a text of the user's; TOGETHER two values that one sentence of the user's names.
    """

    FRAME = "frame"
    PLANNED = "planned"
    CHOSEN = "chosen"
    PASSED = "passed"
    ANSWER = "answer"
    TOGETHER = "together"


POLICY_KINDS = tuple(kind.value for kind in ValueKind)
"""What a policy may write as a kind, beside its own."""


class AgentMemory(StrEnum):
    """What an agent can still know of its other sessions. KEY: all that its key was shown, in whichever session.
    PERSON: what it was shown in sessions that the same person opened. CONVERSATION: nothing."""

    KEY = "key"
    PERSON = "person"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class Remembers:
    """Which of its sessions an agent may still know, and for how long the policy says so at least."""

    memory: AgentMemory = AgentMemory.KEY
    at_least: timedelta = timedelta(0)


class PublicKind(StrEnum):
    """The typed conditions of a declassification: forms with a bounded room that read as no sentence."""

    PUBLIC_IP = "public_ip"
    HASH = "hash"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool. `format` names the canonical form in which its text is judged and forwarded.

    `accepts` is the label that its value may carry at most, None for the tool's own; `attest` are the kinds of value
    that may carry the user's label instead of the context's, where the user's own words name it. A list carries it
    where each of its elements is named. With `together` one sentence has to name it and the value of that parameter.
    """

    name: str
    type: ValueType
    required: bool = False
    description: str = ""
    format: str | None = None
    accepts: Label | None = None
    attest: tuple[str, ...] = ()
    together: str = ""


@dataclass(frozen=True, slots=True)
class TaintRule:
    """`condition` is the author's text, `expression` its checked form. `line` is where it stands in the file.

    The first rule of a tool whose condition holds decides: it denies if `deny`, asks for a human if
    `requires_approval`, else allows; `taint_level` labels the result.
    """

    rule_id: str
    condition: str
    expression: Expression
    taint_level: Sensitivity
    requires_approval: bool = False
    deny: bool = False
    line: int = 0
    offers_approval: bool = False
    """Whether a human may let a call of this rule pass whose arguments carry more than the tool accepts. A rule that
    requires an approval offers one."""
    accepts: Mapping[str, Label] = field(default_factory=dict)
    """What parameters may carry at most in calls that this rule decides, instead of what they say themselves."""
    asks_the_asker: bool = False
    """Whether the person in whose session the agent asks may decide themselves. In a session of nobody's it is as
    without."""
    runs_at_yes: bool = False
    """Whether the call runs as soon as a person has approved it. Else it waits until the agent sends it again."""

    @property
    def may_ask(self) -> bool:
        return self.requires_approval or self.offers_approval


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `calls` in any `seconds` for one key."""

    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Volume:
    """A named rule about data and not about a tool: at most `rows` rows of these tables for one person within
    `seconds`, by whichever calls. What would be more is told once a person has approved exactly that call."""

    name: str
    tables: frozenset[str]
    rows: int
    seconds: float

    def sentence(self) -> str:
        return (
            f"More than {self.rows} rows of {', '.join(sorted(self.tables))} would be read for one person within "
            f"{self.seconds / 3600:g} h (volume {self.name})."
        )


@dataclass(frozen=True, slots=True)
class Declassification:
    """A named rule: the value of `parameter` of `tool`, if it is of the kind `form` and not longer than `max_length`,
    carries `to` instead of its label. Every use is on record."""

    name: str
    tool: str
    parameter: str
    form: PublicKind
    max_length: int
    to: Label


@dataclass(frozen=True, slots=True)
class Endorsement:
    """A named rule: values of a result of `tool` that count as named by the user too, as values of `kind`. Every use is
    on record.

    With `parameter`: the texts at `path`, after a call whose `parameter` the user's own words named. With `rows`: the
    text at `path` of each row of the list at `rows` whose own text at `match` the user's words name, as a value of
    `match_kind`; of two such rows with one text, none. `inside`: not the texts count, but each value of the kind that
    stands in them. With `most`, a result counts only if the session then has no more
    values by this rule.
    """

    name: str
    tool: str
    parameter: str
    path: Path
    kind: str
    rows: Path | None = None
    match: Path = ()
    match_kind: str = ""
    inside: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """What people call a change: `say` where the call writes `field`, of which it has to become `becomes`, if that is
    there."""

    field: str
    say: str
    becomes: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """How the gateway reads what a call is for, before it asks a person: by a tool of the same server that only reads,
    with the arguments of the call. Paths lead into its result."""

    tool: str
    arguments: tuple[str, ...] = ()
    """Those that are handed on; empty for all of the call."""
    number: Path = ()
    name: Path = ()
    state: Mapping[str, Path] = field(default_factory=dict)
    """Present values to show, by field."""
    changes: Path = ()
    """A list of `{field, before, after}` that the server works out; empty where `fields` says what is written."""
    fields: Mapping[str, Path] = field(default_factory=dict)
    """By parameter, where the value stands that it replaces."""
    deeds: tuple[Deed, ...] = ()
    """The first that fits names the change."""


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """One tool. `first_match` gives the index of the first rule that holds; see `conditions.compile_rules`.

    `fields` labels and exposes the parts of a result. `reads` and `writes` name resources whose stored label a call's
    result joins, or raises; each is a text such as `incident/{incident}`, and `incident/*` reads all of that kind.
    `approvers` are the key ids or names that may decide its approvals, empty for every key with that scope.
    `row_labels` is where the list lies whose rows carry labels of their own, told by the server; `sends_readers` lets
    the server know under which names the caller may read. Both are for servers of this product alone.
    `across_sessions`: what the agent writes counts as all that it may remember, and not as what it has seen in this
    session alone; without a word true for every tool that writes or sends.
    `named_limit` is how often a value that the user named passes in a session where the agent's own may not. `result`
    is the form in which a server of another maker writes its rows.
    """

    name: str
    description: str
    parameters: Mapping[str, Parameter]
    rules: tuple[TaintRule, ...]
    first_match: Callable[[Mapping[str, Any]], int] = field(repr=False, compare=False)
    server: str = DEFAULT_SERVER
    effect: Effect = Effect.EXTERNAL
    aliases: tuple[str, ...] = ()
    timeout_s: float | None = None
    accepts: Label | None = None
    fields: ResultFields = NO_FIELDS
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()
    rate: Rate | None = None
    row_labels: Path | None = None
    sends_readers: bool = False
    across_sessions: bool = False
    named_limit: int | None = None
    result: str = AS_IT_COMES
    deed: str = ""
    """What a call does, as a phrase behind "wants to", with `{parameter}` for a value; empty for the tool's name."""
    preview: Preview | None = None

    revealed: Label = field(init=False, repr=False, compare=False)
    """An upper bound of the declared labels of what the agent may see of a result."""
    _rules: Mapping[str | None, TaintRule] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "revealed", self.fields.revealed())
        object.__setattr__(self, "_rules", {rule.rule_id: rule for rule in self.rules})

    def rule(self, rule_id: str | None) -> TaintRule | None:
        """The rule of this tool with that id."""
        return self._rules.get(rule_id)

    def rule_label(self, rule_id: str | None) -> Label:
        """What a rule says about the secrecy of a result; who may have written it is the matter of `fields`."""
        rule = self._rules.get(rule_id)
        return TOP if rule is None else Label(rule.taint_level, Integrity.TRUSTED)

    def ceiling(self, parameter: str, rule_id: str | None = None) -> Label:
        """The label that an argument may carry at most, in a call that the rule with that id decides."""
        rule = self._rules.get(rule_id)
        said = None if rule is None else rule.accepts.get(parameter)
        return said or self.parameters[parameter].accepts or self.call_ceiling()

    def call_ceiling(self) -> Label:
        """The label that the fact of the call may carry at most."""
        return self.accepts or DEFAULT_CEILING[self.effect]


@dataclass(frozen=True, slots=True)
class Policy:
    """`tools` by name, in the order of the file. `sha256` is over the bytes of the file, so it names the version."""

    tools: Mapping[str, ToolPolicy]
    sha256: str
    source: str
    names: Mapping[str, ToolPolicy] = field(repr=False, default_factory=dict)
    """Every name that a caller may use: tools and their aliases. Nothing else is a tool."""
    declassifications: tuple[Declassification, ...] = ()
    endorsements: tuple[Endorsement, ...] = ()
    kinds: Mapping[str, NamedKind] = field(default_factory=lambda: NO_KINDS)
    """The kinds of values of its own, by name."""
    link_hosts: frozenset[str] = frozenset()
    """Hosts that a link in an argument may name without counting as a way out; each with all its subdomains."""
    server_specs: Mapping[str, ServerSpec] = field(default_factory=dict)
    """The tool servers of other makers, by name."""
    volumes: tuple[Volume, ...] = ()
    """How much of some tables is read without a person."""
    agents: Mapping[str, AgentMemory] = field(default_factory=dict)
    """By the id or name of a key: how the operator attests that its agent's memory is separated."""
    confirming: frozenset[str] = frozenset()
    """Ids or names of keys whose client shows questions to its person and lets no model answer them, as the operator
    attests."""
    memory: timedelta = timedelta(0)
    """How long an agent may remember, where that is longer than sessions and kept conversations live."""

    denial_holds: timedelta = timedelta(days=1)
    """How long a person's no to a call binds."""

    def remembers(self, key_id: str, key_name: str) -> Remembers:
        """What the agent with that key may know of its other sessions. An id goes before a name, which another key may
        have had."""
        memory = self.agents.get(key_id) or self.agents.get(key_name or key_id) or AgentMemory.KEY
        return Remembers(memory, self.memory)

    def client_confirms(self, key_id: str, key_name: str) -> bool:
        """Whether an answer that the client of that key gives to a question is its person's."""
        return key_id in self.confirming or (bool(key_name) and key_name in self.confirming)

    def tool(self, name: str) -> ToolPolicy | None:
        """The tool with exactly this name or alias; no folding of case, Unicode or white space."""
        return self.names.get(name)

    def attested(self) -> frozenset[str]:
        """Every kind that a parameter attests, or by which an endorsement finds its rows."""
        kinds = {kind for tool in self.tools.values() for each in tool.parameters.values() for kind in each.attest}
        return frozenset(kinds.union(rule.match_kind for rule in self.endorsements))

    def pairs(self) -> frozenset[tuple[str, str]]:
        """For each parameter that counts together with another one: a kind of that one and a kind of its own."""
        return frozenset(
            (other, kind)
            for tool in self.tools.values()
            for each in tool.parameters.values()
            if each.together
            for other in tool.parameters[each.together].attest
            for kind in each.attest
        )

    def servers(self) -> frozenset[str]:
        """The MCP servers that the tools name."""
        return frozenset(tool.server for tool in self.tools.values())


class Policies(Protocol):
    """Where the policy in force is found; it may be another one for the next call."""

    @property
    def current(self) -> Policy: ...


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """`Policies` that never change."""

    current: Policy


UNKNOWN_TOOL = Deny(Reason.UNKNOWN_TOOL, TOP)
"""The decision for a name that the policy does not have."""


def decide(tool: ToolPolicy, arguments: Mapping[str, Any]) -> Decision:
    """Judge a call whose arguments have the declared types. Never raises."""
    try:
        index = tool.first_match(arguments)
    except KeyError:
        return _decide_with_unknowns(tool, arguments)
    except Exception:  # whatever went wrong inside a condition, it was not decided: that is a refusal
        return Deny(Reason.CONDITION_UNDECIDED, TOP)
    return _apply(tool.rules[index]) if index >= 0 else Deny(Reason.NO_RULE_MATCHED, TOP)


def _decide_with_unknowns(tool: ToolPolicy, arguments: Mapping[str, Any]) -> Decision:
    for rule in tool.rules:
        try:
            verdict = evaluate(rule.expression, arguments)
        except Exception:  # as above
            verdict = None
        match verdict:
            case True:
                return _apply(rule)
            case None:
                return Deny(Reason.CONDITION_UNDECIDED, TOP, rule.rule_id)
            case False:
                continue
            case _:
                assert_never(verdict)
    return Deny(Reason.NO_RULE_MATCHED, TOP)


def _apply(rule: TaintRule) -> Decision:
    # What a rule says about secrecy is its own; who may have written the result is the tool's, and the gate adds it.
    label = Label(rule.taint_level, Integrity.TRUSTED)
    if rule.deny:
        return Deny(Reason.RULE_DENIES, label, rule.rule_id)
    if rule.requires_approval:
        return Deny(Reason.APPROVAL_REQUIRED, label, rule.rule_id)
    return Allow(rule.rule_id, label)
