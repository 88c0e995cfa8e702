"""YAML as a tree in which every value knows its line, within limits that a hostile file cannot pass.

Only plain mappings, sequences and scalars exist: an alias (the billion laughs), a tag or a merge key is a problem, and
so is a key that stands twice. Nothing is constructed from the file but str, bool, int, float, None, list and dict.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from sentinel_rag.contracts.json_values import JsonValue

MAX_BYTES = 1_000_000
MAX_DEPTH = 20

_BOOLEANS = {"true": True, "false": False}
_PREFIX = "tag:yaml.org,2002:"
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""One parser for both passes over a text, so that what was checked is what is read; libyaml's is ten times as fast."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of the file, at a line that counts from 1."""

    line: int
    message: str


class UnreadableYaml(Exception):
    """The file is not a tree; `problem` says where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(line, message)


@dataclass(frozen=True, slots=True)
class Item:
    """A value and the line where it starts. `value` is a scalar, a list of Items, or a dict from key to Item."""

    line: int
    value: str | bool | int | float | list[Item] | dict[str, Item] | None
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


def read_yaml(text: str) -> tuple[Item, list[Problem]]:
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
    problems: list[Problem] = []
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


def _item(node: yaml.Node, problems: list[Problem], key_line: int = 0) -> Item:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Item(line, _mapping(node, problems), key_line)
    if isinstance(node, yaml.SequenceNode):
        return Item(line, [_item(child, problems) for child in node.value], key_line)
    assert isinstance(node, yaml.ScalarNode)
    return Item(line, _scalar(node, problems), key_line)


def _mapping(node: yaml.MappingNode, problems: list[Problem]) -> dict[str, Item]:
    result: dict[str, Item] = {}
    for key, child in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            problems.append(Problem(line, "a key must be a text"))
        elif key.value in result:
            problems.append(
                Problem(line, f"the key {key.value!r} stands twice; first on line {result[key.value].key_line}")
            )
        else:
            result[key.value] = _item(child, problems, line)
    return result


def _scalar(node: yaml.ScalarNode, problems: list[Problem]) -> str | bool | int | float | None:
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
        problems.append(Problem(node.start_mark.line + 1, f"{text!r} is ambiguous in YAML: write it in quotes"))
    return str(text)
