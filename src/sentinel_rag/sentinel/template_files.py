"""Template files as text: YAML read with the line of every key, so that a fault can say where it stands.

`read_template_file` gives the document and its lines, or the faults that kept it from being read. What a document has
to hold is the business of `template_checks`; what becomes of it, of `template_registry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml.nodes import Node

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
