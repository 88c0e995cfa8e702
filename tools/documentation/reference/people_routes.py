"""`docs/reference/people-routes.md`: every route of the people's HTTP API, from the OpenAPI document that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sentinel_rag.surfaces.web import SignInTerms, Web, create_api
from tools.documentation.reference import markdown

INTRODUCTION = """
Every route of `sentinel up --web`. `GET /openapi.json` of a running one is the same as data, with examples. What they
are for is told on [the HTTP API for people](../http-api.md). Any route may also answer a [Refusal](#refusal) with one
of the statuses at the end.
"""


def page(_: Path) -> str:
    document = described()
    parts: list[str] = []
    refusals: dict[str, str] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            parts += [f"## {method.upper()} {path}", *_operation(operation)]
            refusals |= {
                status: answer["description"] for status, answer in operation["responses"].items() if status >= "400"
            }
    parts += ["## Bodies", "Each by the name that routes and other bodies call it."]
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"### {name}")
        if "description" in schema:
            parts.append(" ".join(str(schema["description"]).split()))
        parts.append(markdown.fields(schema) if schema.get("properties") else markdown.type_of(schema))
    parts += ["## Refusals", markdown.table(("status", "when"), sorted(refusals.items()))]
    return markdown.page("Routes of the HTTP API for people", INTRODUCTION, parts)


def described() -> Mapping[str, Any]:
    """The document of the API with a sign-in by an identity provider; of its parts it needs the terms alone."""
    parts = SimpleNamespace(terms=SignInTerms(), oidc=True)
    return create_api(cast(Web, parts)).openapi()


def _operation(operation: Mapping[str, Any]) -> list[str]:
    parts = [" ".join(str(operation.get("description") or operation.get("summary", "")).split())]
    if not operation.get("security"):
        parts.append("Needs no sign-in.")
    if found := operation.get("parameters"):
        rows = (
            (
                markdown.code(each["name"]),
                each["in"],
                markdown.type_of(each.get("schema", {})),
                "yes" if each.get("required") else "",
                str(each.get("description", "")),
            )
            for each in found
        )
        parts.append(markdown.table(("parameter", "in", "type", "needed", "meaning"), rows))
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body (`{media}`): {markdown.type_of(content.get('schema', {}))}.")
    answers = []
    for status, answer in operation["responses"].items():
        if status < "400":
            bodies = [f"{markdown.type_of(c['schema'])}" for c in answer.get("content", {}).values() if c.get("schema")]
            media = ", ".join(markdown.code(kind) for kind in answer.get("content", {}))
            answers.append(f"`{status}` {' or '.join(bodies)}{f' ({media})' if media else ''}".strip())
    parts.append(f"Answers: {'; '.join(answers)}.")
    return parts
