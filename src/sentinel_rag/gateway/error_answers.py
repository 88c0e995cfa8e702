"""What answers where no route does: exception handlers that say what became of the call, and nothing of the error."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from sentinel_rag.audit import StateAway
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.outcomes import OutcomeLost
from sentinel_rag.gateway.responses import away_response, problem


async def not_possible(_: Request, error: Exception) -> Response:
    """What could not be recorded, or not be asked: 503 or 500, and whether a call may have run."""
    # The sentence of such an error may name files; callers learn only that nothing is pretended.
    if isinstance(error, UnavailableError):
        return away_response(may_have_run=isinstance(error, OutcomeLost), is_database=isinstance(error, StateAway))
    return problem(Reason.INTERNAL, "The gateway could not record this call, so there is no result.")


async def no_route(_: Request, __: Exception) -> Response:
    """404."""
    return problem(Reason.NOT_FOUND, "There is no such route.")


async def no_method(request: Request, _: Exception) -> Response:
    """405, with the methods that the path takes."""
    response = problem(Reason.METHOD_NOT_ALLOWED, "This route does not take that method.")
    # Starlette names the methods of the first route with this path, and some paths have several.
    at_path = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    response.headers["Allow"] = ", ".join(sorted({method for route in at_path for method in route.methods}))
    return response


async def broken(_: Request, __: Exception) -> Response:
    """The last resort; the error itself stands in the log."""
    return problem(Reason.INTERNAL, "The gateway failed; the call may have no result.")
