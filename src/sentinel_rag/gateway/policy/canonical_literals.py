"""Texts in a condition that no argument can ever equal or begin with, because its format writes them differently.

`file_path.startswith('/etc')` over a parameter of `format: path` looks like a rule and never fires: canonical paths do
not begin with a slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto

from sentinel_rag.gateway.argument_formats import FORMATS, NotCanonical
from sentinel_rag.gateway.policy.conditions import Expression, Kind, children, tree
from sentinel_rag.gateway.policy.model import Parameter

_CONTINUATIONS = ("", "x", "x/y", "/x", "1", "1/x", "=1")
_WHOLE_HOST = re.compile(r"https?://[^/]+/[^%]*")


def impossible_texts(condition: Expression, parameters: Mapping[str, Parameter]) -> Iterator[str]:
    """A sentence for each such text."""
    for name, text, part in _texts(condition):
        parameter = parameters[name]
        form = parameter.format
        if form is None or (part is _Part.ELEMENT) is not (parameter.type.kind is Kind.ARRAY):
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
        case tree.Comparison(tree.Argument(name), ((("==" | "!="), tree.Literal(str(text))),)):
            yield name, text, _Part.WHOLE
        case tree.Comparison(tree.Literal(str(text)), ((("==" | "!="), tree.Argument(name)),)):
            yield name, text, _Part.WHOLE
        case tree.Comparison(tree.Argument(name), ((("in" | "not in"), tree.Choices(values)),)):
            yield from ((name, value, _Part.WHOLE) for value in values if isinstance(value, str))
        case tree.StringTest("startswith", tree.Argument(name), tree.Literal(str(text))):
            yield name, text, _Part.BEGINNING
        case tree.Comparison(tree.Literal(str(text)), ((("in" | "not in"), tree.Argument(name)),)):
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
