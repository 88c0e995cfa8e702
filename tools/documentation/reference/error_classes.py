"""The error codes of the product as its sources state them: classes with a `code`, and errors raised with one.

Read from the text of the sources, so that nothing heavy is imported for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_LIKELY = re.compile(r'\bcode ?= ?"')


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """`actor` and `meaning` are empty for a code that a single error is raised with."""

    code: str
    actor: str = ""
    meaning: str = ""


def error_codes(*sources: Path) -> list[ErrorCode]:
    """Every code of these folders once, classes before single errors, by name."""
    trees = [
        ast.parse(text)
        for folder in sources
        for path in sorted(folder.rglob("*.py"))
        if _LIKELY.search(text := path.read_text())
    ]
    classes = {each.name: each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}
    found = {each.code: each for each in _of_classes(classes)}
    raised = {code for tree in trees for code in _raised(tree)} - found.keys()
    return [found[code] for code in sorted(found)] + [ErrorCode(code) for code in sorted(raised)]


def _of_classes(classes: Mapping[str, ast.ClassDef]) -> Iterator[ErrorCode]:
    for each in classes.values():
        code = _assigned(each, "code")
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            meaning = " ".join((ast.get_docstring(each) or "").split())
            yield ErrorCode(code.value, _actor(each, classes), meaning)


def _actor(of: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> str:
    """The actor that a class or the nearest of those it is made from names."""
    told = _assigned(of, "actor")
    if isinstance(told, ast.Attribute):
        return told.attr.lower()
    bases = [classes[base.id] for base in of.bases if isinstance(base, ast.Name) and base.id in classes]
    return next((actor for base in bases if (actor := _actor(base, classes))), "")


def _assigned(of: ast.ClassDef, name: str) -> ast.expr | None:
    for statement in of.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in statement.targets
        ):
            return statement.value
    return None


def _raised(tree: ast.Module) -> Iterator[str]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.endswith("Error"):
            for keyword in call.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
