"""`sentinel backup` and `sentinel restore`: this home copied while it is used, and put back while it is not."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from sentinel_rag.app.backup import Backup, SealHolds, make_backup, put_back, read_backup
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.app.zones import journal_reader, open_journal
from sentinel_rag.audit import BackupRestored
from sentinel_rag.contracts.errors import SentinelError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._zones import home_to_itself

BY_ITS_OWN_TOOLS = "What the database of SENTINEL_DATABASE_URL holds is not in it: copy that with pg_dump."


def backup(folder: str, *, workspaces: bool, as_json: bool) -> int:
    """Copy the home into a new folder; zones may run, but not with `workspaces`."""
    settings, target = load_settings(), Path(folder).expanduser().absolute()
    if workspaces:
        with home_to_itself(settings), RunFolder(settings.home).undisturbed():
            made = make_backup(settings.home, target, now=utc_now(), workspaces=True)
    else:
        made = make_backup(settings.home, target, now=utc_now(), workspaces=False)
    if as_json:
        told = {"folder": str(target), "files": made.size, "journal_head": made.journal_head, "made_at": made.made_at}
        print(json.dumps({**told, "seal": made.seal}))
        return 0
    journal = f"; the journal up to record {made.journal_head}" if made.journal_head else ""
    print(f"{made.size} files are copied to {target}{journal}.")
    print("It holds keys and accounts: keep it as you keep those, and on another disk.")
    print(f"Its seal, to be kept elsewhere: {made.seal}")
    if not workspaces and (settings.home / "workspaces").is_dir():
        print("Embedded workspaces are not in it: stop the zones, then sentinel backup FOLDER --workspaces.")
    if settings.database.url is not None:
        print(BY_ITS_OWN_TOOLS)
    return 0


def restore(folder: str, *, seal: str | None, check: bool, as_json: bool) -> int:
    """Put a backup in the place of what the home holds, which is moved aside, check the journal and write into it that
    this was done; 1 if it does not hold. No zone may run. With `check` only look at the backup."""
    settings, source = load_settings(), Path(folder).expanduser().absolute()
    if source.resolve().is_relative_to(settings.home.resolve()):
        raise UsageError(f"{source} lies in the home folder itself.", next_step="Move it elsewhere first.")
    kept = read_backup(source)
    holds = kept.check(source, settings.home, given=seal)
    if check:
        return _tell_check(kept, holds, as_json=as_json)
    with home_to_itself(settings), RunFolder(settings.home).undisturbed():
        aside = put_back(source, settings.home, now=utc_now(), backup=kept)
        verdict = ""
        if kept.journal_head and settings.database.url is None:
            verdict = _journal_verdict(settings) or _put_on_record(settings, kept)
    if as_json:
        told = {
            "made_at": kept.made_at,
            "moved_aside": None if aside is None else str(aside),
            "journal": verdict or "ok",
            "seal": holds.name.lower(),
        }
        print(json.dumps(told))
        return 1 if verdict else 0
    print(f"The backup of {kept.made_at} is in place: {kept.size} files.")
    print(holds.value)
    if aside is not None:
        print(f"What was there before is in {aside}.")
    if settings.database.url is not None:
        print(BY_ITS_OWN_TOOLS)
    if verdict:
        print(f"The journal does not hold: {verdict}")
        return 1
    print("Keys that were revoked since then work again, and so do accounts: revoke them anew.")
    return 0


def _tell_check(kept: Backup, holds: SealHolds, *, as_json: bool) -> int:
    if as_json:
        told = {"made_at": kept.made_at, "files": kept.size, "journal_head": kept.journal_head}
        print(json.dumps({**told, "seal": holds.name.lower()}))
        return 0
    print(f"The backup of {kept.made_at} has the {kept.size} files of its list, each as it was.")
    print(holds.value)
    return 0


def _journal_verdict(settings: Settings) -> str:
    """What is wrong with the journal that was put back, also by the anchor; empty if nothing is."""
    found = journal_reader(settings).verify(public_key=None, anchor=settings.audit_anchor)
    return "" if found.intact else str(found.problem)


def _put_on_record(settings: Settings, kept: Backup) -> str:
    """What kept the restore from being recorded; empty if nothing did."""
    event = BackupRestored(audit_id=str(uuid.uuid4()), made_at=kept.made_at, head=kept.journal_head)
    try:
        with open_journal(settings) as journal:
            journal.append_now(event)
    except SentinelError as error:
        return f"the restore could not be recorded in it. {error}"
    return ""
