"""Answers and error bodies of the Log Analytics API, in the shapes recorded from the service.

Pure functions from results to JSON-ready values; the endpoint adds status and headers.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from sentinel_rag.workspace.queries import KqlAnswer, KqlError, KqlSyntaxError

_RENDER = re.compile(r"\|\s*render\s+(\w+)", re.IGNORECASE)
_RENDER_NAMES = (
    "title",
    "kind",
    "legend",
    "series",
    "xAxis",
    "xColumn",
    "xTitle",
    "yAxis",
    "yColumns",
    "ySplit",
    "yTitle",
    "anomalyColumns",
)
_INVALID = "The request had some invalid properties"


def answer_body(answer: KqlAnswer, *, statistics: bool, render: bool, kql: str) -> dict[str, Any]:
    """`tables`, with `statistics` and `render` where asked for and `error` where the answer was cut."""
    body: dict[str, Any] = {
        "tables": [
            {
                "name": "PrimaryResult",
                "columns": [{"name": column.name, "type": column.type} for column in answer.columns],
                "rows": msgspec.Raw(answer.encoded.text),
            }
        ]
    }
    if statistics:
        body["statistics"] = _statistics(answer)
    if render:
        body["render"] = _render(kql)
    if answer.partial:
        body["error"] = partial_error(answer.partial)
    return body


def _statistics(answer: KqlAnswer) -> dict[str, Any]:
    return {
        "query": {
            "executionTime": round(answer.duration_s, 7),
            "resourceUsage": {
                "cache": {},
                "cpu": {"user": "00:00:00", "kernel": "00:00:00", "totalCpu": "00:00:00"},
                "memory": {"peakPerNode": 0},
                "network": {},
            },
            "datasetStatistics": [{"tableRowCount": answer.row_count}],
        }
    }


def _render(kql: str) -> dict[str, Any]:
    found = _RENDER.findall(kql)
    return {
        "visualization": found[-1].lower() if found else None,
        **dict.fromkeys(_RENDER_NAMES),
        "accumulate": False,
        "isQuerySorted": False,
        "yMin": "NaN",
        "yMax": "NaN",
    }


def partial_error(reason: str) -> dict[str, Any]:
    """The `error` beside the table of an answer that was cut."""
    return {
        "code": "PartialError",
        "message": "There were some errors when processing your query.",
        "details": [
            {
                "code": "EngineError",
                "message": "Something went wrong processing your query on the server.",
                "innererror": {
                    "code": "-2133196797",
                    "message": f"{reason} (E_QUERY_RESULT_SET_TOO_LARGE; see https://aka.ms/kustoquerylimits)",
                    "severity": 2,
                    "severityName": "Error",
                },
            }
        ],
    }


def query_error(error: KqlError, correlation_id: str) -> dict[str, Any]:
    """The nested body for a query that is refused; the innermost message is what the SDK shows."""
    inner: dict[str, Any] = {"code": error.kql_code, "message": str(error)}
    if isinstance(error, KqlSyntaxError) or error.line is not None:
        inner |= {"line": error.line, "pos": error.position, "token": error.token}
    return plain_error(
        "BadArgumentError",
        _INVALID,
        correlation_id,
        {"code": error.kind, "message": error.summary, "innererror": inner},
    )


def bad_request(message: str, correlation_id: str) -> dict[str, Any]:
    """A body or a timespan that is not what the API takes."""
    return plain_error("BadArgumentError", _INVALID, correlation_id, {"code": "InvalidProperty", "message": message})


def unknown_workspace(correlation_id: str) -> dict[str, Any]:
    return plain_error("FailedToResolveResource", "Resource identity could not be resolved", correlation_id)


def unknown_path(correlation_id: str) -> dict[str, Any]:
    return plain_error("PathNotFoundError", "The requested path does not exist", correlation_id)


def gateway_timeout(correlation_id: str) -> dict[str, Any]:
    return plain_error(
        "GatewayTimeout",
        "Gateway timeout",
        correlation_id,
        {"code": "GatewayTimeout", "message": "The query timed out"},
    )


def plain_error(code: str, message: str, correlation_id: str, inner: dict[str, Any] | None = None) -> dict[str, Any]:
    """Of authentication, limits and internal failures it has one level; `inner` is the next one."""
    error: dict[str, Any] = {"message": message, "code": code, "correlationId": correlation_id}
    if inner is not None:
        error["innererror"] = inner
    return {"error": error}
