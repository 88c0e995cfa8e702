"""One process that holds a KQL parser, and the JSON lines between it and us.

Blocking, one exchange at a time, from any thread. A process that does not answer in time is killed, and the next
exchange starts a new one. Each schema is sent once.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.sentinel.kql_guard.analysis import Analysis, Schema

MOST_ANSWER_BYTES = 32 * 1024 * 1024


class ParserStuckError(UnavailableError):
    """One exchange took too long, or the process died of it; another one may do well."""

    code = "parser_stuck"


class _Numbered(msgspec.Struct, frozen=True):
    id: int | None = None


class ParserProcess:
    """The process, started by its first exchange: by the first of `commands` that gets ready. `close` is for good."""

    def __init__(self, commands: Sequence[Sequence[str]], *, start_timeout_s: float, advice: str) -> None:
        self._commands = tuple(commands)
        self._start_timeout_s = start_timeout_s
        self._advice = advice
        self._lock = threading.Lock()
        self._running_one: list[subprocess.Popen[bytes]] = []
        weakref.finalize(self, _end_all, self._running_one)
        self._closed = False
        self._asked = 0
        self.starts = 0
        """How often a process got ready: more than once means that one was killed or died."""

    def exchange(self, request: dict[str, Any], timeout_s: float) -> bytes:
        """The answer to one request, a line.

        Raises ParserStuckError if the process dies or is silent for `timeout_s` (a start has its own time), and
        UnavailableError if it cannot be started.
        """
        with self._lock:
            process = self._running()
            return self._exchange(process, request, timeout_s)

    def close(self) -> None:
        """End the process. An exchange that another thread waits for fails."""
        self._closed = True
        for process in tuple(self._running_one):
            process.kill()
        with self._lock:
            _end_all(self._running_one)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise UnavailableError("The KQL parser is closed.", next_step="Start the server again.")
        if self._running_one and self._running_one[0].poll() is None:
            return self._running_one[0]
        while True:
            _end_all(self._running_one)
            process = self._start(self._commands[0])
            try:
                self._exchange(process, {"op": "ready"}, self._start_timeout_s)
            except ParserStuckError:
                if self._commands[1:] and not self._closed:
                    self._commands = self._commands[1:]
                    continue
                raise UnavailableError(
                    "The KQL parser was started but did not get ready.", next_step=self._advice
                ) from None
            self.starts += 1
            return process

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT,
                start_new_session=True,  # Ctrl-C is for us; it ends when its input does
            )
        except OSError as error:
            raise UnavailableError(
                f"The KQL parser could not be started: {error.strerror or error}.", next_step=self._advice
            ) from None
        self._running_one.append(process)
        return process

    def _exchange(self, process: subprocess.Popen[bytes], request: dict[str, Any], timeout_s: float) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(timeout_s, process.kill)
        watchdog.daemon = True
        watchdog.start()
        self._asked += 1
        try:
            process.stdin.write(msgspec.json.encode({**request, "id": self._asked}) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline(MOST_ANSWER_BYTES)
        except OSError:
            line = b""
        finally:
            watchdog.cancel()
        if not line.endswith(b"\n") or _id_of(line) != self._asked:
            _end_all(self._running_one)
            raise ParserStuckError(
                f"The KQL parser gave no answer within {timeout_s:g} s.", next_step="Ask with a shorter, flatter query."
            )
        return line


def _end_all(processes: list[subprocess.Popen[bytes]]) -> None:
    while processes:
        process = processes.pop()
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue  # what was not yet written has no reader any more
        process.wait()


def _id_of(line: bytes) -> int | None:
    try:
        return msgspec.json.decode(line, type=_Numbered).id
    except (msgspec.DecodeError, RecursionError):
        return None


# Nothing of ours: neither secrets nor NODE_OPTIONS. Node on Windows needs the system's folder for its random numbers.
ENVIRONMENT = {"SYSTEMROOT": r"C:\Windows"} if sys.platform == "win32" else {}


_SCHEMA_TIMEOUT_S = 20.0


class _Answer(msgspec.Struct, frozen=True):
    failed: str | None = None
    unknown_schema: bool = False


class ParserClient:
    """The parser behind `process`, which its first question or `warm` starts. Raises nothing until it is asked."""

    def __init__(self, process: ParserProcess, *, timeout_s: float) -> None:
        self._process = process
        self._timeout_s = timeout_s
        self._limiter: anyio.CapacityLimiter | None = None

    async def analyze(
        self, kql: str, schema: Schema, *, assumed_tables: Sequence[str] = (), assumed_functions: Sequence[str] = ()
    ) -> Analysis:
        """What `kql` is under `schema`. Names that are assumed to exist may have any columns or arguments;
        a table of the schema that is assumed keeps its columns and may have more.

        Raises ParserStuckError for a query that the parser cannot finish in time or in its memory, UnavailableError if
        there is no parser.
        """
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(1)
        ask = partial(self.analyze_now, kql, schema, assumed_tables, assumed_functions)
        return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._limiter)

    def analyze_now(
        self, kql: str, schema: Schema, assumed_tables: Sequence[str] = (), assumed_functions: Sequence[str] = ()
    ) -> Analysis:
        """The same, blocking, for a command or a benchmark."""
        digest = _digest(schema)
        request = {
            "op": "analyze",
            "schema": digest,
            "kql": kql,
            "assumed_tables": list(assumed_tables),
            "assumed_functions": list(assumed_functions),
        }
        line, answer = self._ask(request, self._timeout_s)
        if answer.unknown_schema:
            tables = {table: dict(columns) for table, columns in schema.items()}
            self._ask({"op": "schema", "schema": digest, "tables": tables}, _SCHEMA_TIMEOUT_S)
            line, _ = self._ask(request, self._timeout_s)
        try:
            return msgspec.json.decode(line, type=Analysis)
        except (msgspec.DecodeError, RecursionError):
            raise _too_complex() from None

    def warm(self, schema: Schema | None = None) -> None:
        """Start the process in the background and give it `schema`, so that the first question need not wait."""
        given = schema or {}

        def start() -> None:
            try:
                self.analyze_now("print 1", given)
            except Exception:
                return  # the first question meets the same fault and tells it

        threading.Thread(target=start, name="kql-parser-warm-up", daemon=True).start()

    def names(self) -> dict[str, list[str]]:
        """What the parser knows: functions, aggregates, plugins, and its kinds of syntax."""
        line = self._process.exchange({"op": "names"}, self._timeout_s)
        found: dict[str, Any] = msgspec.json.decode(line)
        return {key: list(found[key]) for key in ("functions", "aggregates", "plugins", "kinds")}

    @property
    def starts(self) -> int:
        """How often a process was started."""
        return self._process.starts

    async def close(self) -> None:
        """End the process."""
        await anyio.to_thread.run_sync(self.close_now)

    def close_now(self) -> None:
        self._process.close()

    def _ask(self, request: dict[str, Any], timeout_s: float) -> tuple[bytes, _Answer]:
        line = self._process.exchange(request, timeout_s)
        try:
            answer = msgspec.json.decode(line, type=_Answer)
        except (msgspec.DecodeError, RecursionError):
            raise _too_complex() from None
        if answer.failed is not None:
            raise _too_complex()
        return line, answer


def _too_complex() -> ParserStuckError:
    return ParserStuckError("The query is too deep for the KQL parser.", next_step="Ask with a shorter, flatter query.")


def _digest(schema: Schema) -> str:
    # Columns stay in their order: it is the order of the result's columns.
    return hashlib.sha256(msgspec.json.encode({table: dict(columns) for table, columns in schema.items()})).hexdigest()
