"""An identity provider of OpenID Connect on loopback: the worked example, and a liar where a test wants one.

It signs in whoever `person` says, at once, and holds its clients to the protocol: PKCE, redirect address, client
authentication, each code once.

    with OidcProvider().running() as provider:
        provider.person = {"sub": "u-1", "email": "dana@example.com", "email_verified": True}
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.support.web_client import Client

from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import HttpAnswer

CLIENT_ID, CLIENT_SECRET = "sentinel-rag", "a%secret+of/these:tests"  # of a server that lives for one test

Claims = dict[str, Any]
Sign = Callable[[Claims], str]


class OidcProvider:
    """`change` is done to the claims of each ID token, `sign` signs them; both are the honest ones unless set."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._codes: dict[str, dict[str, str]] = {}
        self.issuer = ""
        self.person: Claims = {}
        self.change: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Sign = self.sign_honestly
        self.answer: Mapping[str, str] = {}
        """Added to the query with which the browser is sent back."""
        self.faults: list[str] = []
        """What clients did against the protocol."""

    @contextmanager
    def running(self) -> Iterator[OidcProvider]:
        """Serve on a free loopback port; `issuer` is its address."""
        routes = [
            Route("/.well-known/openid-configuration", self._discovery),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/keys", self._keys),
        ]
        with serve(Starlette(routes=routes)) as url:
            self.issuer = url
            yield self

    def bring_back(self, client: Client) -> HttpAnswer:
        """Sign in as a browser does: begin at the API that `client` asks, come here, go back; the last answer."""
        cookie, path = self.sent_back(client)
        return client.request("GET", path, None, {"Cookie": cookie})

    def sent_back(self, client: Client) -> tuple[str, str]:
        """The first half of that: the cookie that the browser holds, and where it is sent back to."""
        begun = client.get("/sign-in/oidc")
        if begun.status != 303:
            raise RuntimeError(f"the API did not send the browser on: {begun.content!r}")
        parts = urlsplit(begun.headers["location"])
        back = urlsplit(Client(self.issuer).get(f"{parts.path}?{parts.query}").headers["location"])
        return begun.headers["set-cookie"].partition(";")[0], f"{back.path}?{back.query}"

    def sign_honestly(self, claims: Claims) -> str:
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": "k1"})

    async def _discovery(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def _keys(self, _: Request) -> Response:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return JSONResponse({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]})

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        if asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            self.faults.append("not a code flow with PKCE")
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.issuer, **self.answer}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", 303)

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            given = {name: str(value) for name, value in form.items()}
        asked = self._codes.pop(given.get("code", ""), None)
        pair = base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(given.get("code_verifier", "").encode()).digest())
        if (
            asked is None
            or pair != f"{CLIENT_ID}:{quote(CLIENT_SECRET, safe='')}"
            or challenge.rstrip(b"=").decode() != asked["code_challenge"]
            or given.get("redirect_uri") != asked["redirect_uri"]
        ):
            self.faults.append("a token request that does not hold")
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        token = self.sign(self.change({**claims, **self.person}))
        return JSONResponse({"access_token": "-", "token_type": "Bearer", "id_token": token})
