"""`sentinel knowledge ingest`: playbooks and past incidents into the store of this home.

Incidents need the workspace's credential, so the tool server that holds it reads them, in the running zones or in own
ones that end with the command. Playbooks are files of yours: this command reads them itself, unless zones run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.app.knowledge_access import open_embedder, open_knowledge, playbook_owner, shipped_playbooks
from sentinel_rag.app.knowledge_zone import ingest_files
from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._ingest_progress import progress_line, shown
from sentinel_rag.surfaces.cli._knowledge_client import (
    PlaybooksOutcome,
    Progress,
    WorkspaceOutcome,
    ingest_incidents,
    ingest_playbooks,
)
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell
from sentinel_rag.surfaces.cli._zones import attached_zones

if TYPE_CHECKING:
    from sentinel_rag.knowledge.ingestion import IngestReport

COMMAND = "sentinel knowledge ingest"
INTERRUPTED = "Stopped. What was read in stays and is found; the next ingest goes on from there."


def ingest(
    folder: str | None,
    *,
    only: str | None,
    days: int | None,
    reread: bool,
    by_words: bool,
    replaces: bool,
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
    if replaces and only == "incidents":
        raise UsageError("--replace is of playbooks, and --only incidents leaves them out.", next_step="Leave one out.")
    wish: dict[str, Any] = {"who": COMMAND, "reread": reread, "by_words": by_words}
    wish |= {} if days is None else {"days": days}
    try:
        return _ingest(folder, only, wish, workspace, replaces=replaces, as_json=as_json)
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 130


def _ingest(
    folder: str | None, only: str | None, wish: dict[str, Any], workspace: str | None, *, replaces: bool, as_json: bool
) -> int:
    settings = load_settings()
    by_words = wish["by_words"]
    told: dict[str, Any] = {}
    code = 0
    found = 0
    if only != "incidents":
        place = playbooks_place(folder, settings)
        playbooks = _playbooks(place, settings, by_words=by_words, replaces=replaces, quiet=as_json)
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
        print(json.dumps(told, indent=2))
    return code or (0 if found else 3)


def told_ingest(state: RunState, wish: dict[str, Any], *, quiet: bool) -> tuple[WorkspaceOutcome, ...]:
    """Read the incidents in, with progress on standard error. Ctrl-C says what is left behind."""
    with shown(quiet=quiet) as show:

        def tell(progress: Progress) -> None:
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
    from sentinel_rag.knowledge.ingest_record import playbooks_folder

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
    from sentinel_rag.knowledge.ingest_record import remember_playbooks_folder

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
    from sentinel_rag.knowledge.folder_ingestion import ingest_folder
    from sentinel_rag.knowledge.ingest_lock import IngestLock

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
