"""What surfaces and workspaces call a watchlist by, and the KQL that reads one."""

from __future__ import annotations

import re

from sentinel_rag.contracts.errors import UsageError

TABLE = "Watchlist"
ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_alias(alias: str) -> None:
    """Raise UsageError for what is no alias."""
    if not ALIAS.fullmatch(alias):
        raise UsageError(
            f"{alias!r} is no alias of a watchlist.",
            next_step="Use up to 64 letters, digits, - and _, such as VIPUsers.",
        )


LISTED = (
    f"{TABLE} | where _DTItemType != 'watchlist' | summarize arg_max(TimeGenerated, *) by WatchlistItemId "
    "| where _DTItemStatus != 'Delete' "
    "| summarize Items = count(), Updated = max(LastUpdatedTimeUTC) by Alias = WatchlistAlias, Source "
    "| order by Alias asc"
)
"""KQL: the watchlists there are; on Azure too, where each change of an item is a row."""


def rows_of(alias: str) -> str:
    """KQL: the items of a watchlist. Raises UsageError for what is no alias."""
    check_alias(alias)
    return f"_GetWatchlist('{alias}')"
