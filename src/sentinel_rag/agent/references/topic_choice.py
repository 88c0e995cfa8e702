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
from sentinel_rag.agent.references.mention_forms import Mention
from sentinel_rag.agent.references.state import References
from sentinel_rag.agent.references.wording import INCIDENT_SAID
from sentinel_rag.agent.things import INCIDENT, ListItem


def _newest(references: References, kinds: Sequence[str], noun: str) -> Choice:
    """The one thing of `kinds` that was talked about last, or the only one that was shown since. One that was only
    offered in a question back and not picked is asked about again, beside what was talked about before."""
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
    only_offered = screen is not None and screen.offered and focus is not None and pool[0] in screen.items
    if len(pool) == 1 and not only_offered:
        return Found(pool)
    before = () if focus is None else tuple(each for each in (focus.item,) if each.key not in {p.key for p in pool})
    return which(noun, (*pool, *before))


def by_that(mention: Mention, context: Context) -> Choice:
    """For "that incident": the one of its kind that was talked about last, or the only one that was shown since."""
    return _newest(context.references, (mention.kind,), mention.kind)


_NAMED_BEFORE = re.compile(r"[\ufffc@\\]|\b[\w$-]*\d[\w$-]*\b(?=.*\b\w)|\w\.\w{2,}")
"""The sentence names something itself, which its pronoun may stand for."""


def by_it(mention: Mention, context: Context) -> Choice:
    """For "it", "its", "her": what the sentence names before it, and then there is nothing to look up; else what was
    talked about last and can be asked so."""
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


def _sets(references: References, kinds: Sequence[str]) -> tuple[tuple[ListItem, ...], tuple[ListItem, ...]]:
    """Things that were spoken of or listed together, the newest first, and others that may be meant just as well: those
    spoken of before a list that only came with an answer about something."""
    screen = references.screen
    grouped = of_kinds(references.group, kinds)
    listed = () if screen is None else of_kinds(screen.items, kinds)
    if screen is None or not listed or references.group_turn >= screen.turn:
        return (grouped, ()) if grouped else (listed, ())
    rival = grouped if screen.beside and {i.key for i in grouped} != {i.key for i in listed} else ()
    return listed, rival


def _either(noun: str, first: Sequence[ListItem], second: Sequence[ListItem]) -> Unclear:
    keys = {item.key for item in first}
    return which(noun, (*first, *(item for item in second if item.key not in keys)))


def by_them(mention: Mention, context: Context) -> Choice:
    """For "them", "both", "those three": what was spoken of or listed together, asked back of two such sets."""
    references = context.references
    kinds = kinds_for(mention, context)
    together, rival = _sets(references, kinds)
    if not together and mention.kind:
        told = [each for each in references.mentioned if each.item.of_kind in kinds]
        newest = max((each.turn for each in told), default=0)
        together = unique(each.item for each in told if each.turn == newest)
    if not together:
        return _spoken_of(references, kinds)
    if len(rival) > 1:
        return _either("ones", together, rival)
    since = _spoken_of_since(references, kinds)
    if len(since) > 1 and not {item.key for item in since} <= {item.key for item in together}:
        return _either("ones", since, together)
    if mention.places and len(together) != mention.places[0]:
        return which("ones", together)
    if len(together) > MOST_TOGETHER:
        return Unclear(f"That list has {len(together)} lines. Which of them do you mean, for example [1] and [3]?")
    return Found(together)


def by_both(mention: Mention, context: Context) -> Choice:
    """Two things that were spoken of or listed together, else the only two of their kind that were talked about."""
    references = context.references
    kinds = kinds_for(mention, context)
    together, rival = _sets(references, kinds)
    if len(together) == 2 and len(rival) == 2:
        return _either("two", together, rival)
    pair = next((pool for pool in (together, rival, of_kinds(references.group, kinds)) if len(pool) == 2), None)
    if pair is not None:
        return Found(pair)
    return _spoken_of(references, kinds) or (which("two", together) if together else None)


def _spoken_of_since(references: References, kinds: Sequence[str]) -> tuple[ListItem, ...]:
    """The things that were talked about one by one after the list on the screen came."""
    screen = references.screen
    since = 0 if screen is None else screen.turn
    return of_kinds((each.item for each in references.focused if each.turn > since), kinds)


def _spoken_of(references: References, kinds: Sequence[str]) -> Choice:
    """The only two things of one kind that were talked about, one after the other; more are asked back."""
    screen = references.screen
    newest = references.focus(*kinds)
    if newest is None:
        return None
    same = unique(each.item for each in references.focused if each.item.of_kind == newest.item.of_kind)
    if len(same) == 2 and (screen is None or screen.turn <= newest.turn):
        return Found(same)
    return which("two", tuple(reversed(same))[:MOST_CHOICES]) if len(same) > 2 else None


def by_other(mention: Mention, context: Context) -> Choice:
    """For "the other one": the one beside what was talked about last, of the same kind."""
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
    others = [
        next(item for item in pool if item.key != focus.item.key)
        for pool in pools
        if len(pool) == 2 and focus.item.key in {item.key for item in pool}
    ]
    if others and len({other.key for other in others[:2]}) == 1:
        return Found((others[0],))
    if others:
        return which(f"other {mention.kind or 'one'}", unique(others[:2]))
    left = next((tuple(i for i in pool if i.key != focus.item.key) for pool in pools if len(pool) > 2), ())
    return which(f"other {mention.kind or 'one'}", left) if left else None
