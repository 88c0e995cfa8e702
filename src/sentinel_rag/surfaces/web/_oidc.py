"""Sign-in at an identity provider: authorization code with PKCE, as OpenID Connect Core and RFC 9700 have it.

It finds out who somebody is; whether that person has an account is decided by the caller. Each flow is for one browser,
once, for ten minutes. Nothing that a provider sends is believed before its signature, issuer, audience and nonce hold.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp  # noqa: TID253  # the module is this library's use, in a process that always needs it
import jwt

from sentinel_rag.contracts.servers import LOOPBACK_NAMES
from sentinel_rag.surfaces.web._clients import Connections
from sentinel_rag.surfaces.web._problems import RequestProblem

FLOW_S = 600.0
MAX_FLOWS = 1_000
MAX_BYTES = 256 * 1024
KEYS_AGAIN_S = 30.0
"""How soon a key that is not known makes the provider's keys be read again."""
LEEWAY_S = 60
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Signatures with public keys alone: with a shared secret, or none, anybody could sign."""
DISCOVERY = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class Provider:
    """The settings: whose word counts, under which id we are known there, and which claim names a person."""

    issuer: str
    client_id: str
    client_secret: str | None
    claim: str


@dataclass(frozen=True, slots=True)
class Begun:
    """Where to send the browser, and the value of the cookie that binds the flow to it."""

    url: str
    binding: str


@dataclass(frozen=True, slots=True)
class Person:
    """Who came, in the provider's words: its own id of the person, and the name by the claim of the settings."""

    issuer: str
    subject: str
    name: str


@dataclass(frozen=True, slots=True)
class _Flow:
    binding: str
    verifier: str
    nonce: str
    redirect_uri: str
    ends_at: float


class OidcClient:
    """Flows at one provider. `seconds` is a clock. Methods raise Problem, with what the person can do."""

    def __init__(self, provider: Provider, connections: Connections, seconds: Callable[[], float]) -> None:
        self._provider = provider
        self._connections = connections
        self._seconds = seconds
        self._flows: OrderedDict[str, _Flow] = OrderedDict()
        self._metadata: dict[str, Any] | None = None
        self._keys: dict[str, Any] = {}
        self._keys_read_at = float("-inf")

    async def begin(self, redirect_uri: str) -> Begun:
        """A new flow for a browser that is to come back to `redirect_uri`."""
        metadata = await self._discovered()
        state, binding, nonce = (secrets.token_urlsafe(32) for _ in range(3))
        verifier = secrets.token_urlsafe(48)
        self._flows[state] = _Flow(binding, verifier, nonce, redirect_uri, self._seconds() + FLOW_S)
        while len(self._flows) > MAX_FLOWS:
            self._flows.popitem(last=False)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._provider.client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid email profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = metadata["authorization_endpoint"]
        return Begun(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", binding)

    async def finish(self, answer: Mapping[str, str], binding: str) -> Person:
        """Who came back with `answer`, the query of the callback, and the cookie's `binding`."""
        flow = self._flows.pop(answer.get("state", ""), None)
        if flow is None or flow.ends_at <= self._seconds() or not _same(flow.binding, binding):
            raise _failed("This sign-in was not begun at this browser, is over, or was used.")
        metadata = await self._discovered()
        said = answer.get("iss")
        required = metadata.get("authorization_response_iss_parameter_supported") is True
        if (said is not None and said != self._provider.issuer) or (said is None and required):
            raise _failed("The answer came from another provider than the question went to.")
        if "code" not in answer:
            raise _failed("The identity provider did not sign you in.")
        tokens = await self._exchanged(metadata, answer["code"], flow)
        return await self._person(tokens.get("id_token"), flow)

    async def _exchanged(self, metadata: Mapping[str, Any], code: str, flow: _Flow) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": flow.redirect_uri,
            "code_verifier": flow.verifier,
        }
        headers = {}
        provider = self._provider
        if provider.client_secret is None:
            form["client_id"] = provider.client_id
        else:
            pair = f"{quote(provider.client_id, safe='')}:{quote(provider.client_secret, safe='')}"  # RFC 6749, 2.3.1
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        return await self._fetched("POST", metadata["token_endpoint"], form, headers)

    async def _person(self, token: Any, flow: _Flow) -> Person:
        provider = self._provider
        if not isinstance(token, str):
            raise _failed("The identity provider sent no ID token.")
        try:
            header = jwt.get_unverified_header(token)
            claims = jwt.decode(
                token,
                await self._key(str(header.get("kid", ""))),
                algorithms=list(ALGORITHMS),
                audience=provider.client_id,
                issuer=provider.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise _failed(f"The identity provider's ID token does not hold ({type(error).__name__}).") from None
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (several or "azp" in claims) and claims.get("azp") != provider.client_id:
            raise _failed("The ID token is for another application.")
        if not _same(str(claims.get("nonce", "")), flow.nonce):
            raise _failed("The ID token is for another sign-in.")
        name = claims.get(provider.claim)
        if not isinstance(name, str) or not name:
            raise _failed(f"The ID token has no claim {provider.claim!r}; whoever runs this sets SENTINEL_OIDC_CLAIM.")
        if provider.claim == "email" and claims.get("email_verified") is not True:
            raise _failed("The identity provider has not verified your e-mail address.")
        return Person(provider.issuer, str(claims["sub"]), name)

    async def _key(self, kid: str) -> Any:
        """The provider's key of that id. Raises PyJWTError where there is none."""
        if kid not in self._keys and self._seconds() - self._keys_read_at >= KEYS_AGAIN_S:
            metadata = await self._discovered()
            found = await self._fetched("GET", metadata["jwks_uri"])
            self._keys_read_at = self._seconds()
            keys = jwt.PyJWKSet.from_dict(found).keys
            self._keys = {str(key.key_id or ""): key for key in keys if key.public_key_use in (None, "sig")}
        if kid not in self._keys:
            raise jwt.InvalidKeyError("no such key")
        return self._keys[kid]

    async def _discovered(self) -> dict[str, Any]:
        if self._metadata is None:
            issuer = self._provider.issuer
            found = await self._fetched("GET", issuer.rstrip("/") + DISCOVERY)
            if found.get("issuer") != issuer:
                raise _away("it calls itself by another name than SENTINEL_OIDC_ISSUER")
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                if not _is_safe(found.get(name)):
                    raise _away(f"its {name} is no https address")
            self._metadata = found
        return self._metadata

    async def _fetched(
        self, method: str, url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The JSON object at an address of the provider's; redirects are not followed."""
        timeout = aiohttp.ClientTimeout(total=15)
        try:
            async with self._connections.http.request(
                method,
                url,
                data=form,
                headers={"Accept": "application/json", **(headers or {})},
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                raw = await response.content.read(MAX_BYTES)
                if response.status != 200:
                    raise _away(f"it answered {response.status}")
                found = json.loads(raw)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _away(type(error).__name__) from None
        if not isinstance(found, dict):
            raise _away("it answered no JSON object")
        return found


def _is_safe(url: Any) -> bool:
    if not isinstance(url, str):
        return False
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK_NAMES)
    )


def _failed(why: str) -> RequestProblem:
    return RequestProblem(401, "not_signed_in", why, "Try again: GET /sign-in/oidc")


def _away(why: str) -> RequestProblem:
    return RequestProblem(
        503,
        "provider_unavailable",
        f"The identity provider could not be used: {why}.",
        "Try again; if it stays, whoever runs this checks SENTINEL_OIDC_ISSUER.",
        {"Retry-After": "10"},
    )


def _same(one: str, other: str) -> bool:
    """In a time that tells nothing; texts of strangers hold whatever signs they like."""
    return compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
