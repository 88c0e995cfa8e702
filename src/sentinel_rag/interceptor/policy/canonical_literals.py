"""Texts in a condition that no argument can ever equal or begin with, because its format writes them differently.

`file_path.startswith('/etc')` over a parameter of `format: path` looks like a rule and never fires: canonical paths do
not begin with a slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sentinel_rag.interceptor.argument_formats import FORMATS, NotCanonical
from sentinel_rag.interceptor.policy.conditions import Expression, children, tree

_CONTINUATIONS = ("", "x", "x/y", "/x", "1", "1/x", "=1")
_WHOLE_HOST = re.compile(r"https?://[^/]+/[^%]*")


def impossible_texts(condition: Expression, formats: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each such text. `formats` maps parameters to the names of their formats."""
    for subject, text, beginning in _texts(condition):
        form = formats.get(subject)
        if form is None:
            continue
        if not beginning:
            found = _canonical(form, text)
            if found != text:
                hint = f"; write {found!r}" if found is not None else ""
                yield f"{subject} has the format {form} and can never be {text!r}{hint}"
        elif not _may_begin(form, text):
            yield f"{subject} has the format {form} and can never begin with {text!r}"


def _texts(node: Expression) -> Iterator[tuple[str, str, bool]]:
    """Parameter, text, and whether the text is only its beginning."""
    match node:
        case tree.Comparison(tree.Argument(name), ((("==" | "!="), tree.Literal(str(text))),)):
            yield name, text, False
        case tree.Comparison(tree.Literal(str(text)), ((("==" | "!="), tree.Argument(name)),)):
            yield name, text, False
        case tree.Comparison(tree.Argument(name), ((("in" | "not in"), tree.Choices(values)),)):
            yield from ((name, value, False) for value in values if isinstance(value, str))
        case tree.StringTest("startswith", tree.Argument(name), tree.Literal(str(text))):
            yield name, text, True
        case tree.StringTest("startswith", tree.Argument(name), tree.Choices(values)):
            yield from ((name, value, True) for value in values if isinstance(value, str))
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
