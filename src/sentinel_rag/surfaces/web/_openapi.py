"""The OpenAPI document: what FastAPI makes of the routes, with the refusals and the ways to sign in that all share."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sentinel_rag.surfaces.web.models import Refusal

REFUSALS = {
    400: "The connection ended amid the request",
    401: "Not signed in",
    403: "Not allowed, by role or by the gateway",
    404: "Not there, or somebody else's",
    408: "The body came too slowly",
    409: "Not possible in this state",
    413: "The body is too large",
    414: "The URL is too long",
    415: "No JSON",
    421: "For another host, or from another site's page",
    422: "Not as documented; `problems` names the fields",
    429: "Too often; see Retry-After",
    500: "A fault of this surface",
    503: "A part does not answer; see Retry-After",
}
OPEN = "/sign-in"
"""Where the routes that ask for no sign-in begin."""


def document(app: FastAPI, *, cookie: str) -> dict[str, Any]:
    """The document of `app`; `cookie` is the name of a browser's."""
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    shared = made.setdefault("components", {})
    schemas = shared.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own form of a refusal, which is never sent
        schemas.pop(name, None)
    schemas["Refusal"] = Refusal.model_json_schema()
    shared["securitySchemes"] = {
        "browser": {
            "type": "apiKey",
            "in": "cookie",
            "name": cookie,
            "description": "Set by POST /sign-in; a change also needs the header X-CSRF-Token, from GET /session.",
        },
        "program": {"type": "http", "scheme": "bearer", "description": "A token of POST /tokens."},
    }
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    for path, item in made["paths"].items():
        for operation in item.values():
            for status, said in REFUSALS.items():
                operation["responses"][str(status)] = {"description": said, "content": refusal}
            if not path.startswith(OPEN):
                operation["security"] = [{"browser": []}, {"program": []}]
    return made
