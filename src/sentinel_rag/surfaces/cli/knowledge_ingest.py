"""`sentinel knowledge ingest`: playbooks and past incidents put into the store, with how far it is."""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sentinel_rag.app.knowledge_stores import (
    ingest_files,
    open_embedder,
    open_knowledge,
    playbook_owner,
    shipped_playbooks,
)
from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.app.tls import connection_here
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._output import print_json
from sentinel_rag.surfaces.cli._zones import attached_zones
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.knowledge.ingestion import IngestReport


BAR = 24
EVERY_S = 10.0
"""Seconds between two lines where nobody watches a terminal."""


def progress_line(what: str, done: int, total: int | None, seconds: float, remaining_s: float | None) -> str:
    """`incidents of soc: [######------] 120 of 240, 12 a second, 10 s left`; as much of it as is known."""
    if total is None:
        return f"{safe_cell(what)}: looking for what is new or changed"
    share = 1.0 if total == 0 else min(1.0, done / total)
    filled = int(BAR * share)
    rate = f", {done / seconds:,.0f} a second" if done and seconds > 0 else ""
    left = "" if remaining_s is None else f", {_duration(remaining_s)} left"
    return f"{safe_cell(what)}: [{'#' * filled}{'-' * (BAR - filled)}] {done:,} of {total:,}{rate}{left}"


@contextmanager
def shown(
    *, quiet: bool, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """A function that shows a line of progress, and leaves nothing of it on a terminal at the end. Nothing with
    `quiet`."""
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    last = -EVERY_S

    def show(line: str) -> None:
        nonlocal last
        if quiet:
            return
        if terminal:
            print(f"\r\x1b[K{line}", end="", file=out, flush=True)
        else:
            now = clock()
            if now - last >= EVERY_S:
                last = now
                print(line, file=out, flush=True)

    try:
        yield show
    finally:
        if terminal and not quiet:
            print("\r\x1b[K", end="", file=out, flush=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


_SILENCE_S = 900.0
"""Longest wait for a line: a batch of texts on a slow machine, or a service that makes us wait."""


@dataclass(frozen=True, slots=True)
class WorkspaceOutcome:
    """What became of one workspace, in numbers of incidents, read in `days` back; `fault` and `next_step` where it was
    not read to the end."""

    workspace: str
    added: int
    changed: int
    unchanged: int
    removed: int
    embedded: int
    seconds: float
    partial: int
    days: int
    fault: str
    next_step: str
    served: bool = True
    """False: this home serves it no more, and what was read in of it was removed."""


@dataclass(frozen=True, slots=True)
class IncidentsRead:
    """Incidents read, of all that must be (None: not known yet); seconds so far and left (None: not known)."""

    workspace: str
    done: int
    total: int | None
    seconds: float
    remaining_s: float | None


@dataclass(frozen=True, slots=True)
class PlaybooksOutcome:
    """What became of the playbooks. `told` are the files that say something, `lines` the same for a person, `faults`
    how many should have been read and were not; `lacking` and `next_step` say which embedding model is missing."""

    added: int
    changed: int
    unchanged: int
    removed: int
    chunks: int
    embedded: int
    seconds: float
    told: Sequence[Mapping[str, Any]]
    lines: Sequence[str]
    faults: int
    by_words_only: bool
    lacking: str
    next_step: str
    beyond: int = 0
    """Playbooks that the store holds and the folder does not."""


def ingest_incidents(
    state: RunState, wish: Mapping[str, Any], listener: Callable[[IncidentsRead], None]
) -> tuple[WorkspaceOutcome, ...]:
    """Have the incidents of every workspace that these zones serve read in; `wish` is the body of `/admin/ingest`.

    Leaving early (Ctrl-C) ends the run there too, with what it has. Raises SentinelError: as the tool server tells it,
    or UnavailableError where it runs elsewhere or its connection breaks.
    """
    last = _last_line(state, "/admin/ingest", wish, lambda progress: listener(IncidentsRead(**progress)))
    return tuple(map(_outcome, last["workspaces"]))


def ingest_playbooks(
    state: RunState, wish: Mapping[str, Any], listener: Callable[[Mapping[str, Any]], None]
) -> PlaybooksOutcome:
    """Have a folder of playbooks read in by the tool server; `wish` is the body of `/admin/playbooks`. `listener` gets
    `read`, `chunks` and `seconds`. Raises as `ingest_incidents`."""
    return PlaybooksOutcome(**_last_line(state, "/admin/playbooks", wish, listener)["playbooks"])


def remove(names: Sequence[str], *, as_json: bool) -> int:
    """Remove these playbooks and nothing else. Raises UsageError, and removes none, where one is not there."""
    from sentinel_rag.knowledge.ingest_runs import IngestLock
    from sentinel_rag.knowledge.ingestion import remove_playbooks

    settings, who = load_settings(), "sentinel knowledge remove"
    state = RunFolder(settings.home).read()
    if state is not None and not state.private and state.knowledge_token:
        _last_line(state, "/admin/playbooks", {"names": list(names), "who": who}, lambda _: None, method="DELETE")
    else:
        files = ingest_files(settings)
        with IngestLock(files.lock).hold(who), open_knowledge(settings) as store:
            remove_playbooks(store, names, playbook_owner(settings, files.lock.parent))
    print(json.dumps({"removed": list(names)}) if as_json else f"Removed: {safe_cell(', '.join(names))}")
    return 0


def _last_line(
    state: RunState, path: str, wish: Mapping[str, Any], listener: Callable[[Any], None], method: str = "POST"
) -> Mapping[str, Any]:
    zone = state.zone("executor-knowledge")
    if zone is None or not state.knowledge_token:
        raise UnavailableError(
            "SENTINEL_URL names a gateway that runs elsewhere, and knowledge is read in on that machine.",
            next_step="Run there: sentinel knowledge ingest",
        )
    connection = connection_here(zone.url, state.certificate, timeout=_SILENCE_S)
    try:
        headers = {"Authorization": f"Bearer {state.knowledge_token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(wish), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise UnavailableError(
                f"The knowledge tool server answered HTTP {response.status}.", next_step="Run: sentinel status"
            )
        for line in response:
            told: Mapping[str, Any] = json.loads(line)
            if "progress" in told:
                listener(told["progress"])
            elif "error" in told:
                error = told["error"]
                raise SentinelError(error["message"], next_step=error["next_step"], code=error["code"])
            else:
                return told
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise _broken(f": {type(error).__name__}") from None
    finally:
        connection.close()
    raise _broken("")


def _broken(why: str) -> UnavailableError:
    return UnavailableError(
        f"The knowledge tool server ended before its work was done{why}.",
        next_step="Run it again: it goes on from where it was. Its log lies where sentinel status says.",
    )


def _outcome(told: Mapping[str, Any]) -> WorkspaceOutcome:
    done = told["ingested"]
    return WorkspaceOutcome(
        workspace=told["workspace"],
        added=done["added"],
        changed=done["changed"],
        unchanged=done["unchanged"],
        removed=done["removed"],
        embedded=done["embedded"],
        seconds=done["seconds"],
        partial=told["partial"],
        days=told["days"],
        fault=told["fault"],
        next_step=told["next_step"],
        served=told["served"],
    )


COMMAND = "sentinel knowledge ingest"
INTERRUPTED = "Stopped. What was read in stays and is found; the next ingest goes on from there."


def ingest(
    folder: str | None,
    *,
    only: str | None,
    days: int | None,
    reread: bool,
    by_words: bool,
    replace: bool,
    workspace: str | None,
    as_json: bool,
) -> int:
    """Bring the store up to date. With a folder, or `only` "playbooks", the playbooks alone. Without `days`, incidents
    are read as far back as the last time.

    2 if a file or a workspace could not be read, 3 if there is nothing in either.
    """
    if folder is not None and only == "incidents":
        raise UsageError(
            "A folder holds playbooks, and --only incidents leaves them out.", next_step="Leave one of the two out."
        )
    if replace and only == "incidents":
        raise UsageError("--replace is of playbooks, and --only incidents leaves them out.", next_step="Leave one out.")
    wish: dict[str, Any] = {"who": COMMAND, "reread": reread, "by_words": by_words}
    wish |= {} if days is None else {"days": days}
    try:
        return _ingest(folder, only, wish, workspace, replace=replace, as_json=as_json)
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 130


def _ingest(
    folder: str | None, only: str | None, wish: dict[str, Any], workspace: str | None, *, replace: bool, as_json: bool
) -> int:
    settings = load_settings()
    by_words = wish["by_words"]
    told: dict[str, Any] = {}
    code = 0
    found = 0
    if only != "incidents":
        place = playbooks_place(folder, settings)
        playbooks = _playbooks(place, settings, by_words=by_words, replaces=replace, quiet=as_json)
        shown_keys = ("added", "changed", "unchanged", "removed", "chunks", "embedded", "by_words_only", "told")
        told |= {key: value for key, value in asdict(playbooks).items() if key in shown_keys}
        code = 2 if playbooks.faults else 0
        found += playbooks.added + playbooks.changed + playbooks.unchanged
        if not as_json:
            _print_playbooks(playbooks, place, by_words=by_words)
    if folder is None and only != "playbooks":
        with attached_zones(settings, workspace) as (state, _):
            outcomes = told_ingest(state, wish, quiet=as_json)
        told["incidents"] = [asdict(each) for each in outcomes]
        found += sum(each.added + each.changed + each.unchanged for each in outcomes)
        if any(each.fault for each in outcomes):
            code = 2
        if not as_json:
            print_outcomes(outcomes)
    if as_json:
        print_json(told)
    return code or (0 if found else 3)


def told_ingest(state: RunState, wish: dict[str, Any], *, quiet: bool) -> tuple[WorkspaceOutcome, ...]:
    """Read the incidents in, with progress on standard error. Ctrl-C says what is left behind."""
    with shown(quiet=quiet) as show:

        def tell(progress: IncidentsRead) -> None:
            what = f"incidents of {progress.workspace}" if progress.workspace else "vectors of texts"
            show(progress_line(what, progress.done, progress.total, progress.seconds, progress.remaining_s))

        return ingest_incidents(state, wish, tell)


def print_outcomes(outcomes: Sequence[WorkspaceOutcome]) -> None:
    """A line for each workspace, and what could not be read with what helps."""
    for each in outcomes:
        name = safe_cell(each.workspace)
        if not each.served:
            print(f"Incidents of {name}, which this home serves no more: {each.removed:,} removed.")
            continue
        if each.fault and not each.added + each.changed:
            print(f"Incidents of {name}: not read. {safe(each.fault)}")
        else:
            print(
                f"Incidents of {name}: {each.added:,} new, {each.changed:,} changed, {each.unchanged:,} as before, "
                f"{each.removed:,} removed; {each.embedded:,} texts embedded, {each.seconds:.1f} s."
            )
            if each.fault:
                print(f"  It ended early: {safe(each.fault)}")
        if each.next_step:
            print(f"  Next: {safe(each.next_step)}")
        if not each.fault and not each.added + each.changed + each.unchanged:
            print(f"  None was created in the last {each.days:,} days. Further back: {COMMAND} --days N")
        if each.partial:
            print(f"  {each.partial:,} of them lack alerts, entities or comments for now; the next ingest reads them.")


def playbooks_place(folder: str | None, settings: Settings) -> Path:
    """The folder that is named, else the one of the last ingest, else the shipped one. Raises UsageError if it is not
    there."""
    from sentinel_rag.knowledge.ingest_runs import playbooks_folder

    kept = playbooks_folder(ingest_files(settings).playbooks) if folder is None else None
    place = Path(folder).expanduser() if folder is not None else kept or shipped_playbooks()
    if not place.is_dir():
        said = "There is no folder" if kept is None else "The playbooks were read from a folder that is not there now:"
        raise UsageError(
            f"{said} {place}.", next_step=f"Name a folder with playbooks; the shipped ones lie in {shipped_playbooks()}"
        )
    return place


def _playbooks(place: Path, settings: Settings, *, by_words: bool, replaces: bool, quiet: bool) -> PlaybooksOutcome:
    """By the tool server where one runs, since it may be the only one that can open the store; else here."""
    from sentinel_rag.knowledge.ingest_runs import remember_playbooks_folder

    with shown(quiet=quiet) as show:

        def tell(told: Mapping[str, Any]) -> None:
            rate = told["chunks"] / told["seconds"] if told["seconds"] else 0.0
            show(f"playbooks: {told['read']:,} read, {told['chunks']:,} chunks, {rate:.0f} a second")

        state = RunFolder(settings.home).read()
        if state is not None and not state.private and state.knowledge_token:
            wish = {"who": COMMAND, "folder": str(place.absolute()), "by_words": by_words, "replaces": replaces}
            outcome = ingest_playbooks(state, wish, tell)
        else:
            outcome = _playbooks_here(place, settings, tell, by_words=by_words, replaces=replaces)
    files = ingest_files(settings)
    if place != shipped_playbooks() or files.playbooks.exists():
        remember_playbooks_folder(files.playbooks, place)
    return outcome


def _playbooks_here(
    place: Path, settings: Settings, tell: Callable[[Mapping[str, Any]], None], *, by_words: bool, replaces: bool
) -> PlaybooksOutcome:
    from sentinel_rag.knowledge.ingest_runs import IngestLock
    from sentinel_rag.knowledge.ingestion import ingest_folder

    def told(report: IngestReport) -> None:
        tell({"read": report.added + report.changed, "chunks": report.chunks, "seconds": report.seconds})

    with (
        IngestLock(ingest_files(settings).lock).hold(COMMAND),
        open_embedder(settings.embeddings) as model,
        open_knowledge(settings) as store,
    ):
        space = store.state().space
        if space is not None and model.lacking:
            raise UnavailableError(f"The store holds vectors of {space}. {model.lacking}", next_step=model.next_step)
        embedder = None if by_words and space is None else model.embedder
        owner = playbook_owner(settings, place)
        report = ingest_folder(store, embedder, place, owner=owner, replaces=replaces, listener=told)
    done = report.ingested
    return PlaybooksOutcome(
        added=done.added,
        changed=done.changed,
        unchanged=done.unchanged,
        removed=done.removed,
        chunks=done.chunks,
        embedded=done.embedded,
        seconds=done.seconds,
        told=[{"source": each.source, "outcome": each.outcome.value, "said": each.said} for each in report.told],
        lines=[each.line for each in report.told],
        faults=len(report.faults),
        by_words_only=embedder is None,
        lacking=model.lacking,
        next_step=model.next_step,
        beyond=report.beyond,
    )


def _print_playbooks(done: PlaybooksOutcome, place: Path, *, by_words: bool) -> None:
    for line in done.lines:
        print(safe_cell(line))
    print(
        f"Playbooks of {safe_cell(str(place))}: {done.added:,} new, {done.changed:,} changed, "
        f"{done.unchanged:,} as before, {done.removed:,} removed; "
        f"{done.chunks:,} chunks, {done.embedded:,} texts embedded, {done.seconds:.1f} s."
    )
    if done.beyond:
        print(f"{done.beyond:,} playbooks that are not in this folder stay; to remove them: {COMMAND} --replace")
    if done.lacking and not by_words:
        print(f"Found by words only for now. {safe(done.lacking)}")
        print(f"  Next: {safe(done.next_step)}; then: sentinel knowledge ingest")
