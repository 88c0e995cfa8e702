"""Words that describe a line or a list: "the high one", "the one assigned to m.keller", "the incidents from before"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.references.mention_forms import Form, Mention
from sentinel_rag.agent.references.wording import END, LINE, NOUN, is_plural, kind_of

_BETWEEN = (
    "of|in|on|for|from|to|by|with|about|at|behind|this|that|these|those|the|a|an|its|it|his|her|their|them|and|or|is|are|was|"
    "were|who|which|what|all|any|each|every|no|not|many"
)
"""Words that end a description: what stands behind them is another thing."""
_DESCRIBED = re.compile(
    rf"\bthe\s+(?P<words>(?!other\b|same\b|next\b|previous\b|very\b)(?:(?!(?:{_BETWEEN})\b)[\w'’-]+\s+){{1,4}}?)(?P<noun>one|{LINE}|{NOUN})\b(?P<genitive>['’]s)?(?!\s+(?:one|{NOUN})\b)",
    re.IGNORECASE,
)
_ONE_THAT = re.compile(
    rf"\b(?:the|that)\s+(?:one|(?P<noun>{LINE}|{NOUN}))\s+(?P<words>(?:about|with|on|from|of|for|named|called|titled|mentioning|involving|created|opened|raised|"
    r"assigned|owned|without|naming|at|in|that\s+(?:is|was|has|mentions|involves|names|came|happened)|which\s+(?:is|was|has|mentions))\b[^,;?!]{1,120})",
    re.IGNORECASE,
)
_RANKED = re.compile(
    rf"\b(?:owns|of|about|for|explain|describe)\s+(?P<all>the\s+(?P<words>newest|oldest|latest|earliest|most\s+(?:recent|severe|serious)"
    rf"|least\s+severe|worst))(?={END})",
    re.IGNORECASE,
)
_SOMEBODYS = re.compile(
    r"\bthe\s+(?:one|(?P<noun>incident|case|ticket))\s+(?P<who>[\w.@-]+(?:\s+[A-Z][\w.@-]+)?)\s+"
    r"(?:owns|has|took|handles|works\s+on|is\s+(?:working\s+on|assigned\s+to))\b"
    r"|(?P<whose>\b[\w.@-]+(?:\s+[A-Z][\w.@-]+)?)['’]s\s+(?:one|(?P<noun2>incident|case|ticket))\b"
)
_EARLIER = re.compile(
    rf"\b(?:the|those|these)\s+(?:(?P<adjective>earlier|previous|former|listed|original)\s+)?(?P<noun>{NOUN})"
    r"(?P<tail>\s+(?:from|of)\s+(?:before|earlier|the\s+list(?:\s+before)?|that\s+list|the\s+first\s+list|the\s+previous\s+list)|\s+(?:you\s+)?(?:listed|showed)(?:\s+(?:before|earlier|above))?|\s+above)?",
    re.IGNORECASE,
)


_NOBODY = frozenset({"it", "that", "this", "which", "who", "what", "he", "she", "there", "here", "let"})


def read_described(masked: str) -> Iterator[Mention]:
    """As in "the one about phishing", "the worst incident", "Mia's incident": a thing by what is said of it."""
    for match in _RANKED.finditer(masked):
        yield Mention(
            form=Form.DESCRIBED, in_words=True, start=match.start("all"), end=match.end("all"), words=match["words"],
            soft=True,
        )  # fmt: skip
    for match in _SOMEBODYS.finditer(masked):
        who = match["who"] or match["whose"]
        if who.lower() in _NOBODY:
            continue
        kind = kind_of(match["noun"] or match["noun2"] or "")
        yield Mention(
            form=Form.DESCRIBED, in_words=True, start=match.start(), end=match.end(), kind=kind,
            words=f"owned by {who}", soft=True,
        )  # fmt: skip
    for match in _ONE_THAT.finditer(masked):
        kind = kind_of(match["noun"] or "")
        end = match.start("words") + len(match["words"].rstrip(" ."))
        yield Mention(
            form=Form.DESCRIBED, in_words=True, start=match.start(), end=end, kind=kind,
            words=match["words"].rstrip(" ."), soft=bool(kind),
        )  # fmt: skip
    for match in _DESCRIBED.finditer(masked):
        noun = match["noun"]
        if is_plural(noun):
            continue
        yield Mention(
            form=Form.DESCRIBED, in_words=True, start=match.start(), end=match.end(), kind=kind_of(noun),
            words=match["words"].strip(),
            soft=kind_of(noun) != "" and kind_of(noun) != "row", genitive=bool(match["genitive"]),
        )  # fmt: skip


def read_earlier(masked: str) -> Iterator[Mention]:
    """As in "the earlier incidents", "the alerts from before": a list that was shown."""
    for match in _EARLIER.finditer(masked):
        if not (match["adjective"] or match["tail"]) or not is_plural(match["noun"]):
            continue
        yield Mention(
            form=Form.EARLIER, start=match.start(), end=match.end(), kind=kind_of(match["noun"]), plural=True, soft=True
        )
