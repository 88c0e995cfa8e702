"""The YAML of a policy file as a tree in which every value knows its line, read key by key.

Only plain mappings, sequences and scalars exist: an alias (the billion laughs), a tag or a merge key is a problem, and
so is a key that stands twice. A reader never stops at a fault: it notes it and returns a harmless value, so that one
look shows every fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.gateway.policy.conditions import closest
from sentinel_rag.gateway.policy.model import ANY, Path, parse_pointer

MAX_BYTES = 1_000_000
MAX_DEPTH = 20

_BOOLEANS = {"true": True, "false": False}
_PREFIX = "tag:yaml.org,2002:"
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""One parser for both passes over a text, so that what was checked is what is read; libyaml's is ten times as fast."""


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """One fault of the file, at a line that counts from 1."""

    line: int
    message: str


class UnreadableYaml(Exception):
    """The file is not a tree; `problem` says where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.problem = PolicyProblem(line, message)


@dataclass(frozen=True, slots=True)
class YamlItem:
    """A value and the line where it starts. `value` is a scalar, a list of Items, or a dict from key to Item."""

    line: int
    value: str | bool | int | float | list[YamlItem] | dict[str, YamlItem] | None
    key_line: int = 0

    def plain(self) -> JsonValue:
        """The value without its lines."""
        match self.value:
            case dict():
                return {key: item.plain() for key, item in self.value.items()}
            case list():
                return [item.plain() for item in self.value]
            case _:
                return self.value

    def kind(self) -> str:
        """What to call it in a message."""
        match self.value:
            case dict():
                return "a mapping"
            case list():
                return "a list"
            case bool():
                return "true or false"
            case str():
                return "a text"
            case None:
                return "nothing"
            case _:
                return "a number"


def read_yaml(text: str) -> tuple[YamlItem, list[PolicyProblem]]:
    """The tree of the one document in `text`, with the problems that do not hide its shape (a key given twice).

    Raises UnreadableYaml where there is no tree to speak of.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise UnreadableYaml(1, f"the file has more than {MAX_BYTES} bytes")
    try:
        _refuse_bombs(text, _LOADER)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as refused:
        error = _in_full_words(text, refused)
        mark = error.problem_mark or error.context_mark
        raise UnreadableYaml(mark.line + 1 if mark else 1, f"not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnreadableYaml(1, f"not YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        raise UnreadableYaml(1, "the file is empty")
    problems: list[PolicyProblem] = []
    return _item(node, problems), problems


def _in_full_words(text: str, refused: yaml.MarkedYAMLError) -> yaml.MarkedYAMLError:
    """The same fault as the slower parser tells it: libyaml leaves out what it found, and may count a line too many.

    It looks as far as the levels that are allowed: beyond, its time grows with their square.
    """
    try:
        _refuse_bombs(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        return error
    except yaml.reader.ReaderError:
        pass  # a character that it takes nowhere, where libyaml came to another fault first
    return refused


def _refuse_bombs(text: str, loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> None:
    """Look at the events, which cost nothing to hold, before any tree is built."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UnreadableYaml(line, "anchors and aliases are not allowed: write the value out")
        tag = getattr(event, "tag", None)
        if tag:
            raise UnreadableYaml(line, f"the tag {tag} is not allowed")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise UnreadableYaml(line, f"more than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _item(node: yaml.Node, problems: list[PolicyProblem], key_line: int = 0) -> YamlItem:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return YamlItem(line, _mapping(node, problems), key_line)
    if isinstance(node, yaml.SequenceNode):
        return YamlItem(line, [_item(child, problems) for child in node.value], key_line)
    assert isinstance(node, yaml.ScalarNode)
    return YamlItem(line, _scalar(node, problems), key_line)


def _mapping(node: yaml.MappingNode, problems: list[PolicyProblem]) -> dict[str, YamlItem]:
    result: dict[str, YamlItem] = {}
    for key, child in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            problems.append(PolicyProblem(line, "a key must be a text"))
        elif key.value in result:
            problems.append(
                PolicyProblem(line, f"the key {key.value!r} stands twice; first on line {result[key.value].key_line}")
            )
        else:
            result[key.value] = _item(child, problems, line)
    return result


def _scalar(node: yaml.ScalarNode, problems: list[PolicyProblem]) -> str | bool | int | float | None:
    text, tag = node.value, node.tag.removeprefix(_PREFIX)
    if tag == "null":
        return None
    if tag == "bool" and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    try:
        if tag == "int":
            return int(text)
        if tag == "float":
            return float(text)
    except ValueError:
        pass
    if tag != "str":  # yes, on, 0x1F, 1:30, a date: YAML 1.1 would turn them into something else
        problems.append(PolicyProblem(node.start_mark.line + 1, f"{text!r} is ambiguous in YAML: write it in quotes"))
    return str(text)


class Section:
    """The mapping `item`, called `what` in problems, of which only the keys in `known` exist."""

    def __init__(self, item: YamlItem, what: str, known: Sequence[str], problems: list[PolicyProblem]) -> None:
        self._what = what
        self._problems = problems
        self._line = item.line
        self._items: dict[str, YamlItem] = {}
        self._is_mapping = isinstance(item.value, dict)
        if not isinstance(item.value, dict):
            self.fault(item.line, f"{what} must be a mapping, not {item.kind()}")
            return
        self._items = item.value
        for key, value in item.value.items():
            if key not in known:
                self.fault(value.key_line, f"unknown key {key!r} in {what}{closest(key, known)}")

    @property
    def is_mapping(self) -> bool:
        """False for what is a problem as a whole already."""
        return self._is_mapping

    @property
    def start(self) -> int:
        """The line where it starts."""
        return self._line

    def fault(self, place: str | int, message: str) -> None:
        """Note what is wrong, at a key or a line."""
        line = self.line(place) if isinstance(place, str) else place
        self._problems.append(PolicyProblem(line, message))

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._items

    def section(self, key: str, known: Sequence[str], what: str = "") -> Section | None:
        """The mapping below the key; None if it is missing."""
        item = self._find(key, False)
        return None if item is None else Section(item, what or key, known, self._problems)

    def sections(self, key: str, what: str, known: Sequence[str], *, required: bool = False) -> list[Section]:
        """The mappings of a list; none if it is missing."""
        return [Section(item, what, known, self._problems) for item in self.items(key, required=required)]

    def line(self, key: str) -> int:
        """Where the key stands; where the mapping starts, if it is missing."""
        return self._items[key].key_line if key in self._items else self._line

    def text(self, key: str, *, required: bool = False, pattern: re.Pattern[str] | None = None) -> str:
        """A text; empty if it is missing."""
        item = self._find(key, required)
        if item is None:
            return ""
        if not isinstance(item.value, str):
            self.fault(item.line, f"{key} must be a text, not {item.kind()}")
            return ""
        if pattern is not None and not pattern.fullmatch(item.value):
            self.fault(item.line, f"{key} {item.value!r} may hold letters, digits, '_', '-' and '.' only")
            return ""
        return item.value

    def texts(
        self, key: str, *, pattern: re.Pattern[str], form: str = "names of letters, digits, '_', '-' and '.'"
    ) -> list[str]:
        """A list of texts; empty if it is missing. `form` says in words what `pattern` asks for."""
        found: list[str] = []
        for item in self.items(key):
            if isinstance(item.value, str) and pattern.fullmatch(item.value):
                found.append(item.value)
            else:
                self.fault(item.line, f"{key} must hold {form}")
        return found

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false; the default if it is missing."""
        item = self._find(key, False)
        if item is None:
            return default
        if not isinstance(item.value, bool):
            self.fault(item.line, f"{key} must be true or false, not {item.kind()}")
            return default
        return item.value

    def number(self, key: str, *, low: float, high: float, required: bool = False) -> float | None:
        """A number between the two; None if it is missing."""
        item = self._find(key, required)
        if item is None:
            return None
        if isinstance(item.value, bool) or not isinstance(item.value, int | float) or not low <= item.value <= high:
            self.fault(item.line, f"{key} must be a number from {low:g} to {high:g}")
            return None
        return float(item.value)

    def whole(self, key: str, *, high: int, required: bool = False) -> int | None:
        """A whole number from 1; None if it is missing."""
        number = self.number(key, low=1, high=high, required=required)
        if number is not None and number != int(number):
            self.fault(key, f"{key} must be a whole number")
        return None if number is None else int(number)

    def mapping(self, key: str, of: str) -> dict[str, YamlItem]:
        """The values below the key by their names, which are `of` something; none if it is missing."""
        item = self._find(key, False)
        if item is None:
            return {}
        if isinstance(item.value, dict):
            return item.value
        self.fault(item.line, f"{key} must be a mapping of {of}, not {item.kind()}")
        return {}

    def pointer(self, key: str, *, required: bool = False) -> Path:
        """A JSON pointer as its segments; the whole value if it is missing."""
        try:
            return parse_pointer(self.text(key, required=required))
        except ValueError as error:
            self.fault(key, f"{key}: {error}")
            return ()

    def place(self, key: str) -> Path:
        """A JSON pointer that leads to one place, so without a `*`."""
        path = self.pointer(key)
        if ANY in path:
            self.fault(key, f"{key} leads to one place, so it holds no *")
        return path

    def choice(self, key: str, allowed: Sequence[str], default: str, *, required: bool = False) -> str:
        """One of the allowed texts."""
        item = self._find(key, required)
        if item is None:
            return default
        if not isinstance(item.value, str):
            self.fault(item.line, f"{key} must be one of {', '.join(allowed)}, not {item.kind()}")
            return default
        if item.value not in allowed:
            self.fault(item.line, f"unknown {key} {item.value!r}{closest(item.value, allowed)}")
            return default
        return item.value

    def condition(self, key: str) -> str:
        """A condition, which YAML may have read as true or false."""
        item = self._find(key, True)
        if item is None:
            return ""
        if isinstance(item.value, bool):
            return "true" if item.value else "false"
        if not isinstance(item.value, str) or not item.value.strip():
            self.fault(item.line, f'{key} must be a text such as "true", not {item.kind()}')
            return ""
        return item.value

    def item(self, key: str) -> YamlItem | None:
        """The value as it stands; None if it is missing."""
        return self._find(key, False)

    def items(self, key: str, *, required: bool = False) -> list[YamlItem]:
        """The entries of a list; none if it is missing."""
        item = self._find(key, required)
        if item is None:
            return []
        if not isinstance(item.value, list):
            self.fault(item.line, f"{key} must be a list, not {item.kind()}")
            return []
        return item.value

    def _find(self, key: str, required: bool) -> YamlItem | None:
        item = self._items.get(key)
        if item is None and required and self._is_mapping:
            self.fault(self._line, f"{self._what} has no {key}")
        return item
