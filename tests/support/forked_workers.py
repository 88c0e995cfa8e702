"""Run the tests in forks of one process: `-n 3` has three at work, each of which collects and runs a file at a time.

Only the worker that runs a file imports it, and what conftests import is imported before the first fork. A worker keeps
what lives for a session (a server, a browser) from file to file. Where one dies, the test it was at has failed and the
rest of the file is not run. Without `-n` pytest is as ever.
"""

from __future__ import annotations

import atexit
import gc
import os
import random
import signal
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest

_DONE = "done"


def pytest_addoption(parser: pytest.Parser) -> None:
    # pytest keeps the small letters for itself, but this one everybody knows from pytest-xdist.
    parser.getgroup("forks")._addoption("-n", dest="workers", type=int, default=0, help="worker processes (0: none)")


def pytest_configure(config: pytest.Config) -> None:
    option = config.option
    # A test that is named is found by collecting its file, and a debugger needs the terminal.
    alone = option.collectonly or option.usepdb or any("::" in name for name in config.args)
    if option.workers and not alone:
        config.pluginmanager.register(_Distributor(option.workers), "forked-workers")


@dataclass
class _Worker:
    pid: int
    test: str = "before the first test"
    reports: list[pytest.CollectReport | pytest.TestReport] = field(default_factory=list)
    """Those of its file, told together, so that each line of the terminal is one file's."""


class _Distributor:
    """Give files to workers, and report what they send as if it happened here."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._modules: list[pytest.Module] = []
        self._workers: dict[Connection, _Worker] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        if not isinstance(collector, pytest.Module):
            return None
        self._modules.append(collector)
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    def pytest_report_collectionfinish(self) -> str:
        return f"{len(self._modules)} files for {self._number} workers"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None
        if (reporter := session.config.pluginmanager.getplugin("terminalreporter")) is not None:
            reporter._show_progress_info = False  # a share of how many nobody has counted
        waiting = deque(_in_order(self._modules, session.config))
        gc.freeze()  # what is here stays; no worker's collector need look at it, nor copy its pages
        try:
            while waiting or self._workers:
                while waiting and len(self._workers) < self._number:
                    self._fork(session)
                for link in wait(list(self._workers)):
                    self._hear(session, link, waiting)
        finally:
            for link, worker in self._workers.items():
                os.kill(worker.pid, signal.SIGINT)
                os.waitpid(worker.pid, 0)
                link.close()
        return True

    def _fork(self, session: pytest.Session) -> None:
        here, there = Pipe()
        pid = os.fork()
        if pid == 0:
            for other in (here, *self._workers):
                other.close()
            session.config.pluginmanager.unregister(self)
            _Fork(session, there).work(self._modules)
        there.close()
        self._workers[here] = _Worker(pid)

    def _hear(self, session: pytest.Session, link: Any, waiting: deque[pytest.Module]) -> None:
        worker, hook = self._workers[link], session.config.hook
        try:
            kind, told = link.recv()
        except (EOFError, ConnectionResetError):
            kind, told = "end", ""
        if kind == "test":
            worker.test = told
            session.testscollected += 1
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=session.config, data=told)
            worker.reports.append(report)
        elif kind == "next":
            self._report(session, worker)
            link.send(self._modules.index(waiting.popleft()) if waiting else None)
        else:
            del self._workers[link]
            code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
            if told != _DONE:
                name, text = worker.test, told or f"The process that ran it ended with {code}."
                worker.reports.append(pytest.TestReport(name, (name, None, name), {}, "failed", text, "call"))
            self._report(session, worker)

    def _report(self, session: pytest.Session, worker: _Worker) -> None:
        hook = session.config.hook
        for report in worker.reports:
            if isinstance(report, pytest.CollectReport):
                hook.pytest_collectreport(report=report)
            else:
                hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
                hook.pytest_runtest_logreport(report=report)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
        worker.reports = []


class _Fork:
    """Run files, one after another, and send what is reported."""

    def __init__(self, session: pytest.Session, link: Connection) -> None:
        self._session = session
        self._link = link

    def work(self, modules: Sequence[pytest.Module]) -> NoReturn:
        atexit._clear()  # those are the parent's
        try:
            self._begin(self._session.config)
            while (place := self._ask()) is not None:
                self._run(modules[place])
            self._session._setupstate.teardown_exact(None)
            self._link.send(("end", _DONE))
        except KeyboardInterrupt:
            pass
        except BaseException:
            self._link.send(("end", traceback.format_exc()))
        finally:
            with suppress(BaseException):
                self._session._setupstate.teardown_exact(None)
            atexit._run_exitfuncs()
            os._exit(1)

    def _begin(self, config: pytest.Config) -> None:
        config.pluginmanager.unregister(name="terminalreporter")
        capture: Any = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files would be the other workers' too
        capture.start_global_capturing()
        capture.suspend_global_capture()
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.mktemp("fork")
        config.pluginmanager.register(self)

    def _ask(self) -> Any:
        self._link.send(("next", None))
        return self._link.recv()

    def _run(self, module: pytest.Module) -> None:
        session = self._session
        session.items = list(session.genitems(module))
        session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=session.items)
        for item, following in pairwise((*session.items, session)):
            self._link.send(("test", item.nodeid))
            # Before the session's own node all else is taken down, and what lives for a session stays.
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        config = self._session.config
        self._link.send(("report", config.hook.pytest_report_to_serializable(config=config, report=report)))


def _in_order(modules: Sequence[pytest.Module], config: pytest.Config) -> list[pytest.Module]:
    """Files with a slow test first, then the end-to-end ones: whatever starts last, the workers wait for."""
    order = list(modules)
    if config.getoption("randomly_reorganize", False):
        random.Random(config.getoption("randomly_seed")).shuffle(order)
    return sorted(
        order, key=lambda module: (b"mark.slow" not in module.path.read_bytes(), "e2e" not in module.path.parts)
    )
