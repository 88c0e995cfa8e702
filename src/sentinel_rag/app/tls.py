"""TLS between zones on different machines: what a served zone proves itself with, and what its callers check it by.

A zone answers to the names in its certificate and to no other, so nothing needs to be set twice. Within one machine
there is no TLS: `serving.check_reach` keeps zones without a certificate on loopback.
"""

from __future__ import annotations

import http.client
import ipaddress
import ssl
import threading
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.servers import is_own_host

if TYPE_CHECKING:
    from cryptography import x509
    from starlette.types import ASGIApp, Receive, Scope, Send

RENEWAL_S = 60.0
"""How often a zone looks whether its certificate was renewed."""


class Certificate:
    """A certificate with its chain, and its key, as a server uses them. Raises ConfigurationError for files that are
    not that, or a certificate that names nobody."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self._seen = self._changed_at()
        self.names = _names_in(certificate)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._take(self.context)
        self._newest = self.context
        self.context.sni_callback = self._show_newest

    def renew(self) -> bool:
        """Take up files that have changed, for connections from now on; True if they had. Files that are wrong, or
        half written, are left alone, and looked at again the next time."""
        seen = self._changed_at()
        if seen == self._seen or None in seen:
            return False
        try:
            names = _names_in(self._files[0])
            newest = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._take(newest)  # a key of another certificate raises here
        except ConfigurationError:
            return False
        self.names, self._seen, self._newest = names, seen, newest
        return True

    def _show_newest(self, connection: ssl.SSLSocket | ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        """Asked at each handshake, named or not. A certificate with another kind of key (ECDSA, RSA) that is loaded
        into a context stands there beside the old one, which would be shown until it ended and after."""
        connection.context = self._newest

    def keep_renewed(self) -> None:
        """`renew` every minute, for as long as this process lives."""

        def watch() -> None:
            while True:
                threading.Event().wait(RENEWAL_S)
                self.renew()

        threading.Thread(target=watch, daemon=True, name="certificate").start()

    def _take(self, context: ssl.SSLContext) -> None:
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key, password=_no_passphrase)
        except (OSError, ssl.SSLError, _Passphrase) as error:
            why = "it needs a passphrase" if isinstance(error, _Passphrase) else error.strerror or type(error).__name__
            raise ConfigurationError(
                f"The certificate {certificate} and the key {key} cannot be used together: {why}.",
                next_step="Set SENTINEL_TLS_CERTIFICATE and SENTINEL_TLS_KEY to a PEM certificate and its own key.",
            ) from None

    def _changed_at(self) -> tuple[int | None, ...]:
        return tuple(path.stat().st_mtime_ns if path.exists() else None for path in self._files)


class AnsweringAs:
    """Lets a request that names this server as its certificate does pass as one that names this machine, which every
    zone takes. Any other name is left as it is, for the zone to judge."""

    def __init__(self, app: ASGIApp, certificate: Certificate) -> None:
        self._app = app
        self._certificate = certificate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if is_own_host(hosts, self._certificate.names):
                own = f"localhost:{scope['server'][1]}".encode()  # with a port: the MCP library knows no other form
                headers = [(name, own if name == b"host" else value) for name, value in scope["headers"]]
                scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)


def trusting(authorities: Path | str | None, *, beside_the_systems: bool = False) -> ssl.SSLContext | None:
    """What a client checks zones by: the file of authorities alone, or `beside_the_systems` for connections that lead
    elsewhere too. None without a file: the system's. Raises ConfigurationError."""
    if authorities is None:
        return None
    try:
        if not beside_the_systems:
            return ssl.create_default_context(cafile=str(authorities))
        context = ssl.create_default_context()
        context.load_verify_locations(cafile=str(authorities))
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"The authorities in {authorities} cannot be used: {error.strerror or type(error).__name__}.",
            next_step="Set SENTINEL_TLS_CA to a file of PEM certificates.",
        ) from None
    return context


def connection_here(url: str, certificate: str, *, timeout: float) -> http.client.HTTPConnection:
    """A connection to a zone that runs on this machine. With TLS it must prove itself by `certificate`, the very file
    that it was started with; whatever name that is made out to, the address is this machine's."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        return http.client.HTTPConnection(parts.netloc, timeout=timeout)
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the file may hold the leaf alone
    return http.client.HTTPSConnection(parts.netloc, timeout=timeout, context=context)


def _names_in(certificate: Path) -> Collection[str]:
    from cryptography import x509

    try:
        leaf = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
        _check_time(leaf, certificate)
        alternative = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, IndexError) as error:
        why = f" ({error.strerror})" if isinstance(error, OSError) else ""
        raise ConfigurationError(
            f"{certificate} is no PEM certificate{why}.", next_step="Set SENTINEL_TLS_CERTIFICATE to one."
        ) from None
    except x509.ExtensionNotFound:
        names: frozenset[str] = frozenset()
    else:
        addresses = {str(ipaddress.ip_address(str(each))) for each in alternative.get_values_for_type(x509.IPAddress)}
        hosts = {name.lower() for name in alternative.get_values_for_type(x509.DNSName)}
        names = frozenset(addresses | {name for name in hosts if "*" not in name})
    if not names:
        raise ConfigurationError(
            f"The certificate {certificate} is made out to no host of its own (DNS name or address).",
            next_step="Have one made with the names by which callers reach this zone; a wildcard does not say which.",
        )
    return names


def _check_time(leaf: x509.Certificate, certificate: Path) -> None:
    """Raise ConfigurationError for a certificate that no caller would take now."""
    now = datetime.now(UTC)
    if leaf.not_valid_after_utc < now:
        said = f"ended at {format_time(leaf.not_valid_after_utc)}"
    elif leaf.not_valid_before_utc > now:
        said = f"begins only at {format_time(leaf.not_valid_before_utc)}"
    else:
        return
    raise ConfigurationError(
        f"The certificate {certificate} {said}.",
        next_step="Put a renewed one there, or correct this machine's clock: date -u",
    )


class _Passphrase(Exception):
    """The key is encrypted, and nobody is here to type."""


def _no_passphrase() -> str:
    raise _Passphrase
