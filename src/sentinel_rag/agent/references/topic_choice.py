"""Which thing that was talked about is meant: "that host", "it", "them", "both", "the other one"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.references.choices import (
    MOST_CHOICES,
    MOST_TOGETHER,
    Choice,
    Context,
    Found,
    Unclear,
    kinds_for,
    of_kinds,
    unique,
    wanted_kinds,
    which,
)
from sentinel_rag.agent.references.listed import INCIDENT, ListItem
from sentinel_rag.agent.references.mention_forms import Mention
from sentinel_rag.agent.references.state import References
from sentinel_rag.agent.references.wording import INCIDENT_SAID


def _newest(references: References, kinds: Sequence[str], noun: str) -> Choice:
    """The one thing of `kinds` that was talked about last, or the only one that was shown since."""
    focus = references.focus(*kinds)
    since = -1 if focus is None else focus.turn
    screen = references.screen
    pool: tuple[ListItem, ...] = ()
    if screen is not None and screen.turn > since:
        pool = of_kinds(screen.items, kinds)
    if not pool and kinds:
        told = [each for each in references.mentioned if each.item.of_kind in kinds and each.turn > since]
        newest = max((each.turn for each in told), default=0)
        pool = unique(each.item for each in told if each.turn == newest)
    if not pool:
        return None if focus is None else Found((focus.item,))
    if len(pool) == 1:
        return Found(pool)
    before = () if focus is None else tuple(each for each in (focus.item,) if each.key not in {p.key for p in pool})
    return which(noun, (*pool, *before))


def by_that(mention: Mention, context: Context) -> Choice:
    return _newest(context.references, (mention.kind,), mention.kind)


_NAMED_BEFORE = re.compile(r"[\ufffc@\\]|\b[\w$-]*\d[\w$-]*\b(?=.*\b\w)|\w\.\w{2,}")
"""The sentence names something itself, which its pronoun may stand for."""


def by_it(mention: Mention, context: Context) -> Choice:
    references = context.references
    before = context.masked[: mention.start]
    if said := INCIDENT_SAID.findall(before):
        return Found((ListItem(INCIDENT, said[-1], incident=said[-1]),))
    if _NAMED_BEFORE.search(before):
        return Found(())
    if mention.kind and (choice := _newest(references, (mention.kind,), mention.kind)) is not None:
        return choice
    kinds = wanted_kinds(mention, context)
    choice = _newest(references, kinds, "one")
    if choice is None and kinds:
        choice = _newest(references, (), "one")
    return choice


def _set(references: References, kinds: Sequence[str], *, told: bool) -> tuple[ListItem, ...]:
    """The things that were spoken of or listed together last; `told` if those that an answer told without numbers
    count as well."""
    screen = references.screen
    grouped = of_kinds(references.group, kinds)
    listed = () if screen is None else of_kinds(screen.items, kinds)
    if grouped and (not listed or screen is None or references.group_turn >= screen.turn):
        return grouped
    if listed:
        return listed
    named = [each for each in references.mentioned if told and each.item.of_kind in kinds]
    newest = max((each.turn for each in named), default=0)
    return unique(each.item for each in named if each.turn == newest)


def by_them(mention: Mention, context: Context) -> Choice:
    together = _set(context.references, kinds_for(mention, context), told=bool(mention.kind))
    if not together:
        return None
    spoken_of = of_kinds(context.references.group, kinds_for(mention, context))
    if len(together) == 1 and len(spoken_of) > 1:
        return which("ones", (*together, *(item for item in spoken_of if item.key != together[0].key)))
    if mention.places and len(together) != mention.places[0]:
        return which("ones", together)
    if len(together) > MOST_TOGETHER:
        return Unclear(f"That list has {len(together)} lines. Which of them do you mean, for example [1] and [3]?")
    return Found(together)


def by_both(mention: Mention, context: Context) -> Choice:
    """Two things that were spoken of or listed together, else the only two of their kind that were talked about."""
    references = context.references
    kinds = kinds_for(mention, context)
    screen = references.screen
    grouped = of_kinds(references.group, kinds)
    listed = () if screen is None else of_kinds(screen.items, kinds)
    newest_first = (grouped, listed) if screen is None or references.group_turn >= screen.turn else (listed, grouped)
    for pool in newest_first:
        if len(pool) == 2:
            return Found(pool)
    newest = references.focus(*kinds)
    if newest is not None:
        same = unique(each.item for each in references.focused if each.item.of_kind == newest.item.of_kind)
        if len(same) == 2 and (screen is None or screen.turn <= newest.turn):
            return Found(same)
        if len(same) > 2:
            return which("two", tuple(reversed(same))[:MOST_CHOICES])
    together = next((pool for pool in newest_first if pool), ())
    return which("two", together) if together else None


def by_other(mention: Mention, context: Context) -> Choice:
    references = context.references
    kinds = (mention.kind,) if mention.kind else ()
    focus = references.focus(*kinds)
    if focus is None:
        return None
    same = (focus.item.of_kind,)
    pools = [of_kinds(references.group, same)]
    if references.screen is not None:
        pools.append(of_kinds(references.screen.items, same))
    told = [each for each in references.mentioned if each.item.of_kind in same]
    newest = max((each.turn for each in told), default=0)
    pools.append(unique(each.item for each in told if each.turn == newest))
    pools.append(unique(each.item for each in references.focused if each.item.of_kind in same))
    for pool in pools:
        left = tuple(item for item in pool if item.key != focus.item.key)
        if len(pool) == 2 and len(left) == 1:
            return Found(left)
    left = next((tuple(i for i in pool if i.key != focus.item.key) for pool in pools if len(pool) > 2), ())
    return which(f"other {mention.kind or 'one'}", left) if left else None
