"""A question, read: every slot that the grammar finds, and the words that are left.

One pass over the text; each reader blanks out what it understood, so that no later one reads it again (the "10" of
"10 July" is not a limit, the "high" of a quoted title is not a severity). Nothing here knows a conversation or a tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from sentinel_rag.agent.offline import filters, mentions, names, qualifiers, severities, vocabulary
from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.qualifiers import OwnerSlot
from sentinel_rag.agent.offline.severities import SeveritySlot
from sentinel_rag.agent.references import ListItem, Resolution
from sentinel_rag.agent.row_text import read_plainly
from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.windows import TimeQuestion, WindowSlot
from sentinel_rag.language.times.zone_words import read_time_in_its_zone

MAX_QUESTION = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The slots of one question. `core` is the text without names and times, for cues; `rest` what nothing claimed;
    `things` are what its references stand for, and `unclear` a question back where one may mean several things."""

    text: str
    core: str
    rest: str
    window: WindowSlot | None
    around: timedelta | None
    time_question: TimeQuestion | None
    other_time: str
    other_window: WindowSlot | None
    names: tuple[NameSlot, ...]
    guids: tuple[str, ...]
    incident_urls: tuple[str, ...]
    incidents: tuple[str, ...]
    defender_id: bool
    things: tuple[ListItem, ...]
    unclear: str
    that: str
    severity: SeveritySlot
    status: str | None
    order: str | None
    limit: int | None
    everything: bool
    tactic: str | None
    product: str | None
    owner: OwnerSlot
    numbers: tuple[str, ...]
    words: tuple[str, ...]

    def has(self, pattern: str) -> bool:
        """True if the cue text holds `pattern` as whole words, any case."""
        return re.search(rf"\b(?:{pattern})\b", self.core, re.IGNORECASE) is not None

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """Words that no reader claimed and the grammar does not know, in their order: parts of titles and names."""
        return tuple(word for word in self.words if not vocabulary.is_known(word) and not word.isdigit())

    @property
    def filtered(self) -> bool:
        """True if anything narrows the question."""
        return bool(
            self.window
            or self.severity.arguments()
            or self.status
            or self.names
            or self.tactic
            or self.product
            or self.owner.name
            or self.limit
            or self.order
        )


def _as_resolved(name: names.NameSlot, resolution: Resolution) -> names.NameSlot:
    """A quoted name that a reference stands for is that entity, and not words of a title."""
    for thing in resolution.items:
        if name.quoted and thing.kind == "entity" and thing.value == name.value:
            return names.NameSlot(name.value, thing.entity_kind or None)
    return name


_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'’+-]*")


def read_question(question: str, now: Now, resolution: Resolution | None = None) -> Reading:
    """Every slot of `question`. Total: any text gives a reading. `resolution` tells what its references stand for."""
    text = names.refang(read_plainly(question, limit=MAX_QUESTION))
    shaped = names.read_names(text)
    if resolution is not None:
        shaped = replace(shaped, names=tuple(_as_resolved(name, resolution) for name in shaped.names))
    mended = vocabulary.mend(shaped.rest)
    time = read_time_in_its_zone(mended, now)
    core = time.rest
    mention = mentions.read_mentions(core)
    rest = mention.rest
    product, rest = qualifiers.read_product(rest)
    tactic, rest = qualifiers.read_tactic(rest)
    owner, rest = qualifiers.read_owner(rest)
    severity, rest = severities.read_severity(rest)
    limit, everything, rest = filters.read_limit(rest)
    order, rest = filters.read_order(rest)
    if order == "severity" and filters.COUNTED_BY.search(core):
        order = None  # counts stand by severity anyway
    bare = names.read_bare_names(rest)
    status, rest = filters.read_status(bare.rest)
    return Reading(
        text=text,
        core=core,
        rest=rest,
        window=time.window,
        around=time.around,
        time_question=time.question,
        other_time=time.other,
        other_window=time.other_window,
        names=shaped.names + bare.names,
        guids=shaped.guids,
        incident_urls=shaped.incident_urls,
        incidents=mention.incidents,
        defender_id=mention.defender,
        things=() if resolution is None else resolution.items,
        unclear="" if resolution is None else resolution.ask,
        that=mention.that,
        severity=severity,
        status=status,
        order=order,
        limit=limit,
        everything=everything,
        tactic=tactic,
        product=product,
        owner=owner,
        numbers=mentions.bare_numbers(rest),
        words=tuple(match[0].lower() for match in _WORD.finditer(rest)),
    )
