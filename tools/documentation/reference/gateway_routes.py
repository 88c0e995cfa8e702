"""`docs/reference/gateway-routes.md`: every route of the gateway with bodies and endings, from its own list."""

from __future__ import annotations

from pathlib import Path

from sentinel_rag.gateway.openapi import OPERATIONS, SCHEMAS, Operation
from tools.documentation.reference import markdown

INTRODUCTION = """
Every route of the gateway. `GET /v1/openapi.json` of a running one is the same as data, for the routes that it
serves. How to call it, its limits and what each refusal means is told on [the gateway's API](../gateway-api.md).
"""


def page(_: Path) -> str:
    parts = ["## All routes", _overview()]
    for operation in OPERATIONS:
        parts += [f"## {operation.method} {operation.path}", *_operation(operation)]
    parts += ["## Bodies", "Each by the name that routes and other bodies call it."]
    for name, schema in SCHEMAS.items():
        parts.append(f"### {name}")
        if "description" in schema:
            parts.append(str(schema["description"]))
        parts.append(
            markdown.fields(schema) if schema.get("properties") else f"Any {markdown.type_of(schema)} of that meaning."
        )
    return markdown.page("Routes of the gateway", INTRODUCTION, parts)


def _overview() -> str:
    return markdown.table(
        ("route", "scope of the key", "what it does"),
        (
            (
                f"[`{each.method} {each.path}`](#{markdown.anchor(f'{each.method} {each.path}')})",
                _scopes(each),
                each.summary,
            )
            for each in OPERATIONS
        ),
    )


def _scopes(operation: Operation) -> str:
    return " or ".join(markdown.code(scope.value) for scope in operation.scopes) or "no key"


def _operation(operation: Operation) -> list[str]:
    parts = [f"{operation.summary}. Key: {_scopes(operation)}."]
    if operation.body:
        needed = "" if operation.body_required else ", or none"
        parts.append(f"Body: {_body(operation.body)}{needed}.")
    if operation.query:
        parts.append(f"In the query: {markdown.codes(operation.query)}.")
    answers = "; ".join(
        f"`{status}` {_body(body)}" if body else f"`{status}`" for status, body in operation.answers.items()
    )
    parts.append(f"Answers: {answers}.")
    parts.append(
        markdown.table(
            ("status", "reasons"),
            ((str(status), markdown.codes(reasons)) for status, reasons in operation.reasons().items()),
        )
    )
    return parts


def _body(name: str) -> str:
    return f"[{name}](#{markdown.anchor(name)})" if name in SCHEMAS else name
