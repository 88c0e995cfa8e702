"""`sentinel export` and `/export`: a kept conversation as a shift hand-over, in a file of its own.

It reads this home's conversations and the gateway's journal, and asks nothing of a network. Values that the policy
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
from datetime import datetime
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
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._zones import user_session
from sentinel_rag.surfaces.cli.kept_conversations import SHORT_ID, found_or_last
from sentinel_rag.surfaces.rendering.visible import safe_cell
from sentinel_rag.surfaces.reports import FORMATS, HandOver, Head, ReportTurn, hand_over, written

RESULTS = "results"
"""The form that is no report: the calls with their results as JSON, for `sentinel answer check` and other programs."""
FORMS = (*FORMATS, RESULTS)
MOST_TURNS = 10_000
MOST_RECORDS = 1_000
STANDARD_OUTPUT = "-"

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
    path = None if wish.output == STANDARD_OUTPUT else _target(wish, conversation_id, form, now)
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
            next_step=f'Ask first: sentinel ask "what is incident {wish.incident} about?"',
        )
    content = written(form, report)
    if path is None:
        sys.stdout.buffer.write(content)
        return
    _write(path, content, force=wish.force)
    print(f"Written: {safe_cell(str(path))} ({len(report.facts)} questions, {len(report.evidence)} rows of evidence)")
    if report.head.revealed:
        print("It shows values that the policy hides from the agent. Give it only to people who may see them.")
    for note in report.head.notes:
        print(f"Note: {safe_cell(note)}")


def read_report(
    settings: Settings, conversation_id: str, *, reveal: bool, now: datetime, incident: str = ""
) -> HandOver:
    """The report of a kept conversation. Raises UsageError if it is not kept."""
    stored = _stored(settings, conversation_id, with_answers=True)
    turns: list[Json] = [
        {"number": each.number, "asked_at": each.asked_at, "question": each.question, "text": each.answer}
        | {"outcome": each.outcome or "stopped", "answer": each.shown}
        for each in stored.turns
    ]
    notes: list[str] = []
    if any(turn["answer"] is None and turn["text"] for turn in turns):
        notes.append("Answers of an earlier version were kept as text alone, so they stand here without evidence.")
    if reveal:
        turns = _revealed(settings, conversation_id, turns)
    records, head = _records(settings, conversation_id, notes)
    told = [coverage for turn in turns for coverage in (turn["answer"] or {}).get("coverage", ())]
    workspaces = dict.fromkeys(str(coverage["workspace"]) for coverage in told)
    return hand_over(
        Head(
            conversation_id=conversation_id,
            exported_by=_person(),
            exported_at=now,
            timezone=stored.preferences.timezone or str(settings.timezone),
            workspace=", ".join(workspaces) or stored.preferences.workspace or "",
            revealed=reveal,
            journal_head=head,
            notes=tuple(notes),
            incident=incident,
            people=_names(settings),
        ),
        [ReportTurn(**turn) for turn in turns],
        records,
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
            next_step=f"Give a name that ends in {', '.join(f'.{each}' for each in FORMATS)} or .json, or a --format.",
        )
    if wish.form is not None and named in FORMS and named != wish.form:
        raise UsageError(
            f"--format {wish.form} and a name that ends in .{suffix} say two things.",
            next_step="Leave one of them out.",
        )
    return wish.form or named or "md"


def _target(wish: ExportOptions, conversation_id: str, form: str, now: datetime) -> Path:
    """The file to write. Raises UsageError for a folder, and for a file that is there, before anything is read."""
    name, suffix = ("results", "json") if form == RESULTS else ("handover", form)
    path = Path(wish.output or f"{name}-{conversation_id[:SHORT_ID]}-{now:%Y%m%d-%H%M}.{suffix}").expanduser()
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
