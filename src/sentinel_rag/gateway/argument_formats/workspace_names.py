"""Names of workspaces."""

from __future__ import annotations

import re

from sentinel_rag.gateway.argument_formats.refusals import NotCanonical

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


def canonical_workspace(text: str) -> str:
    """The name as the settings write it: lower case letters, digits, - and _, no blanks around."""
    name = text.strip(" ")
    if not _NAME.fullmatch(name):
        raise NotCanonical("a workspace is named by letters, digits, - and _")
    return name.lower()
