"""`docs/reference/metrics.md`: every metric that a zone can tell, as the sources declare it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.documentation.reference import markdown

INTRODUCTION = """
What `/metrics` tells, beside the `process_*` of Prometheus's client library. Where it is served, who may read it, the
dashboard and the alerts are told on [observability](../observability.md).
"""

KINDS = {"Counter": "counter", "Gauge": "gauge", "Histogram": "histogram"}
NAME = "sentinel_"


def page(repository: Path) -> str:
    rows = sorted(declared(repository / "src" / "sentinel_rag"))
    table = markdown.table(
        ("metric", "kind", "labels", "meaning"),
        ((markdown.code(name), kind, markdown.codes(labels), meaning) for name, kind, labels, meaning in rows),
    )
    return markdown.page("Metrics", INTRODUCTION, [table])


def declared(sources: Path) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Name, kind, labels and meaning of each metric that is made with a name of its own."""
    for path in sources.rglob("*.py"):
        text = path.read_text()
        if "testing" in path.parts or f'"{NAME}' not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KINDS:
                name, meaning = (_text(each) for each in [*call.args, None, None][:2])
                if name.startswith(NAME):
                    yield name, _kind(call), _labels(call), meaning


def _kind(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Name)
    return "counter" if any(keyword.arg == "counts" for keyword in call.keywords) else KINDS[call.func.id]


def _labels(call: ast.Call) -> tuple[str, ...]:
    for each in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if isinstance(each, ast.Tuple):
            return tuple(_text(label) for label in each.elts)
    return ()


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
