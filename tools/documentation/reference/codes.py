"""`docs/reference/codes.md`: the words that programs may match on: reasons, error codes, exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sentinel_rag.contracts.query_results import RETRYABLE, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.openapi import OPERATIONS
from sentinel_rag.gateway.responses import HTTP_STATUS
from tools.documentation.reference import markdown
from tools.documentation.reference.error_classes import error_codes

INTRODUCTION = """
Words that are stable, for programs: a code is never used for another meaning, while the sentences beside it may change.
The exit codes of commands stand on [the command line](../cli.md#exit-codes).
"""


def page(repository: Path) -> str:
    errors = error_codes(repository / "src" / "sentinel_rag", *sorted(repository.glob("packages/sentinel-rag-[!t]*")))
    return markdown.page(
        "Codes",
        INTRODUCTION,
        [
            "## Reasons of the gateway",
            "`reason` of a refusal and of its audit record. What to do about each is told on "
            "[the gateway's API](../gateway-api.md#how-a-request-can-end).",
            markdown.table(("reason", "status", "routes that can end so"), _reasons()),
            "## Error codes of tools",
            "`error.code` of a call that the tool's server could not answer.",
            markdown.table(("code", "can the same call work later"), _query_errors()),
            "## Error codes of commands and zones",
            "`code` of an error, beside its sentence and its `next_step`; `actor` says who can act.",
            markdown.table(
                ("code", "actor", "meaning"),
                ((markdown.code(each.code), each.actor, each.meaning) for each in errors if each.meaning),
            ),
            "Single errors also carry " + markdown.codes(each.code for each in errors if not each.meaning) + ".",
        ],
    )


def _reasons() -> Iterator[tuple[str, str, str]]:
    for reason in Reason:
        statuses = {HTTP_STATUS[reason]}
        routes = []
        for operation in OPERATIONS:
            for status, reasons in operation.reasons().items():
                if reason in reasons:
                    statuses.add(status)
                    routes.append(f"`{operation.method} {operation.path}`")
        routes = list(dict.fromkeys(routes))
        told = ", ".join(routes) if len(routes) <= 6 else f"{len(routes)} of {len(OPERATIONS)}"
        if len(routes) == len(OPERATIONS):
            told = "every one"
        yield markdown.code(reason.value), ", ".join(map(str, sorted(statuses))), told


def _query_errors() -> Iterator[tuple[str, str]]:
    for code in QueryErrorCode:
        yield markdown.code(code.value), "yes" if code in RETRYABLE else "no"
