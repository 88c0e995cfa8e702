"""The zones that a command talks to: those of `sentinel up` or of an open chat, or its own for as long as it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from sentinel_rag.app.places import SAMPLE_WORKSPACE, workspace_folder
from sentinel_rag.app.run_state import AlreadyRunningError, RunFolder, RunState
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.app.processes import RunningZones

BUSY_WAIT_S = 120.0
DEFAULT_WORKSPACE = "default"


def choose_workspace(settings: Settings, requested: str | None) -> str:
    """The workspace a command means: the one named, or the first that the settings list. Where they list none, the
    embedded `default`, or `sample` while only that one exists. Raises UsageError for a name that is not listed."""
    if requested is not None and settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set, and a gateway that runs elsewhere has its own workspaces.",
            next_step="Leave --workspace out, or unset SENTINEL_URL.",
        )
    if settings.workspaces:
        return _listed(tuple(each.name for each in settings.workspaces), requested)
    if requested is not None:
        _check_exists(settings, requested)
    named = requested or settings.workspace
    if named is not None:
        return named
    if workspace_folder(settings.home, DEFAULT_WORKSPACE).exists():
        return DEFAULT_WORKSPACE
    sample = workspace_folder(settings.home, SAMPLE_WORKSPACE)
    return SAMPLE_WORKSPACE if sample.exists() else DEFAULT_WORKSPACE


def workspace_to_serve(settings: Settings, requested: str | None) -> str:
    """`choose_workspace`, where each embedded one that the settings name is there: a name without a folder is a slip,
    and served empty it would answer every question with no rows. Raises UsageError."""
    chosen = choose_workspace(settings, requested)
    for name in [each.name for each in settings.workspaces if each.embedded] if settings.workspaces else [chosen]:
        _check_exists(settings, name)
    return chosen


def _check_exists(settings: Settings, name: str) -> None:
    """The first one is made by its first import, so `default` may be missing. Raises UsageError."""
    if name == DEFAULT_WORKSPACE or workspace_folder(settings.home, name).exists():
        return
    make = "demo" if name == SAMPLE_WORKSPACE else f"workspace import FILE --workspace {name}"
    raise UsageError(
        f"There is no workspace {name!r} on this machine.",
        next_step=f"Use {_known(settings)}, or make it: sentinel {make}",
    )


def _known(settings: Settings) -> str:
    folder = workspace_folder(settings.home, DEFAULT_WORKSPACE).parent
    names = {each.name for each in folder.iterdir() if each.is_dir()} if folder.is_dir() else set()
    return " or ".join(sorted(names | {DEFAULT_WORKSPACE}))


def _listed(known: tuple[str, ...], requested: str | None) -> str:
    if requested is not None and requested not in known:
        raise UsageError(
            f"The settings name no workspace {requested!r}.",
            next_step=f"Use one of: {', '.join(known)}; docs/settings.md says how to name more.",
        )
    return known[0] if requested is None else requested


@contextmanager
def attached_zones(
    settings: Settings, requested: str | None, *, shared: bool = False, web: bool = False
) -> Iterator[tuple[RunState, RunningZones | None]]:
    """Zones to ask: the running ones, or own ones (then the second value is theirs) that end with the block.

    Own ones are private unless `shared`: a command that stays open lets others ask its zones, since they would wait for
    its end otherwise. With `web` own ones serve the web surface too, on a free port.

    Raises UsageError if the running zones serve another workspace than the one asked for.
    """
    folder = RunFolder(settings.home)
    deadline = time.monotonic() + BUSY_WAIT_S
    with ExitStack() as stack:
        while True:
            state = folder.read()
            if state is not None and not state.private:
                if settings.gateway_url is None:
                    _same_workspace(state, requested)
                yield state, None
                return
            # What starts zones takes longer to import than a question beside running ones may take.
            from sentinel_rag.app.plan import Ports
            from sentinel_rag.app.processes import running_zones

            # A gateway that runs elsewhere knows its own names: the call carries the one that was asked for.
            workspace = workspace_to_serve(settings, requested if settings.gateway_url is None else None)
            try:
                zones = stack.enter_context(
                    running_zones(
                        settings, workspace=workspace, private=not shared, ports=Ports(web=0 if web else None)
                    )
                )
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


def _same_workspace(state: RunState, requested: str | None) -> None:
    if requested is not None and requested not in state.workspaces:
        raise UsageError(
            f"The zones that run now serve {_named(state.workspaces)}, not {requested!r}.",
            next_step=f"Stop `sentinel up` or the open chat, and start it with --workspace {requested}.",
        )


def _named(workspaces: tuple[str, ...]) -> str:
    names = ", ".join(map(repr, workspaces))
    return f"the workspace{'s' if len(workspaces) > 1 else ''} {names}"
