"""`sentinel export` and `/export`: a kept conversation as a file of its own; `sentinel report`: an incident, or the
hand-over of a shift, as they are now.

An export reads this home's conversations and the gateway's journal, and asks nothing of a network; a report reads the
incident or the queue at the gateway too, with the person's own key. Values that the policy
hides stay hidden; with `--reveal` the running gateway is asked for those that this person may see, and the file
says so.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.agent.answers.results_file import results_document
from sentinel_rag.agent.conversations.store import StoredConversation
from sentinel_rag.app.conversations import kept_conversations
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.app.zones import journal_reader, key_store
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.handles import fill_in, fill_in_answer, handles_in
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._zones import UserSession, attached_zones, connect, user_session
from sentinel_rag.surfaces.cli.ask import waiting
from sentinel_rag.surfaces.cli.kept_conversations import SHORT_ID, found_or_last
from sentinel_rag.surfaces.rendering.visible import safe_cell
from sentinel_rag.surfaces.reports import FORMATS, HandOver, Head, Reading, ReportTurn, calls_for, hand_over, written

RESULTS = "results"
"""The form that is no report: the calls with their results as JSON, for `sentinel answer check` and other programs."""
FORMS = (*FORMATS, RESULTS)
ENDINGS = tuple(f".{each}" for each in FORMATS if each != "evidence")
MOST_TURNS = 10_000
MOST_RECORDS = 1_000
STANDARD_OUTPUT = "-"
OWNER = "user"
"""Who asks in the terminal, by the name of that key."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to export, and where to. `form` is one of FORMS, None for that of the file's name; `output` is a path,
    `-` for standard output, None for a name of our own in the current folder."""

    form: str | None = None
    output: str | None = None
    force: bool = False
    reveal: bool = False
    incident: str = ""
    """The one incident to report of, by its number; empty for the whole shift."""


def run(
    conversation: str | None,
    *,
    form: str | None = None,
    output: str | None = None,
    force: bool = False,
    reveal: bool = False,
    incident: str = "",
) -> int:
    """Export the conversation whose id begins so, or the last one."""
    settings = load_settings()
    with closing(kept_conversations(settings)) as store:
        conversation_id = found_or_last(store, conversation)
    export(settings, conversation_id, ExportOptions(form, output, force, reveal, incident.lstrip("#")))
    return 0


def wish_of_words(words: Sequence[str]) -> ExportOptions:
    """What stands behind `/export`: a form, `--force`, `--reveal`, and a path. Raises UsageError."""
    path: list[str] = []
    wish = ExportOptions()
    for word in words:
        if word == "--force":
            wish = replace(wish, force=True)
        elif word == "--reveal":
            wish = replace(wish, reveal=True)
        elif word.startswith("--"):
            raise UsageError(
                f"/export knows no {word}.", next_step=f"Write: /export [{'|'.join(FORMS)}] [PATH] [--force] [--reveal]"
            )
        elif word in FORMS and wish.form is None and not path:
            wish = replace(wish, form=word)
        else:
            path.append(word)
    return replace(wish, output=" ".join(path) or None)


def export(settings: Settings, conversation_id: str, wish: ExportOptions) -> None:
    """Write the report, and say where. Raises UsageError for a file that is there, UnavailableError for a disk or an
    gateway that is not."""
    form = _form(wish)
    now = utc_now()
    name = f"{'results' if form == RESULTS else 'handover'}-{conversation_id[:SHORT_ID]}"
    path = None if wish.output == STANDARD_OUTPUT else _target(wish, name, form, now)
    if form == RESULTS:
        text, count = results_text(settings, conversation_id)
        if path is None:
            sys.stdout.write(text)
            return
        _write(path, text.encode(), force=wish.force)
        print(f"Written: {safe_cell(str(path))} ({count} results; hidden values stay hidden)")
        return
    report = read_report(settings, conversation_id, reveal=wish.reveal, now=now, incident=wish.incident)
    if wish.incident and not report.facts:
        raise UsageError(
            f"No question of this conversation was about incident {wish.incident}.",
            next_step=f"The incident itself: sentinel report {wish.incident}",
        )
    _deliver(report, form, path, force=wish.force)


def _deliver(report: HandOver, form: str, path: Path | None, *, force: bool) -> None:
    """Write the report to the file, or to standard output, and say where."""
    content = written(form, report)
    if path is None:
        sys.stdout.buffer.write(content)
        return
    _write(path, content, force=force)
    print(f"Written: {safe_cell(str(path))} ({len(report.facts)} questions, {len(report.evidence)} rows of evidence)")
    if report.head.revealed:
        print("It shows values that the policy hides from the agent. Give it only to people who may see them.")
    for note in report.head.notes:
        print(f"Note: {safe_cell(note)}")


def report(
    incident: str | None,
    *,
    hours: int,
    team: bool,
    workspace: str | None,
    form: str | None = None,
    output: str | None = None,
    force: bool = False,
    reveal: bool = False,
) -> int:
    """Write the report of an incident, or the hand-over of the shift, as they are now."""
    settings, now = load_settings(), utc_now()
    wish = ExportOptions(form, output, force, reveal, (incident or "").lstrip("#"))
    chosen = _form(wish)
    if chosen == RESULTS:
        raise UsageError(
            "A report is no list of results.", next_step="Give another name; or: sentinel export --format results"
        )
    name = f"incident-{wish.incident}" if wish.incident else "shift"
    path = None if output == STANDARD_OUTPUT else _target(wish, name, chosen, now)
    since = format_time(now - timedelta(hours=hours))
    notes: list[str] = []
    with waiting("Reading..."), attached_zones(settings, workspace) as (state, _):
        user = user_session(state, settings)
        if user is None:
            raise UsageError("A report reads with a person's key.", next_step="Set SENTINEL_USER_KEY.")
        readings = _readings(user, wish, since, workspace, notes)
        with closing(kept_conversations(settings)) as store:
            listed = [each.conversation_id for each in reversed(store.list(MOST_RECORDS)) if each.used_at >= since]
        own = [each for each in listed if team or user.is_open(each)]
        try:
            every = connect(settings).page(None)["approvals"]
            approvals = [each for each in every if team or wish.incident or each["person"] == OWNER]
        except SentinelError as error:
            approvals = []
            notes.append(f"Approvals were not read: {error}")
        told = _read(settings, own, wish, now, notes, readings=readings, approvals=approvals, since=since, team=team)
    if not told.facts and not any(each.rows for each in readings):
        about = f"There is no incident {wish.incident}" if wish.incident else "Nothing could be read"
        raise UsageError(
            f"{about}, so there is no report.", next_step=" ".join(notes) or 'Look: sentinel ask "open incidents"'
        )
    _deliver(told, chosen, path, force=force)
    return 0


def _readings(
    user: UserSession, wish: ExportOptions, since: str, workspace: str | None, notes: list[str]
) -> list[Reading]:
    """What the report reads with the person's key; `notes` get what was refused."""
    readings: list[Reading] = []
    calls, result = calls_for(wish.incident, since, workspace or ""), None
    with user.looking(reveal=wish.reveal) as look, suppress(StopIteration):
        while True:
            tool, arguments = calls.send(result)
            result = None
            try:
                found = look(tool, arguments)
            except SentinelError as error:
                notes.append(f"{tool} was not read: {error}")
            else:
                result = found["result"]
                readings.append(
                    Reading(tool, arguments, str(found["audit_id"]), format_time(utc_now()), found["result"])
                )
    return readings


def read_report(
    settings: Settings, conversation_id: str, *, reveal: bool, now: datetime, incident: str = ""
) -> HandOver:
    """The report of a kept conversation. Raises UsageError if it is not kept."""
    return _read(settings, [conversation_id], ExportOptions(reveal=reveal, incident=incident), now, [])


def _read(
    settings: Settings,
    conversations: Sequence[str],
    wish: ExportOptions,
    now: datetime,
    notes: list[str],
    *,
    readings: Sequence[Reading] = (),
    approvals: Sequence[Json] = (),
    since: str = "",
    team: bool = False,
) -> HandOver:
    """The report of kept conversations, from `since` on, with what was read for it. Raises UsageError if one is not
    kept."""
    turns: list[Json] = []
    records: list[Mapping[str, Any]] = []
    head, timezone, named = "", str(settings.timezone), ""
    for each in conversations:
        stored = _stored(settings, each, with_answers=True)
        asked: list[Json] = [
            {"asked_at": turn.asked_at, "question": turn.question, "text": turn.answer, "conversation": each}
            | {"outcome": turn.outcome or "stopped", "answer": turn.shown, "number": len(turns) + number}
            for number, turn in enumerate((turn for turn in stored.turns if turn.asked_at >= since), 1)
        ]
        turns += _revealed(settings, each, asked) if wish.reveal else asked
        timezone = stored.preferences.timezone or timezone
        named = named or stored.preferences.workspace or ""
        found, head = _records(settings, each, notes)
        records += found
    if any(turn["answer"] is None and turn["text"] for turn in turns):
        notes.append("Answers of an earlier version were kept as text alone, so they stand here without evidence.")
    told = [coverage for turn in turns for coverage in (turn["answer"] or {}).get("coverage", ())]
    told += [each.result["coverage"] for each in readings if "coverage" in each.result]
    workspaces = dict.fromkeys(str(coverage["workspace"]) for coverage in told)
    return hand_over(
        Head(
            conversation_id=conversations[0] if len(conversations) == 1 else f"{len(conversations)} conversations",
            exported_by=_person(),
            exported_at=now,
            timezone=timezone,
            workspace=", ".join(workspaces) or named,
            revealed=wish.reveal,
            journal_head=head,
            notes=tuple(dict.fromkeys(notes)),
            incident=wish.incident,
            people=_names(settings),
            since="" if wish.incident else since,
            team=team,
        ),
        [ReportTurn(**turn) for turn in turns],
        records,
        readings,
        approvals,
    )


def results_text(settings: Settings, conversation_id: str) -> tuple[str, int]:
    """The calls of a kept conversation with their results as JSON, and how many. Raises UsageError if it is not kept,
    or without them."""
    stored = _stored(settings, conversation_id, with_results=True)
    entries = [entry for turn in stored.turns for entry in turn.results]
    if not entries and stored.turns:
        raise UsageError(
            "No results are kept of this conversation: its questions called no tool, or an earlier version kept it.",
            next_step="Ask again; results are kept from then on.",
        )
    document = results_document(
        entries,
        timezone=stored.preferences.timezone or str(settings.timezone),
        said=[turn.question for turn in stored.turns],
    )
    return json.dumps(document, ensure_ascii=True, indent=1) + "\n", len(entries)


def _stored(
    settings: Settings, conversation_id: str, *, with_answers: bool = False, with_results: bool = False
) -> StoredConversation:
    with closing(kept_conversations(settings)) as store:
        stored = store.load(conversation_id, turns=MOST_TURNS, with_answers=with_answers, with_results=with_results)
    if stored is None:
        raise UsageError(
            "Nothing of this conversation is kept.", next_step="Ask something first; sentinel chat --list shows others."
        )
    return stored


def _revealed(settings: Settings, conversation_id: str, turns: list[Json]) -> list[Json]:
    """The turns with the hidden values that this person may see. Raises UnavailableError without a gateway."""
    handles = handles_in(turns)
    if not handles:
        return turns
    user = user_session(RunFolder(settings.home).read(), settings)
    if user is None:
        raise UnavailableError(
            "Hidden values are the gateway's to show, and none runs that knows you.",
            next_step="Run sentinel up, or with SENTINEL_URL set SENTINEL_USER_KEY; or leave out --reveal.",
        )
    values = user.values(conversation_id, handles)
    return [
        {**fill_in(turn, values), "answer": turn["answer"] and fill_in_answer(turn["answer"], values)} for turn in turns
    ]


def _records(settings: Settings, session_id: str, notes: list[str]) -> tuple[list[Mapping[str, Any]], str]:
    """The journal's records of the session and of its approvals, oldest first, and the newest record of all."""
    if settings.gateway_url is not None:
        notes.append("The gateway runs elsewhere, so its record of approvals is not in this report.")
        return [], ""
    from sentinel_rag.audit import RecordFilter

    try:
        reader = journal_reader(settings)
        found = reader.search(RecordFilter(session_id=session_id), MOST_RECORDS)
        approvals = [entry.audit_id for entry in found if entry.kind == "approval_asked"]
        every = {entry.seq: entry for entry in (*found, *(e for each in approvals for e in reader.find(each)))}
        newest = reader.last(1)
    except SentinelError as error:
        notes.append(f"The gateway's record could not be read, so actions and approvals are missing: {error}")
        return [], ""
    if len(found) == MOST_RECORDS:
        notes.append(f"Only the newest {MOST_RECORDS} records of the session were read.")
    head = f"number {newest[0].seq}, hash {newest[0].digest.hex()}" if newest else ""
    return [every[seq].to_dict() for seq in sorted(every)], head


def _names(settings: Settings) -> dict[str, str]:
    """Names by the ids of keys, those of the accounts among them; none where the keys are kept elsewhere."""
    if settings.gateway_url is not None:
        return {}
    try:
        with closing(key_store(settings)) as keys:
            return {info.key_id: info.name for info in keys.list() if info.name}
    except SentinelError:
        return {}


def _form(wish: ExportOptions) -> str:
    """The form that is asked for, or that the ending of the file means. Raises UsageError for one that cannot be."""
    suffix = "" if wish.output in (None, STANDARD_OUTPUT) else Path(str(wish.output)).suffix.removeprefix(".").lower()
    named = {"htm": "html", "markdown": "md", "json": RESULTS}.get(suffix, suffix)
    if wish.form is None and suffix and named not in FORMS:
        raise UsageError(
            f"No report can be made that ends in .{suffix}.",
            next_step=f"Give a name that ends in {', '.join(ENDINGS)} or .json, or a --format.",
        )
    if wish.form is not None and named in FORMS and named != ("csv" if wish.form == "evidence" else wish.form):
        raise UsageError(
            f"--format {wish.form} and a name that ends in .{suffix} say two things.",
            next_step="Leave one of them out.",
        )
    return wish.form or named or "md"


def _target(wish: ExportOptions, name: str, form: str, now: datetime) -> Path:
    """The file to write. Raises UsageError for a folder, and for a file that is there, before anything is read."""
    suffix = {RESULTS: "json", "evidence": "csv"}.get(form, form)
    path = Path(wish.output or f"{name}-{now:%Y%m%d-%H%M}.{suffix}").expanduser()
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", next_step="Give the name of a file in it.")
    if not wish.force and (path.exists() or path.is_symlink()):
        raise _there(path)
    return path


def _write(path: Path, content: bytes, *, force: bool) -> None:
    """The file, for its owner alone, whole or not at all."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            if force:
                Path(name).replace(path)
            else:
                os.link(name, path)  # fails where a file came to be meanwhile
        finally:
            with suppress(FileNotFoundError):
                Path(name).unlink()
    except FileExistsError:
        raise _there(path) from None
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be written: {error.strerror or error}.", next_step="Give another path with --output."
        ) from None


def _there(path: Path) -> UsageError:
    return UsageError(f"{path} is there already.", next_step="Give another name, or --force to write over it.")


def _person() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
