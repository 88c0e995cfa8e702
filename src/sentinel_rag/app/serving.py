"""How a zone's process serves: on a socket that the supervisor opened, for as long as the supervisor lives.

The configuration, secrets included, arrives as one JSON line on standard input, so that neither arguments nor
environment hold it. Standard input then stays open as the life line: its end means that the supervisor is gone.
"""

from __future__ import annotations

import gc
import ipaddress
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sentinel_rag.contracts.errors import Actor, ConfigurationError, SentinelError, UnavailableError, UsageError
from sentinel_rag.telemetry import configure_logging

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from sentinel_rag.telemetry.metrics import Registry
    from sentinel_rag.telemetry.process import ProcessTelemetry


_telemetry: ProcessTelemetry | None = None


def metrics_registry() -> Registry | None:
    """Where this zone counts; None where nobody may read it."""
    return None if _telemetry is None else _telemetry.registry


def begin_zone(zone: str) -> dict[str, Any]:
    """Read the supervisor's configuration line and set up logging, and what else the zone is to tell.

    Raises SystemExit with a sentence if a person started this by hand.
    """
    gc.disable()  # what start-up makes stays, so looking for garbage in it is a tenth of start-up; see settle_memory
    line = sys.stdin.readline()
    try:
        configuration: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        sys.exit("This module is started by the supervisor; run: sentinel up")
    threading.Thread(target=_end_with_supervisor, daemon=True, name="life-line").start()
    configure_logging(zone, configuration["log_level"])
    if configuration.get("telemetry") is not None:
        from sentinel_rag.telemetry.process import ProcessTelemetry

        global _telemetry
        _telemetry = ProcessTelemetry(zone, configuration["telemetry"])
    return configuration


def fail_to_start(error: SentinelError) -> NoReturn:
    """End this process with the reason as its last log line, in the form that `startup_error` reads back."""
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    print(json.dumps({"startup_error": {**error.to_dict(), "problems": problems}}), file=sys.stderr, flush=True)
    sys.exit(1)


def startup_error(last_line: str) -> SentinelError | None:
    """The error that a zone ended with, from the last line of its log; None if it did not say."""
    try:
        data = json.loads(last_line)["startup_error"]
    except (ValueError, KeyError, TypeError):
        return None
    if data["code"] == ConfigurationError.code:
        return ConfigurationError(data["message"], problems=tuple(data["problems"]), next_step=data["next_step"])
    kind = UsageError if data["actor"] == Actor.USER else UnavailableError
    return kind(data["message"], next_step=data["next_step"], code=data["code"])


def give_notice(error: SentinelError) -> None:
    """Put what is wrong, and is no reason not to serve, into the log, in the form that `startup_notices` reads back."""
    print(json.dumps({"startup_notice": error.to_dict()}), file=sys.stderr, flush=True)


def startup_notices(log: str) -> list[SentinelError]:
    """The notices in the lines of a zone's log."""
    found: list[SentinelError] = []
    for line in log.splitlines():
        if line.startswith('{"startup_notice"'):
            data = json.loads(line)["startup_notice"]
            found.append(UnavailableError(data["message"], next_step=data["next_step"], code=data["code"]))
    return found


def _end_with_supervisor() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)  # the supervisor was killed: nobody is left to wait for a clean end


def check_reach(listener: socket.socket, *, tls: bool = False) -> None:
    """Raises UsageError for a socket that other machines reach, unless it speaks TLS: keys and answers travel on it."""
    address = ipaddress.ip_address(listener.getsockname()[0])
    if not (address.is_loopback or tls):
        raise UsageError(
            f"The address {address} can be reached by other machines, and this zone has no certificate.",
            next_step="Set SENTINEL_TLS_CERTIFICATE and SENTINEL_TLS_KEY, or listen on 127.0.0.1 and put a reverse "
            "proxy with TLS before it.",
        )


def settle_memory() -> None:
    """Tell the garbage collector that what start-up has made stays, and that requests come and go: it then looks at
    less, and less often. Nearly all that a request leaves behind is freed by reference counts anyway."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


def closing(app: ASGIApp, close: Callable[[], None]) -> ASGIApp:
    """`app`, with `close` done after its own shutdown and before the server hears of it: then the process may end."""
    import anyio.to_thread

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                await anyio.to_thread.run_sync(close)
            await send(message)

        await app(scope, receive, last if scope["type"] == "lifespan" else send)

    return wrapped


def serve(app: ASGIApp, descriptor: int, *, tls: Mapping[str, str] | None = None) -> None:
    """Serve until SIGTERM, Ctrl-C or the end of the supervisor. Blocks. `tls` names the files `certificate` and `key`.
    Raises UsageError as `check_reach` does, ConfigurationError for files that are no certificate and key."""
    import uvicorn

    from sentinel_rag.app.bounded_http import BoundedHttp

    listener = socket.socket(fileno=descriptor)
    check_reach(listener, tls=tls is not None)
    certificate = None
    if tls is not None:
        from sentinel_rag.app.tls import AnsweringAs, Certificate

        certificate = Certificate(Path(tls["certificate"]), Path(tls["key"]))
        app = AnsweringAs(app, certificate)
    if _telemetry is not None:
        app = closing(_telemetry.around(app), _telemetry.close)
    config = uvicorn.Config(
        app,
        http=BoundedHttp,
        log_config=None,  # the zone's own JSON lines take uvicorn's messages too
        access_log=False,
        proxy_headers=False,  # no caller chooses which client address the journal shows
        lifespan="on",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
    )
    config.load()
    if certificate is not None:
        config.ssl = certificate.context
        certificate.keep_renewed()
    settle_memory()
    uvicorn.Server(config).run(sockets=[listener])
