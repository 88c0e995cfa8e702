"""The optional keys of a policy file: on labels, on tool servers of other makers, on what a person is shown before they
decide, and what the file may leave out about the product's own tools.

Each function reads one key of a Section and notes every fault; `loading` decides whether the file is in force. A file
in the form of the source template names a tool and its rules alone; its parameters are then those of the tool's schema,
each text in the canonical form that keeps a rule from being walked around (`./confidential//x`). Nothing else has a
default here: what is not said stays the worst.

Each function reads one key of a Section and notes every fault; `loading` decides whether the file is in force. A
credential stands here by reference only, as the name of a `SENTINEL_UPSTREAM_` variable; its value never does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from sentinel_rag.contracts.file_tools import FILE_TOOLS
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.servers import LOOPBACK_NAMES, OWN_SERVERS
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import PREVIEW_TOOLS
from sentinel_rag.contracts.web_tools import WEB_TOOLS
from sentinel_rag.gateway.policy.conditions import TypeName, ValueType, closest
from sentinel_rag.gateway.policy.conditions.tree import BadPattern, compile_pattern
from sentinel_rag.gateway.policy.model import (
    ANY,
    AS_IT_COMES,
    DEFAULT_SERVER,
    POLICY_KINDS,
    RESULT_FORMS,
    UNDECLARED,
    AgentMemory,
    Declassification,
    Deed,
    Effect,
    Endorsement,
    Exposure,
    FieldExposure,
    FieldLabel,
    NamedKind,
    Parameter,
    Path,
    Policy,
    Preview,
    PublicKind,
    Rate,
    ResultFields,
    ServerSpec,
    ToolPolicy,
    ValueKind,
    Volume,
    pointer_text,
)
from sentinel_rag.gateway.policy.section import Section

QUERY_SHAPED = frozenset({"run_freeform_kql", "get_alert_events"})
"""Tools of the Sentinel server whose columns are named, and whose rows may be made up, by the text of a query: `project
Total = CommandLine`, `evaluate pivot(CommandLine)`, `print owner = "..."`."""

MANY_NAMES: Mapping[str, str] = {
    "get_incident_detail": "incident",
    "query_alerts": "incident",
    "search_knowledge_base": "like_incident",
}
"""Tools of this product with a parameter that takes one incident by its number, a GUID, a Defender id or an address."""

_FORMATS = {"file_path": "path", "directory": "path", "url": "url"}


@dataclass(frozen=True, slots=True)
class OwnTool:
    """The server that runs a tool, and its parameters by name."""

    server: str
    parameters: Mapping[str, Parameter]


def _own(server: str, schema: ToolSchema) -> OwnTool:
    required = schema.required()
    return OwnTool(
        server,
        {
            name: Parameter(
                name, ValueType(TypeName(str(wanted["type"]))), required=name in required, format=_FORMATS.get(name)
            )
            for name, wanted in schema.parameter_schemas().items()
        },
    )


OWN_TOOLS: Mapping[str, OwnTool] = {
    **{schema.name: _own("files", schema) for schema in FILE_TOOLS},
    **{schema.name: _own("web", schema) for schema in WEB_TOOLS},
}


MAX_RATE_SECONDS = 86_400.0
MAX_RATE_CALLS = 1_000_000
MAX_DOMAIN = 253
MAX_COUNT = 1_000
MAX_MEMORY_DAYS = 36_500
MAX_DENIAL_HOURS = 720
"""As long as decided approvals are kept."""
MAX_VOLUME_SECONDS = 31 * 86_400.0

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_RESOURCE = re.compile(r"[A-Za-z0-9_.-]+(?:/(?:[A-Za-z0-9_.-]+|\{[A-Za-z0-9_.-]+\}|\*))*")
_PLACE = re.compile(r"\{([^{}]*)\}")
_NOUN = re.compile(r"[^\W\d_][\w-]{0,63}")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+")
_LEVELS = [level.name for level in Sensitivity]
_INTEGRITIES = [integrity.name for integrity in Integrity]


def label(section: Section, key: str) -> Label | None:
    """`{sensitivity: LOW, integrity: UNTRUSTED}`, both sides written out; None if the key is missing."""
    inner = section.section(key, ("sensitivity", "integrity"))
    return None if inner is None else _label_of(inner)


def fields(tool: Section) -> ResultFields:
    """`output_labels` and `exposure`."""
    labels: list[FieldLabel] = []
    for section in tool.sections("output_labels", "an output label", ("path", "sensitivity", "integrity")):
        labels.append(FieldLabel(section.pointer("path", required=True), _label_of(section)))
    exposures: list[FieldExposure] = []
    for section in tool.sections("exposure", "an exposure", ("path", "mode")):
        mode = section.choice("mode", [mode.value for mode in Exposure], Exposure.HIDE.value, required=True)
        exposures.append(FieldExposure(section.pointer("path", required=True), Exposure(mode)))
    for what, paths in (("output_labels", [e.path for e in labels]), ("exposure", [e.path for e in exposures])):
        if len(set(paths)) != len(paths):
            tool.fault(what, f"{what} names one path twice")
    return ResultFields(tuple(labels), tuple(exposures))


def check_query_shaped(tool: Section, result: ResultFields) -> None:
    """Note what is wrong with the labels and exposures of a tool whose columns are named by the text of a query.

    A pattern by a column's name holds nothing back, since a query calls a column as it likes; and the names that it
    gives may be values of rows, so what holds for `/rows` has to hold for `/columns` too.
    """
    for key, paths in (
        ("output_labels", [entry.path for entry in result.labels]),
        ("exposure", [entry.path for entry in result.exposures]),
    ):
        for path in paths:
            if len(path) > 1 and path[0] in (*_OF_QUERY, ANY):
                message = (
                    f"{key}: a query names its columns itself, so {pointer_text(path)} holds nothing back; "
                    "name /rows and /columns as a whole"
                )
                tool.fault(key, message)
    rows, columns = ((name,) for name in _OF_QUERY)
    if result.exposure_at(rows) is not result.exposure_at(columns):
        message = "exposure: names of columns may be values of rows, so /rows and /columns need one mode"
        tool.fault("exposure", message)
    if result.label_at(rows) != result.label_at(columns):
        message = "output_labels: names of columns may be values of rows, so /rows and /columns need one label"
        tool.fault("output_labels", message)


_OF_QUERY = ("rows", "columns")
"""The parts of a result whose keys and names the query gives."""


def row_labels(tool: Section) -> Path | None:
    """`row_labels`: the JSON pointer of the list whose rows carry labels of their own; None if it is missing."""
    if not tool.has("row_labels"):
        return None
    _only_ours(tool, "row_labels", "tells labels")
    path = tool.pointer("row_labels", required=True)
    if ANY in path:
        tool.fault("row_labels", "row_labels names one list, so it holds no *")
    return path


def sends_readers(tool: Section) -> bool:
    """`sends_readers`: whether the server is told under which names the caller may read."""
    if tool.flag("sends_readers"):
        _only_ours(tool, "sends_readers", "is told who may read")
        return True
    return False


def _only_ours(tool: Section, key: str, what: str) -> None:
    server = tool.text("server") or DEFAULT_SERVER
    if server not in OWN_SERVERS:
        message = f"{key}: no server but those of the product ({', '.join(OWN_SERVERS)}) {what}, and {server!r} is none"
        tool.fault(key, message)


def resources(tool: Section, key: str, parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """`reads` and `writes`: texts such as `incident/{incident}` or, for reads, `incident/*`."""
    found: list[str] = []
    for text in tool.texts(key, pattern=_RESOURCE, form="resources such as incident/{incident}"):
        names = _PLACE.findall(text)
        for name in names:
            if name not in parameters:
                message = f"{key} speaks about an unknown parameter {name!r}{closest(name, parameters)}"
                tool.fault(key, message)
            elif key == "writes" and not parameters[name].required:
                tool.fault(key, f"{key} needs a required parameter, {name!r} may be left out")
            elif parameters[name].type.kind not in (TypeName.STRING, TypeName.INTEGER):
                tool.fault(key, f"{key} needs a string or integer, {name!r} is none")
        if "*" in text and (key == "writes" or not text.endswith("/*") or text.count("*") > 1):
            tool.fault(key, "* may stand once, at the end of what a tool reads")
        found.append(text)
    return tuple(found)


def check_many_names(tool: Section, parameter: str) -> None:
    """Note a resource read under one of its several names: what was written under another would not count."""
    item = tool.item("reads")
    for text in item.value if item is not None and isinstance(item.value, list) else []:
        if parameter in _PLACE.findall(str(text.value)):
            tool.fault(
                "reads",
                f"reads: an incident has several names (a number, a GUID, an address), and {text.value} would miss "
                "what was written under another; write incident/*",
            )


def rate(tool: Section) -> Rate | None:
    """`{calls: 30, seconds: 60}`."""
    section = tool.section("rate", ("calls", "seconds"))
    if section is None:
        return None
    calls = section.whole("calls", high=MAX_RATE_CALLS, required=True)
    seconds = section.number("seconds", low=1, high=MAX_RATE_SECONDS, required=True)
    return None if calls is None or seconds is None else Rate(calls, seconds)


def named_limit(tool: Section) -> int | None:
    """`named_limit`: how often a named value passes in a session; None if it is missing."""
    return tool.whole("named_limit", high=MAX_COUNT)


def result_form(tool: Section) -> str:
    """`result`: how a server of another maker writes its rows; `text` for what is taken as it comes."""
    form = tool.choice("result", RESULT_FORMS, AS_IT_COMES)
    if tool.has("result") and (tool.text("server") or DEFAULT_SERVER) in OWN_SERVERS:
        tool.fault("result", "result: the servers of the product tell typed rows themselves")
    return form


def attested_kinds(
    section: Section, key: str, value_type: ValueType, kinds: Mapping[str, NamedKind]
) -> tuple[str, ...]:
    """The kinds of value that a user's words may name, one or a list, for a text, a whole number or a list of texts."""
    known = [*POLICY_KINDS, *kinds]
    item = section.item(key)
    if item is not None and isinstance(item.value, list):
        found = tuple(str(each.value) for each in item.value)
        for each in found:
            if each not in known:
                section.fault(key, f"unknown {key} {each!r}{closest(each, known)}")
    else:
        text = section.choice(key, known, "")
        found = (text,) if text else ()
    texts = value_type.kind is TypeName.ARRAY and value_type.items is TypeName.STRING
    if found and value_type.kind not in (TypeName.STRING, TypeName.INTEGER) and not texts:
        section.fault(key, f"{key} belongs to the type string or integer, or an array of strings")
    return found


def together_faults(parameters: Mapping[str, Parameter], name: str) -> list[str]:
    """What is wrong with the `together` of a parameter."""
    parameter = parameters[name]
    if not parameter.together:
        return []
    other = parameters.get(parameter.together)
    if other is None:
        return [f"together names an unknown parameter {parameter.together!r}{closest(parameter.together, parameters)}"]
    if other is parameter or not parameter.attest or not other.attest or other.together:
        return ["together joins two parameters, each with an attest, and the other one stands for itself"]
    if TypeName.ARRAY in (parameter.type.kind, other.type.kind):
        return ["together joins single values, and no lists"]
    if ValueKind.WORDS in (*parameter.attest, *other.attest):
        return ["together joins values, and words are any passage of a sentence"]
    return []


def rule_accepts(rule: Section, parameters: Mapping[str, Parameter]) -> Mapping[str, Label]:
    """`accepts` of a rule: labels by the names of parameters."""
    section = rule.section("accepts", tuple(parameters))
    found = {} if section is None else {name: label(section, name) for name in parameters}
    return {name: each for name, each in found.items() if each is not None}


def declassifications(file: Section, tools: Mapping[str, ToolPolicy]) -> tuple[Declassification, ...]:
    """The top-level list `declassification`."""
    found: list[Declassification] = []
    keys = ("name", "tool", "parameter", "form", "max_length", "to")
    for section in file.sections("declassification", "a declassification", keys):
        name = section.text("name", required=True, pattern=_NAME)
        tool, parameter = _parameter(section, tools)
        form = section.choice("form", [form.value for form in PublicKind], PublicKind.HASH.value, required=True)
        length = section.number("max_length", low=1, high=MAX_DOMAIN)
        to = label(section, "to")
        if to is None:
            section.fault("to", "a declassification has no to")
        else:
            found.append(Declassification(name, tool, parameter, PublicKind(form), int(length or MAX_DOMAIN), to))
    _claim_names(file, "declassification", [rule.name for rule in found])
    return tuple(found)


def endorsements(
    file: Section, tools: Mapping[str, ToolPolicy], kinds: Mapping[str, NamedKind]
) -> tuple[Endorsement, ...]:
    """The top-level list `endorsement`."""
    found: list[Endorsement] = []
    keys = ("name", "tool", "parameter", "rows", "match", "match_kind", "path", "kind", "inside", "most")
    known = [*POLICY_KINDS, *kinds]
    for section in file.sections("endorsement", "an endorsement", keys):
        name = section.text("name", required=True, pattern=_NAME)
        by_rows = section.has("rows")
        if by_rows and section.has("parameter"):
            section.fault("rows", "an endorsement has a parameter or rows, not both")
        tool, parameter = _tool(section, tools) if by_rows else _parameter(section, tools)
        policy = tools.get(tool)
        if policy is not None and policy.server == DEFAULT_SERVER and policy.name in QUERY_SHAPED:
            message = f"the rows of {policy.name} are whatever its query makes, so they endorse nothing"
            section.fault("tool", message)
        if policy is not None and parameter and not policy.parameters[parameter].attest:
            message = f"the parameter {parameter!r} has no attest, so the user's words never name it"
            section.fault("parameter", message)
        kind = section.choice("kind", known, ValueKind.HOST.value, required=True)
        if not by_rows:
            for key in ("match", "match_kind"):
                if section.has(key):
                    section.fault(key, f"{key} belongs to an endorsement with rows")
        found.append(
            Endorsement(
                name=name,
                tool=tool,
                parameter=parameter,
                path=section.pointer("path", required=True),
                kind=kind,
                rows=section.pointer("rows", required=True) if by_rows else None,
                match=section.pointer("match", required=True) if by_rows else (),
                match_kind=section.choice("match_kind", known, "", required=True) if by_rows else "",
                inside=section.flag("inside"),
                most=section.whole("most", high=MAX_COUNT),
            )
        )
    _claim_names(file, "endorsement", [rule.name for rule in found])
    return tuple(found)


def kinds(file: Section) -> Mapping[str, NamedKind]:
    """The top-level list `kinds`."""
    found: dict[str, NamedKind] = {}
    for section in file.sections("kinds", "a kind", ("name", "pattern", "beside", "any_case")):
        name = section.text("name", required=True, pattern=_NAME)
        if name in found or name in list(ValueKind):
            section.fault("name", f"there is a kind {name!r} already")
        pattern = section.text("pattern", required=True)
        nouns = section.texts("beside", pattern=_NOUN, form="nouns in lower case")
        try:
            compile_pattern(pattern)  # by itself, so that what is wrong is told as it was written
            whole, start = (compile_pattern(f"^(?:{pattern}){end}") for end in ("$", ""))
        except BadPattern as error:
            if pattern:
                section.fault("pattern", f"{error} (RE2 syntax)")
            continue
        if whole.search("") is not None:
            section.fault("pattern", "the pattern of a kind may not take the empty text")
        found[name] = NamedKind(name, pattern, whole, start, tuple(nouns), section.flag("any_case"))
    return found


def link_hosts(file: Section) -> frozenset[str]:
    """The top-level list `link_hosts`: host names in lower case with at least one dot."""
    return frozenset(file.texts("link_hosts", pattern=_HOST, form="host names such as learn.microsoft.com"))


def agents(file: Section) -> tuple[Mapping[str, AgentMemory], frozenset[str]]:
    """The top-level list `agents`: what the operator attests of the agents of some keys, which memory they have, and
    which of them have a client whose person answers."""
    found: dict[str, AgentMemory] = {}
    confirming: set[str] = set()
    for section in file.sections("agents", "an agent", ("key", "memory", "client_confirms")):
        key = section.text("key", required=True)
        if key in found:
            section.fault("key", f"the agent {key!r} stands twice")
        kinds = [memory.value for memory in AgentMemory]
        found[key] = AgentMemory(section.choice("memory", kinds, AgentMemory.KEY.value, required=True))
        if section.flag("client_confirms"):
            confirming.add(key)
    return found, frozenset(confirming)


def volumes(file: Section) -> tuple[Volume, ...]:
    """The top-level list `volume`."""
    found: list[Volume] = []
    for section in file.sections("volume", "a volume", ("name", "tables", "rows", "seconds")):
        name = section.text("name", required=True, pattern=_NAME)
        tables = section.texts("tables", pattern=_NAME)
        if not tables:
            section.fault("tables", "a volume has no tables")
        rows = section.whole("rows", high=MAX_RATE_CALLS, required=True)
        seconds = section.number("seconds", low=1, high=MAX_VOLUME_SECONDS, required=True)
        found.append(Volume(name, frozenset(tables), rows or 1, seconds or 1.0))
    _claim_names(file, "volume", [volume.name for volume in found])
    return tuple(found)


def memory(file: Section) -> timedelta:
    """The top-level `memory_days`: whole days for which an agent may remember what it was shown; zero if missing."""
    return timedelta(days=file.whole("memory_days", high=MAX_MEMORY_DAYS) or 0)


def denial_holds(file: Section) -> timedelta:
    """The top-level `denial_hours`: whole hours for which a person's no to a call binds; a day if missing."""
    return timedelta(hours=file.whole("denial_hours", high=MAX_DENIAL_HOURS) or 24)


def _label_of(section: Section) -> Label:
    # A missing or misspelt side is a problem already; until then the file is not in force.
    sensitivity = section.choice("sensitivity", _LEVELS, UNDECLARED.sensitivity.name, required=True)
    integrity = section.choice("integrity", _INTEGRITIES, UNDECLARED.integrity.name, required=True)
    return Label(Sensitivity[sensitivity], Integrity[integrity])


def _tool(section: Section, tools: Mapping[str, ToolPolicy]) -> tuple[str, str]:
    """The tool that a named rule speaks about, empty where it is not known, and no parameter."""
    name = section.text("tool", required=True, pattern=_NAME)
    tool = tools.get(name)
    if tool is None and name:
        section.fault("tool", f"unknown tool {name!r}{closest(name, tools)}")
    return ("" if tool is None else tool.name), ""


def _parameter(section: Section, tools: Mapping[str, ToolPolicy]) -> tuple[str, str]:
    """The tool and the parameter that a named rule speaks about; empty where it is not known."""
    name, _ = _tool(section, tools)
    tool = tools.get(name)
    if tool is None:
        section.text("parameter", required=True)
        return "", ""
    parameter = section.text("parameter", required=True)
    if parameter not in tool.parameters:
        if parameter:
            message = f"unknown parameter {parameter!r}{closest(parameter, tool.parameters)}"
            section.fault("parameter", message)
        return tool.name, ""
    return tool.name, parameter


def _claim_names(file: Section, key: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        file.fault(key, f"two rules of {key} have one name")


SERVER_KEYS = (
    *("name", "url", "token_variable", "insecure", "command", "environment", "secret_environment", "shared", "era"),
)
ERAS = ("2025-11-25", "2026-07-28")

_URL_ONLY = ("token_variable", "insecure")
_COMMAND_ONLY = ("environment", "secret_environment", "shared")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"SENTINEL_UPSTREAM_[A-Z0-9_]{1,100}")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def servers(file: Section) -> dict[str, ServerSpec]:
    """The declared servers by name."""
    found: dict[str, ServerSpec] = {}
    for section in file.sections("servers", "a server", SERVER_KEYS):
        spec = _server(section)
        if spec.name in OWN_SERVERS:
            message = f"the server {spec.name!r} is part of the product and needs no entry: choose another name"
            section.fault("name", message)
        elif spec.name in found:
            message = f"the server {spec.name!r} stands twice; first on line {found[spec.name].line}"
            section.fault("name", message)
        elif spec.name:
            found[spec.name] = spec
    return found


def _server(section: Section) -> ServerSpec:
    name = section.text("name", required=True, pattern=_SERVER_NAME)
    has_url = section.has("url")
    if section.is_mapping and has_url == section.has("command"):
        section.fault(section.start, f"the server {name!r} needs either a url or a command")
    else:
        for key in _COMMAND_ONLY if has_url else _URL_ONLY:
            if section.has(key):
                belongs = "command" if has_url else "url"
                section.fault(key, f"{key} belongs to a server with a {belongs}")
    environment = _texts(section, "environment")
    secret_environment = _texts(section, "secret_environment")
    for variable in secret_environment.values():
        _check_variable(section, "secret_environment", variable)
    for twice in environment.keys() & secret_environment.keys():
        message = f"{twice} stands in environment and in secret_environment"
        section.fault("secret_environment", message)
    token_variable = section.text("token_variable")
    if token_variable:
        _check_variable(section, "token_variable", token_variable)
    return ServerSpec(
        name=name,
        url=_url(section),
        command=_command(section),
        token_variable=token_variable,
        environment=environment,
        secret_environment=secret_environment,
        era=section.choice("era", ERAS, ""),
        shared=section.flag("shared"),
        line=section.line("name"),
    )


def _url(section: Section) -> str:
    text = section.text("url")
    insecure = section.flag("insecure")
    if not text:
        return ""
    problem = ""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        problem = f"{text!r} is not a URL"
    else:
        if parts.username is not None or parts.password is not None:
            problem = "a URL with a user or password in it is not taken: name a token_variable"
        elif parts.scheme not in ("http", "https") or not host or parts.fragment:
            problem = f"{text!r} is not an http or https URL"
        elif parts.scheme == "http" and host not in LOOPBACK_NAMES and not insecure:
            problem = "plain http to another machine: use https, or accept that all can be read with insecure: true"
    if problem:
        section.fault("url", problem)
    return text


def _command(section: Section) -> tuple[str, ...]:
    items = section.items("command")
    words = [item.value for item in items if isinstance(item.value, str)]
    if len(words) < len(items) or (section.has("command") and not words):
        section.fault("command", "command must be a list of texts: the program, its arguments")
    elif words and (not words[0] or ("/" in words[0] and not words[0].startswith("/"))):
        message = f"the program {words[0]!r} must be a name to be found on PATH, or an absolute path"
        section.fault("command", message)
    elif any("\0" in word for word in words):
        section.fault("command", "command holds a NUL")
    return tuple(words)


def _texts(section: Section, key: str) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for name, value in section.mapping(key, "names to texts").items():
        if not _ENVIRONMENT_NAME.fullmatch(name):
            section.fault(value.key_line, f"{name!r} cannot be the name of an environment variable")
        elif not isinstance(value.value, str) or "\0" in value.value:
            section.fault(value.line, f"{key}: {name} must be a text, not {value.kind()}: write it in quotes")
        else:
            texts[name] = value.value
    return texts


def _check_variable(section: Section, key: str, name: str) -> None:
    if not _VARIABLE.fullmatch(name):  # it may be the secret itself, so it goes into no message
        message = "here stands the name of a variable such as SENTINEL_UPSTREAM_TOKEN, never the credential itself"
        section.fault(key, message)


def unknown_servers(policy: Policy) -> list[str]:
    """A sentence for each tool whose server is neither part of the product nor declared."""
    known = (*OWN_SERVERS, *policy.server_specs)
    return [
        f"The tool {tool.name!r} is on the server {tool.server!r}, which is not in servers{closest(tool.server, known)}"
        for tool in policy.tools.values()
        if tool.server not in known
    ]


KEYS = ("tool", "arguments", "number", "name", "state", "changes", "fields", "deeds")
MAX_DEED = 200

_TOOL_OR_ARGUMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_OURS = frozenset(tool.name for tool in PREVIEW_TOOLS)


def deed(tool: Section, parameters: Mapping[str, Parameter]) -> str:
    """`deed`: what a call does, as a phrase such as `fetch {url}`."""
    text = tool.text("deed")
    if len(text) > MAX_DEED or not text.isprintable():
        tool.fault("deed", f"deed must be one line of at most {MAX_DEED} characters")
    for name in _PLACE.findall(text):
        if name not in parameters:
            message = f"deed speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            tool.fault("deed", message)
    return text


def preview(tool: Section, parameters: Mapping[str, Parameter]) -> Preview | None:
    """`preview`: how the gateway reads what the call is for; None if it is missing. See `check_previews`."""
    section = tool.section("preview", KEYS)
    if section is None:
        return None
    arguments = section.texts("arguments", pattern=_TOOL_OR_ARGUMENT)
    fields = _paths(section, "fields")
    for name in (*arguments, *fields):
        if name not in parameters:
            message = f"preview speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            section.fault("arguments", message)
    if section.has("changes") is section.has("fields"):
        section.fault(section.start, "preview has either changes or fields")
    return Preview(
        tool=section.text("tool", required=True, pattern=_TOOL_OR_ARGUMENT),
        arguments=tuple(arguments),
        number=section.place("number"),
        name=section.place("name"),
        state=_paths(section, "state"),
        changes=section.place("changes"),
        fields=fields,
        deeds=tuple(
            Deed(each.text("field", required=True), each.text("say", required=True), each.text("becomes"))
            for each in section.sections("deeds", "a deed", ("field", "becomes", "say"))
        ),
    )


def check_previews(tools: Sequence[tuple[ToolPolicy, Section]]) -> None:
    """Note what is wrong with the tools by which previews are read; each tool comes with its section. One that is not
    known to read only could change something before anybody was asked."""
    reading = {(tool.server, tool.name) for tool, _ in tools if tool.effect is Effect.READ}
    reading |= {(DEFAULT_SERVER, name) for name in _OURS}
    for tool, section in tools:
        if tool.preview is not None and (tool.server, tool.preview.tool) not in reading:
            fault = f"preview: {tool.preview.tool!r} is no tool of server {tool.server!r} with effect: read"
            section.fault("preview", fault)


def _paths(section: Section, key: str) -> dict[str, Path]:
    names = tuple(section.mapping(key, "names to paths"))
    named = section.section(key, names) if names else None
    return {} if named is None else {name: named.place(name) for name in names}
