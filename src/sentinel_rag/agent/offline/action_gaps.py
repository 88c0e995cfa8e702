"""What a wish to change one incident lacks, or holds too much of, as a question back.

Sentinel's own rules between fields are known here, so that no person is asked to approve a call which cannot be made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.offline.action_sentences import CLASSIFICATION_WORDS, fits, sentence_of
from sentinel_rag.agent.offline.action_words import NO_CHANGES, ActionWish
from sentinel_rag.agent.planner.plan import Ask
from sentinel_rag.agent.row_text import plain
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS


@dataclass(frozen=True, slots=True)
class Spoken:
    """The incident, and the workspace if one was named, in the sentences that are offered."""

    incident: str
    workspace: str = ""

    def sentence(self, wish: ActionWish) -> str:
        """The wish for this incident."""
        return sentence_of(wish, self.incident, self.workspace)


_ASSIGN = "Assign incident"


def asks_for_person(pending: str) -> bool:
    """True if the wish that waits lacks nothing but the owner."""
    return pending.startswith(_ASSIGN)


def gap_in_person(wish: ActionWish, incidents: Sequence[str], workspace: str, *, person: str) -> Ask | None:
    """Who is to own it, where the words do not tell a user for certain. `person` is who "me" is, if that is known."""
    owner = wish.changes.get("owner", "")
    if not owner.startswith("?") and (owner != "me" or person):
        return None
    unknown = (
        "I do not know who you are in this workspace."
        if owner == "me"
        else f"{plain(owner[1:])} names no user for certain, since several people may have a name."
    )
    pending = ""
    if len(incidents) == 1 and len(wish.changes) == 1:
        place = f" in workspace {workspace}" if workspace else ""
        pending = f"{_ASSIGN} {incidents[0]}{place} to {'me, who is' if owner == 'me' else ''}"
    return Ask(f"{unknown} Give the user principal name, e-mail address or object id.", pending=pending)


def gap_in(wish: ActionWish, incident: str, workspace: str) -> Ask | None:
    """What the wish lacks or holds too much of."""
    if wish.comments:
        return None
    spoken = Spoken(incident, workspace)
    return _classification_gap(wish, spoken)


def _classification_gap(wish: ActionWish, spoken: Spoken) -> Ask | None:
    """Closing needs a classification, a false positive its reason, and an incident that stays open has none."""
    classification, status = wish.changes.get("classification"), wish.changes.get("status")
    reason = wish.changes.get("classification_reason")
    if status in ("New", "Active") and (classification or reason):
        return Ask("An incident that is open has no classification. Ask for the one or the other.")
    if wish.note and (wish.apart or (status != "Closed" and not classification)):
        comment = replace(wish, changes=NO_CHANGES, note="", message=wish.note, comments=True)
        return Ask(
            "That is a change and a comment. Which one first?",
            (spoken.sentence(replace(wish, note="", apart=False)), spoken.sentence(comment)),
        )
    fitting = [pair for pair in CLASSIFICATION_WORDS if fits(pair, classification, reason)]
    if not fitting:
        return Ask(
            f"{plain(str(classification))} does not take the reason {plain(str(reason))}. Which one do you mean?",
            _classified(wish, spoken, list(CLASSIFICATION_WORDS)),
        )
    if classification is None and (status == "Closed" or reason is not None):
        sentence = "Closing needs a classification. These are the ones that Sentinel takes, with their reasons:"
        return Ask(sentence, _classified(wish, spoken, fitting))
    if classification is not None and status is None and not wish.reclassifies:
        closing = replace(wish, changes={**wish.changes, "status": "Closed"})
        sentence = "Only a closed incident has a classification. Is it to be closed, or closed already?"
        return Ask(sentence, (spoken.sentence(closing), spoken.sentence(wish)))
    if classification is not None and reason is None and len(CLASSIFICATION_REASONS[classification]) > 1:
        sentence = "For which reason? Sentinel takes two for a false positive:"
        return Ask(sentence, _classified(wish, spoken, fitting))
    return None


def _classified(wish: ActionWish, spoken: Spoken, pairs: Sequence[tuple[str, str | None]]) -> tuple[str, ...]:
    """The wish with each of the classifications."""
    return tuple(
        spoken.sentence(replace(wish, changes={**wish.changes, **_arguments(kind, reason)})) for kind, reason in pairs
    )


def _arguments(kind: str, reason: str | None) -> dict[str, str]:
    return {"classification": kind, "classification_reason": reason or ""}
