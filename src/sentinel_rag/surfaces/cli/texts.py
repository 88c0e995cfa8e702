"""`sentinel texts`, and `/texts` of a chat: texts in alerts that attackers may have left for whoever reads them."""

from __future__ import annotations

from dataclasses import asdict

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_words
from sentinel_rag.surfaces.cli._zones import UserSession, attached_zones, user_session
from sentinel_rag.surfaces.cli.ask import waiting
from sentinel_rag.surfaces.outside_texts import OutsideText, outside_texts
from sentinel_rag.surfaces.rendering.visible import safe_cell

PAGE = 100
MOST = 2_000
"""Alerts that are looked at; how many of how many is told."""
LONGEST = 300


def run(*, workspace: str | None, days: int, as_json: bool) -> int:
    """Look, and print what was found; 3 for nothing."""
    settings = load_settings()
    with waiting("Starting...", quiet=as_json), attached_zones(settings, workspace) as (state, _):
        return show(user_session(state, settings), workspace, days, as_json=as_json)


def show(user: UserSession | None, workspace: str | None, days: int, *, as_json: bool = False) -> int:
    """Look with the person's rights and print what was found; 3 for nothing. Raises UsageError without a key."""
    if user is None:
        raise UsageError("Looking takes a person's key.", next_step="Set SENTINEL_USER_KEY.")
    arguments = {"time_window": f"last_{days}d", "limit": PAGE, **({"workspace": workspace} if workspace else {})}
    found: dict[str, OutsideText] = {}
    read, total = 0, None
    with user.looking() as look:
        while read < MOST:
            seen = look("query_alerts", {**arguments, "offset": read})
            rows, total = seen["result"]["rows"], seen["result"]["coverage"]["rows_total"]
            for each in outside_texts(rows, seen["audit_id"]):
                found.setdefault(each.text, each)
            read += len(rows)
            if not rows or total is None or read >= total:
                break
    texts = sorted(found.values(), key=lambda each: -len(each.why))
    if as_json:
        print_json({"alerts_read": read, "alerts_total": total, "texts": list(map(asdict, texts))})
    else:
        of = "an unknown number of" if total is None else total
        _print(texts, f"{read} of {of} alerts of {days} day{'' if days == 1 else 's'}")
    return 0 if texts else 3


def _print(texts: list[OutsideText], looked_at: str) -> None:
    from rich.text import Text

    from sentinel_rag.surfaces.cli._render import console

    target = console()
    for number, each in enumerate(texts, 1):
        of = f"incident {each.incident}, " if each.incident is not None else ""
        target.print(Text(safe_cell(f"{number}. {of}{each.place}: {', '.join(each.why)}"), style="bold"))
        cut = each.text if len(each.text) <= LONGEST else f"{each.text[:LONGEST]} ... ({len(each.text)} characters)"
        for line in Text(safe_cell(cut)).wrap(target, max(20, target.width - 5)):
            target.print(Text.assemble("   ▌ " if not target.options.ascii_only else "   | ", line))
        target.print(Text(safe_cell(f"   alert {each.alert} ({each.alert_id}), read as {each.audit_id}"), style="dim"))
    none = "" if texts else "None was found by its signs. "
    print_words(f"{none}What the list tells of {looked_at} was looked at, by signs alone.")
