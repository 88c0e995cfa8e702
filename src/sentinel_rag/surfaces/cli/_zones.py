"""The zones that a command talks to: those of `sentinel up`, or private ones for as long as the command runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from sentinel_rag.assembly.plan import workspace_folder
from sentinel_rag.assembly.processes import RunningZones, running_zones
from sentinel_rag.assembly.run_state import AlreadyRunningError, RunFolder, RunState
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings

BUSY_WAIT_S = 120.0
DEFAULT_WORKSPACE = "default"
SAMPLE_WORKSPACE = "sample"


def choose_workspace(settings: Settings, requested: str | None) -> str:
    """The embedded workspace a command means: the one named, or `default`, or `sample` while only that one exists."""
    named = requested or settings.workspace
    if named is not None:
        return named
    if workspace_folder(settings.home, DEFAULT_WORKSPACE).exists():
        return DEFAULT_WORKSPACE
    sample = workspace_folder(settings.home, SAMPLE_WORKSPACE)
    return SAMPLE_WORKSPACE if sample.exists() else DEFAULT_WORKSPACE


@contextmanager
def attached_zones(settings: Settings, requested: str | None) -> Iterator[tuple[RunState, RunningZones | None]]:
    """Zones to ask: the running ones, or private ones (then the second value is theirs) that end with the block.

    Raises UsageError if the running zones serve another workspace than the one asked for.
    """
    folder = RunFolder(settings.home)
    deadline = time.monotonic() + BUSY_WAIT_S
    with ExitStack() as stack:
        while True:
            state = folder.read()
            if state is not None and not state.private:
                _same_workspace(settings, state, requested)
                yield state, None
                return
            workspace = choose_workspace(settings, requested)
            try:
                zones = stack.enter_context(running_zones(settings, workspace=workspace, private=True))
            except AlreadyRunningError:
                # Another command's private zones end with it; two at once would fight over the workspace's file.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
                continue
            break
        yield zones.state, zones


@contextmanager
def home_to_itself(settings: Settings) -> Iterator[None]:
    """Keep zones from starting while the block works on stored files. Waits for other commands, not for `up`."""
    folder = RunFolder(settings.home)
    deadline = time.monotonic() + BUSY_WAIT_S
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(folder.hold())
                break
            except AlreadyRunningError:
                state = folder.read()
                if (state is not None and not state.private) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield


def _same_workspace(settings: Settings, state: RunState, requested: str | None) -> None:
    if requested is not None and not settings.uses_azure and requested != state.workspace:
        raise UsageError(
            f"The zones that run now serve the workspace {state.workspace!r}, not {requested!r}.",
            next_step=f"Stop `sentinel up` and start it with --workspace {requested}.",
        )
