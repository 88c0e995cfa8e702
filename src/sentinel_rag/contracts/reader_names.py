"""Names under which a caller may read: people, teams or tiers, as front matter and the terms of a key spell them.

They are compared letter for letter. The name that stands for everybody is no name that a key can have.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"[^\W_](?:[\w .@/-]{0,62}\w)?")
READER_NAMES = "It is 1 to 64 letters, digits, blanks or . _ @ / -, with a letter or digit at both ends."


def is_reader_name(text: str) -> bool:
    """Whether a key can read under that name."""
    return _NAME.fullmatch(text) is not None
