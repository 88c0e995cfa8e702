"""Starts Sentinel RAG's processes as forks of one that has imported it, so that no test pays for what start-up imports.

A fork gets what a new process gets: its arguments, environment, folder and streams, and nothing else that is open. What
a process loads, holds and lets others see is no matter of a fork: tests of that start the command itself.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from select import select
from types import ModuleType
from typing import Any, NoReturn

import sentinel_rag

REPOSITORY = Path(__file__).resolve().parents[2]
SENTINEL = Path(sys.executable).parent / "sentinel"
POSSIBLE = hasattr(os, "pidfd_open") and hasattr(socket, "SOCK_SEQPACKET")
"""Linux alone can; elsewhere every process is a new one."""
_IMPORTED_LATE = ("duckdb", "uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.protocols.websockets.auto")
_SHARED = "SERVER_OF_FORKS"
_LARGEST, _MOST_FILES, _ABOVE = 1 << 20, 16, 512
"""Bytes of a start, its open files, and a number that no open file of the server reaches."""


@dataclass(frozen=True)
class _Start:
    """What is told of a process to make. Its open files are standard input, output and errors, then `files`."""

    program: list[str]
    command: list[str]
    folder: str
    environment: dict[str, str]
    session: bool
    files: list[int]


def run(arguments: Sequence[Any], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of a `sentinel` command or a zone, in pipes."""
    given, pipe = options.pop("input", None), subprocess.PIPE
    with Process(arguments, stdin=pipe, stdout=pipe, stderr=pipe, **options) as process:
        return completed(process, given, timeout)


def completed(process: subprocess.Popen[Any], given: Any, timeout: float) -> subprocess.CompletedProcess[Any]:
    """What becomes of a process in pipes that is given its input; it does not outlive an exception."""
    try:
        output, errors = process.communicate(given, timeout)
    except BaseException:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class Process(subprocess.Popen[Any]):
    """A process that is forked if it is `sentinel` or what Python runs, and otherwise started as ever."""

    _told: socket.socket | None = None
    _of_the_product_alone = False

    def _execute_child(self, args: Any, executable: Any, preexec: Any, close: Any, files: Any, *others: Any) -> None:
        folder, environment, _, _, shell = others[:5]
        ends, session = others[5:11], others[-2]
        command = [os.fspath(each) for each in args] if isinstance(args, list | tuple) else []
        variables = dict(os.environ if environment is None else environment)
        program = _program(command, of_the_product_alone=self._of_the_product_alone)
        alike = POSSIBLE and _starts_alike(variables, isolated="-I" in command)
        if program is None or not alike or shell or preexec:
            super()._execute_child(args, executable, preexec, close, files, *others)  # type: ignore[misc]
            return
        start = _Start(program, command, os.fspath(folder or Path.cwd()), variables, bool(session), sorted(files))
        streams = [end if end != -1 else number for number, end in enumerate((ends[0], ends[3], ends[5]))]
        try:
            self._told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._told.connect(_address())
            socket.send_fds(self._told, [json.dumps(asdict(start)).encode()], [*streams, *start.files])
            self.pid = int(self._told.recv(64))
        finally:
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined]
        self._child_created = True

    def _internal_poll(self, *others: Any, **more: Any) -> int | None:
        if self._told is None:
            return super()._internal_poll(*others, **more)  # type: ignore[misc, no-any-return]
        return self._ended(0)

    def _wait(self, timeout: float | None) -> int | None:
        if self._told is None:
            return super()._wait(timeout)  # type: ignore[misc, no-any-return]
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _ended(self, within: float | None) -> int | None:
        """How it ended, None if it does not in that time. Several threads may look."""
        assert self._told is not None
        try:
            ready = self.returncode is None and select([self._told], [], [], within)[0]
        except ValueError:  # another thread has seen it end and closed this
            return self.returncode
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if ready and self.returncode is None:
                self.returncode = int(self._told.recv(64) or -signal.SIGKILL)  # without a word the server is gone
                self._told.close()
        return self.returncode


class _Zone(Process):
    _of_the_product_alone = True


def _program(command: list[str], *, of_the_product_alone: bool) -> list[str] | None:
    """What is run and its arguments as Python is told them, ["sentinel", ...] for that; None if it cannot be forked."""
    if command[:1] == [str(SENTINEL)]:
        return ["sentinel", *command[1:]]
    if command[:1] != [sys.executable]:
        return None
    program = command[2:] if command[1:2] == ["-I"] else command[1:]
    ours = program[:1] == ["-m"] and program[1].startswith("sentinel_rag.")
    known = program[:1] in (["-m"], ["-c"]) or (program[:1] and program[0].endswith(".py"))
    return program if ours or (known and not of_the_product_alone) else None


def _starts_alike(variables: Mapping[str, str], *, isolated: bool) -> bool:
    """True where Python would start with these variables as it did here."""

    def read(given: Mapping[str, str]) -> dict[str, str]:
        language = next((given[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if given.get(name)), "C")
        wide = language in ("C", "POSIX") or language.lower().endswith(("utf-8", "utf8"))
        python = {} if isolated else {name: value for name, value in given.items() if name.startswith("PYTHON")}
        python.pop("PYTHONUNBUFFERED", None)  # a fork heeds it
        return {**python, "language": "" if wide else language}

    return read(variables) == read(os.environ)


@contextmanager
def forking() -> Iterator[None]:
    """Have `subprocess` fork what is ours: for a block in which the code of others starts it."""
    ordinary = subprocess.Popen
    subprocess.Popen = _Zone  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = ordinary  # type: ignore[misc]


@cache
def share() -> Path:
    """The folder of the server that this process and all that it starts later use, until this process ends."""
    if _SHARED in os.environ:
        atexit.register(_leave_to_others)
        return Path(os.environ[_SHARED])
    folder = Path(tempfile.mkdtemp(prefix="forks-"))
    os.mkfifo(folder / "until")
    kept = os.open(folder / "until", os.O_RDWR)  # the server reads it, and its end comes with this process's
    os.environ[_SHARED] = str(folder)

    def end() -> None:
        os.close(kept)
        for server in _started:
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder


_started: list[subprocess.Popen[bytes]] = []


def _leave_to_others() -> None:
    for server in _started:
        server.returncode = 0  # it serves on, of which Popen would warn


@cache
def _address() -> str:
    """Where the server listens; the first who asks starts it."""
    folder = share()
    path = str(folder / "socket")
    with (folder / "until").open() as until, (folder / "started").open("a") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        if not os.fstat(mark.fileno()).st_size:
            server = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", path],
                cwd=REPOSITORY,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # threads do not survive a fork
                stdin=until,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            _started.append(server)
            assert server.stdout is not None
            assert server.stdout.read(1), "the server of forks did not start"
            server.stdout.close()
            mark.write("+")
    return path


def main(path: str) -> None:
    """Serve at a path until standard input ends; in each fork, be the process that was asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_all()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(64)
        os.write(1, b"+")
        start = _serve(listener)
    if start is None:
        return
    global _address
    _address = cache(lambda: path)  # the zones of a command are forks too
    subprocess.Popen = _Zone  # type: ignore[misc]
    _end(start)


def _import_all() -> None:
    """What processes of ours import and what the first questions read; one goes to a gateway that is not there."""
    from sentinel_rag.agent.gateway_client import HttpToolGateway
    from sentinel_rag.agent.offline import OfflineAnalyst
    from sentinel_rag.contracts.ports import Question, utc_now
    from sentinel_rag.language.frames.phrases import LANGUAGES, phrase_book

    for module in pkgutil.walk_packages(sentinel_rag.__path__, "sentinel_rag."):
        with suppress(ImportError):  # of a package that is an extra
            module.name.endswith("__main__") or importlib.import_module(module.name)
    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    for language in LANGUAGES:
        phrase_book(language)  # two seconds for a process that reads what might be of any
    gateway = HttpToolGateway("http://127.0.0.1:9", "no-key", trusted=None)
    analyst = OfflineAnalyst(gateway, clock=utc_now, timezone="UTC")

    async def ask() -> None:
        await analyst.answer(Question("how many incidents are there?", "no-session"))
        await gateway.aclose()

    asyncio.run(ask())


def _serve(listener: socket.socket) -> _Start | None:
    """Make the processes that are asked for and tell how they end; None at the end, in a fork what it is to be."""
    known = selectors.DefaultSelector()
    known.register(0, selectors.EVENT_READ)
    known.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in known.select():
            if key.fd == 0:
                return None
            if key.fileobj is not listener:
                pid, asker = key.data
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with suppress(OSError):  # the asker may be gone
                    asker.send(str(code).encode())
                asker.close()
                known.unregister(key.fd)
                os.close(key.fd)
                continue
            asker, _ = listener.accept()
            told, files, _, _ = socket.recv_fds(asker, _LARGEST, _MOST_FILES)
            if not told:
                asker.close()
                continue
            start = _Start(**json.loads(told))
            pid = os.fork()
            if pid == 0:
                for each in (known, listener, asker, *(key.data[1] for key in known.get_map().values() if key.data)):
                    each.close()
                _take(files, [0, 1, 2, *start.files])
                return start
            for file in files:
                os.close(file)
            asker.send(str(pid).encode())
            known.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, asker))


def _take(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Have these open files under those numbers, and none else."""
    put_by = [fcntl.fcntl(file, fcntl.F_DUPFD, _ABOVE) for file in files]
    os.closerange(0, _ABOVE)
    for file, number in zip(put_by, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)


def _end(start: _Start) -> NoReturn:
    """Be the process, and end as Python does; what its modules hold need not be taken apart."""
    code = 0
    try:
        _begin(start)
        _run(start.program)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code & 0xFF)


def _begin(start: _Start) -> None:
    if start.session:
        os.setsid()
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.environment)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    at_once = "PYTHONUNBUFFERED" in os.environ and "-I" not in start.command
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        file: Any = FileIO(number, "w" if number else "r", closefd=False)
        if not (number and at_once):
            file = BufferedWriter(file) if number else BufferedReader(file)
        was = getattr(sys, name)
        lines = name == "stderr" or file.isatty()
        stream = TextIOWrapper(file, was.encoding, was.errors, line_buffering=lines, write_through=at_once)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run(program: list[str]) -> None:
    kind, *arguments = program
    if kind == "sentinel":
        from sentinel_rag.surfaces.cli import main as command_line

        sys.argv = [str(SENTINEL), *arguments]
        sys.exit(command_line())
    if kind == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *arguments[1:]]
        sys.modules["__main__"] = module = ModuleType("__main__")
        exec(compile(arguments[0], "<string>", "exec"), vars(module))
    else:
        sys.path.insert(0, str(Path(kind).parent))
        sys.argv = program
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
