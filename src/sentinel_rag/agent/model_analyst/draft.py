"""An answer that a model is still writing, as far as a person may see it: checked part by part while it comes.

What was given out is the beginning of what the check makes of the whole text, so nothing unsupported is shown unmarked
and nothing is shown twice. Where that cannot be known yet, the text waits for what it needs, at the latest for its end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sentinel_rag.agent.grounding import GrowingCheck
from sentinel_rag.agent.model_analyst.local_forms import without_reasoning
from sentinel_rag.agent.model_analyst.settled_text import may_settle, settled_ends

_log = logging.getLogger(__name__)


class Draft:
    """One text of a model. `prepared` makes of its words what is checked, `opening` stands before the answer."""

    def __init__(self, check: GrowingCheck, prepared: Callable[[str], str], *, opening: str = "") -> None:
        self._check = check
        self._prepared = prepared
        self._opening = opening
        self._text = ""
        self._settled = 0
        self._given = ""
        self._held = False

    def add(self, more: str) -> str:
        """What may be shown beyond what was given before, now that `more` was written; often nothing."""
        changes = may_settle(self._text, more)
        self._text += more
        if self._held or not changes:
            return ""
        try:
            return self._newly_settled()
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            # The check of the whole answer meets the same, and says so to the person.
            _log.exception("an answer could not be checked while it came")
            self._held = True
            return ""

    def _newly_settled(self) -> str:
        text = without_reasoning(self._text)
        before = len(self._given)
        for end in settled_ends(text):
            if end <= self._settled:
                continue
            checked = self._check.add(self._prepared(text[:end]))
            if checked is None:
                self._held = True
                break
            self._settled = end
            self._give(checked.strip())
        return self._given[before:]

    def _give(self, body: str) -> None:
        shown = f"{self._opening}\n\n{body}" if self._opening and body else body
        if shown.startswith(self._given):
            self._given = shown
        else:
            _log.error("a part of an answer turned out another way than it was shown")
            self._held = True
