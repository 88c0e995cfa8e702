"""The registry of KQL templates: data files in `templates/` and in a folder of people's own, all or nothing.

A template is KQL with `{slots}`: one for each declared parameter, and `{window}` for the time window. A slot is only
ever replaced by a typed literal. A file that names an unknown key, an undeclared slot or a default outside its own
bounds refuses the whole registry, with every fault told.

Parameters of a KQL template: declared types, checked values, literals.

A value is checked against its declaration and becomes one KQL literal; it is never text in a query. Errors name the
parameter as `parameters.<name>` and say what would have been taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryFailedError, TimeWindow, invalid_argument, parse_time
from sentinel_rag.sentinel.arguments import nearest_hint, read_span, within
from sentinel_rag.sentinel.logs import kql_literals
from sentinel_rag.sentinel.logs.kql_literals import MOST_READ, holding

if TYPE_CHECKING:
    from yaml.nodes import Node


PARAMETER_TYPES = ("string", "int", "real", "bool", "datetime", "timespan", "list", "enum")
LONGEST_TEXT = 500
LONGEST_LIST = 100
_SAMPLE_TIME = datetime(2024, 1, 1, tzinfo=UTC)
_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "real": "a number",
    "bool": "true or false",
    "datetime": "an ISO 8601 time with zone, such as 2024-07-02T09:45:00Z",
    "timespan": "a span such as 30m, 1h, 2d, 01:30:00 or PT1H",
    "list": "a list of texts",
    "enum": "one of the allowed values",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateParameter:
    """A declaration. `minimum` and `maximum` bound numbers; `pattern` must match a whole text; `names` tell by table
    the expression whose values it is one of, so that a part of a name can be told from a name without rows."""

    name: str
    type: str
    description: str
    required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    allowed: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def declared(cls, name: str, declaration: Mapping[str, Any]) -> TemplateParameter:
        """From a declaration of a template file that `template_registry` found sound."""
        return cls(
            name=name,
            type=declaration["type"],
            description=declaration["description"],
            required=declaration.get("required", False),
            default=declaration.get("default"),
            minimum=declaration.get("min"),
            maximum=declaration.get("max"),
            pattern=declaration.get("pattern"),
            allowed=tuple(declaration.get("allowed") or ()),
            names=tuple((declaration.get("names") or {}).items()),
        )

    def literal(self, value: Any) -> str:
        """The KQL literal for `value`. Raises QueryFailedError INVALID_ARGUMENT for a value outside the declaration."""
        match self.type:
            case "string":
                return kql_literals.string_literal(self._text(value))
            case "enum":
                return kql_literals.string_literal(self._choice(value))
            case "int":
                return kql_literals.long_literal(self._whole_number(value))
            case "real":
                return kql_literals.real_literal(self._number(value))
            case "bool":
                if not isinstance(value, bool):
                    raise self._wrong(value)
                return kql_literals.bool_literal(value)
            case "datetime":
                return kql_literals.datetime_literal(self._time(value))
            case "timespan":
                return kql_literals.timespan_literal(self._span(value))
            case _:
                return kql_literals.list_literal(self._texts(value))

    def from_text(self, text: str) -> Any:
        """The value that a person typed as `name=text`; a list by commas. What does not fit stays text, which `literal`
        refuses by name."""
        try:
            match self.type:
                case "int":
                    return int(text)
                case "real":
                    return float(text)
                case "bool":
                    return {"true": True, "false": False}.get(text.strip().lower(), text)
                case "list":
                    return [part.strip() for part in text.split(",") if part.strip()]
        except ValueError:
            pass
        return text

    def sample_literal(self) -> str:
        """Any literal of the type, to try a query with: the default, or one that is made up."""
        if self.default is not None:
            return self.literal(self.default)
        match self.type:
            case "enum":
                return self.literal(self.allowed[0])
            case "int" | "real":
                return self.literal(self.minimum if self.minimum is not None else min(1, self.maximum or 1))
            case "bool":
                return kql_literals.bool_literal(True)
            case "datetime":
                return kql_literals.datetime_literal(_SAMPLE_TIME)
            case "timespan":
                return kql_literals.timespan_literal(timedelta(hours=1))
            case "list":
                return kql_literals.list_literal(["x"])
            case _:
                return kql_literals.string_literal("x")

    def brief(self) -> str:
        """`user` where a value is needed, else the name with its default: `min_failures=1`."""
        return self.name if self.required else f"{self.name}={self.default}"

    def to_dict(self) -> dict[str, JsonValue]:
        """As list_kql_templates shows it."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "default": self.default,
            "description": self.description,
            "allowed": list(self.allowed),
        }

    def _text(self, value: Any) -> str:
        if not isinstance(value, str) or not _is_encodable(value):
            raise self._wrong(value)
        if len(value) > LONGEST_TEXT:
            raise self._refused(f"may be {LONGEST_TEXT} characters long, not {len(value)}")
        if self.required and not value.strip():
            raise self._refused("must not be empty")
        if self.pattern is not None and value and re.fullmatch(self.pattern, value) is None:
            raise self._refused(f"does not have the right form ({self.description.rstrip('.')})")
        return value

    def _choice(self, value: Any) -> str:
        chosen = {allowed.casefold(): allowed for allowed in self.allowed}.get(str(value).casefold())
        if not isinstance(value, str) or chosen is None:
            raise invalid_argument(
                f"parameters.{self.name}",
                f"{self.name} cannot be {_shown(value)}.{nearest_hint(str(value), self.allowed)}",
                allowed=self.allowed,
            )
        return chosen

    def _whole_number(self, value: Any) -> int:
        self._number(value)
        if value != value // 1:
            raise self._wrong(value)
        if not kql_literals.LONG_MIN <= value <= kql_literals.LONG_MAX:
            raise self._refused("must fit a 64-bit whole number")
        return int(value)

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(value)
        try:
            number = float(value)
        except OverflowError:
            raise self._refused("is larger than any number of a query") from None
        if self.minimum is not None and not number >= self.minimum:
            raise self._refused(f"must be at least {self.minimum:g}, not {number:g}")
        if self.maximum is not None and not number <= self.maximum:
            raise self._refused(f"must be at most {self.maximum:g}, not {number:g}")
        return number

    def _time(self, value: Any) -> datetime:
        try:
            return parse_time(value)
        except (ValueError, TypeError, AttributeError):
            raise self._wrong(value) from None

    def _span(self, value: Any) -> timedelta:
        if isinstance(value, str):
            with suppress(ValueError, OverflowError):
                return read_span(value)
        raise self._wrong(value)

    def _texts(self, value: Any) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) and _is_encodable(item) for item in value):
            raise self._wrong(value)
        if len(value) > LONGEST_LIST:
            raise self._refused(f"may hold {LONGEST_LIST} texts, not {len(value)}")
        if self.required and not value:
            raise self._refused("must not be empty")
        return value

    def _wrong(self, value: Any) -> Exception:
        return self._refused(f"must be {_EXPECTED[self.type]}, not {_shown(value)}")

    def _refused(self, reason: str) -> Exception:
        return invalid_argument(
            f"parameters.{self.name}", f"{self.name} {reason}.", next_step=f"{self.name}: {self.description}"
        )


def _shown(value: Any) -> str:
    """The value as a message repeats it: short, whatever it is."""
    try:
        return repr(value)[:60]
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of thousands of digits"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form
        return False
    return True


def bind(parameters: tuple[TemplateParameter, ...], given: Mapping[str, Any], template: str) -> dict[str, str]:
    """A literal for each parameter, defaults filled in. Raises QueryFailedError INVALID_ARGUMENT."""
    names = tuple(parameter.name for parameter in parameters)
    for name in given:
        if name not in names:
            takes = f"It takes: {', '.join(names)}." if names else "It takes no parameters."
            raise invalid_argument(
                f"parameters.{name}",
                f"The template {template} has no parameter {name!r}. {takes}{nearest_hint(name, names)}",
                allowed=names,
                next_step="list_kql_templates tells each template's parameters.",
            )
    literals = {}
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is None:
            if parameter.required:
                raise invalid_argument(
                    f"parameters.{parameter.name}",
                    f"The template {template} needs the parameter {parameter.name}: {parameter.description}",
                    next_step=f"Give {parameter.name} ({_EXPECTED[parameter.type]}).",
                )
            value = parameter.default
        literals[parameter.name] = parameter.literal(value)
    return literals


LARGEST_BYTES = 100_000

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplateFault:
    """What is wrong, and with which value: the keys that lead to it, and the slot of the query if it is one."""

    text: str
    keys: Keys = ()
    slot: str = ""


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """A file that could be read. `lines` has the line (from 1) of each path of keys."""

    document: Any
    lines: Mapping[Keys, int]
    text: str

    def line_of(self, fault: TemplateFault) -> int:
        """The line of the fault's value, or of the nearest key above it that the file has."""
        keys = fault.keys
        while keys and keys not in self.lines:
            keys = keys[:-1]
        line = self.lines.get(keys, 1)
        if fault.slot:
            for number, content in enumerate(self.text.splitlines()[line - 1 :], start=line):
                if f"{{{fault.slot}}}" in content:
                    return number
        return line

    def line_of_query(self, kql_line: int) -> int:
        """The line of the file in which that line (from 1) of the query stands."""
        key = self.lines.get(("kql",), 1)
        written = self.text.splitlines()[key - 1 :]
        first = 1 if written and written[0].rstrip().endswith(("|", "|-", "|+", ">", ">-", ">+")) else 0
        while first < len(written) - 1 and not written[first].strip():
            first += 1
        return key + first + kql_line - 1


def read_template_file(path: Path) -> TemplateFile | list[str]:
    """The file, or what kept it from being read, each as `name:line: sentence`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = path.read_bytes()
        if len(content) > LARGEST_BYTES:
            return [f"{path.name}:1: is larger than {LARGEST_BYTES:,} bytes, so it is no template"]
        text = content.decode("utf-8-sig")
        node = yaml.compose(text, Loader=loader)
        document = yaml.load(text, Loader=loader)  # noqa: S506  # a safe loader in C
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return [f"{path.name}:{line}: not UTF-8 text"]
    except OSError as error:
        return [f"{path.name}:1: cannot be read ({error.strerror})"]
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-01
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error)
        return [f"{path.name}:{1 if mark is None else mark.line + 1}: not valid YAML: {' '.join(reason.split())}"]
    lines: dict[Keys, int] = {}
    twice = []
    for keys, line in _key_lines(node, ()):
        if keys in lines:
            twice.append(f"{path.name}:{line}: {keys[-1]!r} stands here again, after line {lines[keys]}")
        lines[keys] = line
    return twice or TemplateFile(document, lines, text)


def _key_lines(node: Node | None, above: Keys) -> Iterator[tuple[Keys, int]]:
    from yaml.nodes import MappingNode, ScalarNode

    if not isinstance(node, MappingNode) or len(above) > 2:
        return
    for key, value in node.value:
        if isinstance(key, ScalarNode):
            keys = (*above, str(key.value))
            yield keys, key.start_mark.line + 1
            yield from _key_lines(value, keys)


WINDOW_SLOT = "window"
SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TECHNIQUE = re.compile(r"T[0-9]{4}(?:\.[0-9]{3})?")
_QUOTED_TEXT = r"""@"[^"\n]*"|@'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
_QUOTED = re.compile(_QUOTED_TEXT)
_COMMENT_OR_QUOTED = re.compile(rf"{_QUOTED_TEXT}|//[^\n]*")
_TEMPLATE_KEYS = (
    "name",
    "description",
    "tables",
    "time_column",
    "window_on",
    "parameters",
    "questions",
    "tactics",
    "techniques",
    "totals",
    "kql",
)
_PARAMETER_KEYS = ("type", "description", "required", "default", "min", "max", "pattern", "allowed", "names")


def faults_of(document: Any, stem: str) -> list[TemplateFault]:
    """Everything that is wrong with one file; empty for a sound one."""
    if not isinstance(document, Mapping):
        return [TemplateFault("not a mapping of keys")]
    faults = _unknown_keys(document, _TEMPLATE_KEYS, ())
    for key in ("name", "description", "time_column", "kql"):
        if not isinstance(document.get(key), str) or not document[key].strip():
            faults.append(TemplateFault(f"{key} must be text", (key,)))
    for key, least in (("tables", 1), ("questions", 1), ("tactics", 0), ("techniques", 0), ("totals", 0)):
        value = document.get(key, [])
        if not isinstance(value, list) or len(value) < least or not all(isinstance(item, str) for item in value):
            faults.append(
                TemplateFault(f"{key} must be a list of texts" + (" with at least one" if least else ""), (key,))
            )
    parameters = document.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        faults.append(TemplateFault("parameters must be a mapping of declarations", ("parameters",)))
    if faults:
        return faults
    if document["name"] != stem or _NAME.fullmatch(stem) is None:
        faults.append(
            TemplateFault(
                f"name {document['name']!r} must be the file's name, in lower case with underscores", ("name",)
            )
        )
    faults += [
        TemplateFault(f"{key} {document[key]!r} is not a column name", (key,))
        for key in ("time_column", "window_on")
        if key in document and _COLUMN.fullmatch(str(document[key])) is None
    ]
    faults += [
        TemplateFault(f"tables: {table!r} is not a table name", ("tables",))
        for table in document["tables"]
        if _COLUMN.fullmatch(table) is None and table[1:-1] not in parameters
    ]
    faults += [
        TemplateFault(f"technique {technique!r} is not of the form T1078 or T1078.004", ("techniques",))
        for technique in document.get("techniques", ())
        if _TECHNIQUE.fullmatch(technique) is None
    ]
    for name, declared in parameters.items():
        faults += _parameter_faults(str(name), declared, document["tables"])
    return faults + _slot_faults(document["kql"], tuple(map(str, parameters))) + _total_faults(document)


def _parameter_faults(name: str, declared: Any, tables: Sequence[str]) -> list[TemplateFault]:
    keys = ("parameters", name)
    if not isinstance(declared, Mapping):
        return [TemplateFault(f"parameter {name!r}: must be a mapping", keys)]
    faults = _unknown_keys(declared, _PARAMETER_KEYS, keys)

    def wrong(text: str, key: str | None = None) -> None:
        faults.append(TemplateFault(f"parameter {name!r}: {text}", keys if key is None else (*keys, key)))

    if _NAME.fullmatch(name) is None or name == WINDOW_SLOT:
        wrong("the name must be lower case with underscores, and not 'window'")
    if declared.get("type") not in PARAMETER_TYPES:
        wrong(f"type must be one of {', '.join(PARAMETER_TYPES)}", "type")
    if not isinstance(declared.get("description"), str):
        wrong("description must be text", "description")
    allowed = declared.get("allowed")
    if (declared.get("type") == "enum") != bool(allowed):
        wrong("an enum, and only an enum, has allowed values", "allowed")
    elif allowed and not (isinstance(allowed, list) and all(isinstance(value, str) for value in allowed)):
        wrong("allowed must be a list of texts", "allowed")
    names = declared.get("names") or {}
    if not isinstance(names, Mapping) or not all(isinstance(each, str) for pair in names.items() for each in pair):
        wrong("names must tell an expression for each table", "names")
    elif names and declared.get("type") != "string":
        wrong("only a string is one of names", "names")
    else:
        for table in names:
            if table not in tables:
                wrong(f"names: {table!r} is not among the tables", "names")
    if bool(declared.get("required", False)) == ("default" in declared):
        wrong("a parameter is either required or has a default")
    for bound in ("min", "max"):
        value = declared.get(bound)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            wrong(f"{bound} must be a number", bound)
    try:
        re.compile(str(declared.get("pattern") or ""))
    except re.error as error:
        wrong(f"pattern is no regular expression: {error}", "pattern")
    if not faults and "default" in declared:
        try:
            TemplateParameter.declared(name, declared).literal(declared["default"])
        except QueryFailedError as failure:
            wrong(f"its own default is refused: {failure}", "default")
    return faults


def _unknown_keys(mapping: Mapping[Any, Any], known: tuple[str, ...], above: Keys) -> list[TemplateFault]:
    of = f"parameter {above[-1]!r}: " if above else ""
    return [
        TemplateFault(f"{of}unknown key {key!r}.{nearest_hint(str(key), known)}", (*above, str(key)))
        for key in mapping
        if key not in known
    ]


def _slot_faults(query: str, declared: tuple[str, ...]) -> list[TemplateFault]:
    kql = _COMMENT_OR_QUOTED.sub(lambda part: "" if part[0].startswith("//") else part[0], query)
    used = set(SLOT.findall(kql))
    faults = [
        TemplateFault(f"slot {{{slot}}} is not a declared parameter.{nearest_hint(slot, declared)}", ("kql",), slot)
        for slot in sorted(used - set(declared) - {WINDOW_SLOT})
    ]
    faults += [
        TemplateFault(f"parameter {name!r} is never used", ("parameters", name))
        for name in declared
        if name not in used
    ]
    if WINDOW_SLOT not in used:
        faults.append(TemplateFault("the query has no {window} slot, so the time window would not hold", ("kql",)))
    quoted = sorted({slot for literal in _QUOTED.findall(kql) for slot in SLOT.findall(literal)})
    return faults + [
        TemplateFault(
            f"slot {{{slot}}} stands inside quotes; a slot becomes a whole literal, so leave them out", ("kql",), slot
        )
        for slot in quoted
    ]


def _total_faults(document: Mapping[str, Any]) -> list[TemplateFault]:
    columns = set(_COLUMN.findall(SLOT.sub("", document["kql"])))
    return [
        TemplateFault(f"totals: the query has no column {name!r}.{nearest_hint(name, tuple(columns))}", ("totals",))
        for name in document.get("totals", ())
        if name not in columns
    ]


_SAMPLE_WINDOW = TimeWindow(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
TEMPLATE_FOLDER = Path(__file__).parent
_LONGEST_FILTER = 100
"""Characters of a condition that an answer repeats."""
_QUOTED = re.compile(r"""@?"[^"\n]*"|@?'[^'\n]*'""")


@dataclass(frozen=True, slots=True, kw_only=True)
class KqlTemplate:
    """A checked template. `window_on` is the column of the query that `{window}` bounds (`time_column` by default);
    `totals` are columns of counts that can be added up over all rows."""

    name: str
    description: str
    tables: tuple[str, ...]
    time_column: str
    window_on: str
    parameters: tuple[TemplateParameter, ...]
    questions: tuple[str, ...]
    tactics: tuple[str, ...]
    techniques: tuple[str, ...]
    totals: tuple[str, ...]
    kql: str

    def render(self, values: Mapping[str, Any], window: TimeWindow) -> str:
        """The query with every slot filled. Raises QueryFailedError INVALID_ARGUMENT for a wrong value."""
        literals = bind(self.parameters, values, self.name)
        literals[WINDOW_SLOT] = within(self.window_on, window)
        return SLOT.sub(lambda slot: literals[slot[1]], self.kql)

    @property
    def filters(self) -> list[str]:
        """The conditions that its rows always fulfil, whatever is asked for, where a line of its own holds one."""
        lines = [line.strip() for line in self.kql.rpartition(";\n")[2].splitlines()]
        depth, found = 0, []
        for line, following in zip(lines, [*lines[1:], "|"], strict=True):
            condition = line.removeprefix("| where ")
            whole = not depth and following.startswith("|") and condition != line  # no part of a union filters all rows
            if whole and len(condition) <= _LONGEST_FILTER and not SLOT.search(condition):
                found.append(condition)
            bare = _QUOTED.sub("", line)
            depth += bare.count("(") - bare.count(")")
        return found

    def tables_of(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The tables that it reads; one that a parameter names is the value of that."""
        return tuple(str(values.get(table[1:-1])) if table.startswith("{") else table for table in self.tables)

    def sample_query(self) -> str:
        """A query of this template's shape, to see whether it runs: sample values and a window."""
        literals = {parameter.name: parameter.sample_literal() for parameter in self.parameters}
        literals[WINDOW_SLOT] = within(self.window_on, _SAMPLE_WINDOW)
        return SLOT.sub(lambda slot: literals[slot[1]], self.kql)

    def names_query(self, parameter: TemplateParameter, given: str) -> str:
        """The names like `given` that the tables hold in the place of a parameter's, the commonest first."""
        parts = ",\n".join(f"({table}\n| project Name = {expression})" for table, expression in parameter.names)
        return (
            f"union isfuzzy=true\n{parts}\n| where {holding('Name', given)}\n"
            f"| summarize Rows = count() by Name\n| order by Rows desc, Name asc\n| take {MOST_READ}"
        )

    def to_row(self) -> dict[str, JsonValue]:
        """As list_kql_templates shows one of few."""
        return {
            "name": self.name,
            "description": self.description,
            "tables": list(self.tables),
            "parameters": [parameter.to_dict() for parameter in self.parameters],
            "questions": list(self.questions),
            "tactics": list(self.tactics),
            "techniques": list(self.techniques),
        }

    def to_brief_row(self) -> dict[str, JsonValue]:
        """As list_kql_templates shows one of many: the first sentence of its description, and what it takes."""
        purpose, stop, _ = self.description.partition(". ")
        return {
            "name": self.name,
            "description": purpose + stop.strip(),
            "parameters": [parameter.brief() for parameter in self.parameters],
        }


def load_templates(folder: Path = TEMPLATE_FOLDER, *, own: Path | None = None) -> dict[str, KqlTemplate]:
    """All templates of `folder`, and those of people's `own` folder, by name, in the order of their names.

    Raises ConfigurationError whose `problems` name file, line and fault, if any file of a folder is not right, or if
    one of the own templates has the name of one in `folder`.
    """
    templates = dict(_shipped_templates()) if folder == TEMPLATE_FOLDER else _templates_of(folder, taken={})
    if own is not None:
        templates |= _templates_of(own, taken=templates)
    return dict(sorted(templates.items()))


@cache
def _shipped_templates() -> Mapping[str, KqlTemplate]:
    """Read once a process: they are part of the program, and fifty files of YAML are a tenth of a second."""
    return _templates_of(TEMPLATE_FOLDER, taken={})


def _templates_of(folder: Path, *, taken: Mapping[str, KqlTemplate]) -> dict[str, KqlTemplate]:
    templates: dict[str, KqlTemplate] = {}
    problems = misnamed_files(folder)
    for path in template_paths(folder):
        read = read_template(path, taken=taken)
        if isinstance(read, KqlTemplate):
            templates[read.name] = read
        else:
            problems += read
    if not templates and not problems and not taken:
        problems.append(f"no template lies in {folder.name}/")
    if problems:
        raise ConfigurationError(
            f"The KQL templates in {folder} have {len(problems)} fault{'s' if len(problems) != 1 else ''}; none was "
            f"loaded. First: {problems[0]}",
            problems=tuple(problems),
            next_step="Correct the named files; sentinel kql lint checks them again.",
        )
    return templates


def template_paths(folder: Path) -> list[Path]:
    """The template files of a folder, not of folders in it."""
    return sorted(folder.glob("*.yaml"))


def misnamed_files(folder: Path) -> list[str]:
    """Files that look like templates and would be passed over."""
    return [f"{path.name}:1: would be passed over; name it {path.stem}.yaml" for path in sorted(folder.glob("*.yml"))]


def read_template(path: Path, *, taken: Collection[str] = ()) -> KqlTemplate | list[str]:
    """The template of one file, or its problems, each as `file:line: sentence`. `taken` are names it must not have."""
    file = read_template_file(path)
    if isinstance(file, list):
        return file
    faults = faults_of(file.document, path.stem)
    if path.stem in taken:
        faults.append(TemplateFault(f"{path.stem!r} is the name of a shipped template; choose another", ("name",)))
    if faults:
        return [f"{path.name}:{file.line_of(fault)}: {fault.text}" for fault in faults]
    return _template(file.document)


def _template(document: Mapping[str, Any]) -> KqlTemplate:
    parameters = document.get("parameters") or {}
    return KqlTemplate(
        name=document["name"],
        description=document["description"],
        tables=tuple(document["tables"]),
        time_column=document["time_column"],
        window_on=document.get("window_on") or document["time_column"],
        parameters=tuple(TemplateParameter.declared(name, declared) for name, declared in parameters.items()),
        questions=tuple(document["questions"]),
        tactics=tuple(document.get("tactics") or ()),
        techniques=tuple(document.get("techniques") or ()),
        totals=tuple(document.get("totals") or ()),
        kql=document["kql"].strip(),
    )
