"""Names of KQL templates."""

from __future__ import annotations

import re

from sentinel_rag.gateway.argument_formats.refusals import NotCanonical

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")


def canonical_template(text: str) -> str:
    """The name as the template registry writes it: lower case letters, digits and underscores, no blanks around."""
    name = text.strip(" ")
    if not _NAME.fullmatch(name):
        raise NotCanonical("a template is named by letters, digits and underscores")
    return name.lower()
