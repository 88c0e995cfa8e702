"""What a mention points at in this conversation: things, several that it may mean, or nothing."""

from __future__ import annotations

from sentinel_rag.agent.references import line_choice, topic_choice
from sentinel_rag.agent.references.choices import Choice, Context, Unclear
from sentinel_rag.agent.references.mention_forms import Form, Mention
from sentinel_rag.agent.references.state import References
from sentinel_rag.agent.things import ALERT, INCIDENT

NO_LIST = "There is no such line in the last list. Ask for a list first, or name the incident by its number."


def choose(mention: Mention, context: Context) -> Choice:
    """What `mention` points at; a mention that is not soft never ends in None."""
    choice = _CHOOSERS[mention.form](mention, context)
    if isinstance(choice, Unclear) and mention.only_if_sure:
        return None
    if choice is None and not mention.soft:
        return Unclear(_nothing(mention, context.references))
    return choice


def _nothing(mention: Mention, references: References) -> str:
    if mention.form in (Form.PLACES, Form.DESCRIBED, Form.BESIDE):
        shown = references.screen
        if shown is None or not shown.items:
            return NO_LIST
        return (
            f"There is no such line in the last list, which ends at [{len(shown.items)}]. Name the line by its number."
        )
    if mention.kind == INCIDENT:
        return "Which incident do you mean? Give its number, or ask for a list first."
    if mention.kind == ALERT:
        return "Which alert do you mean? Give its id, or ask for a list first."
    if mention.kind:
        return f"Which {mention.kind} do you mean? Name it, or ask for a list first."
    return "Which incident or alert do you mean? Give its number, or ask for a list first."


_CHOOSERS = {
    Form.PLACES: line_choice.by_places,
    Form.NUMBERS: line_choice.by_numbers,
    Form.HASHED: line_choice.by_numbers,
    Form.BESIDE: line_choice.by_beside,
    Form.THAT: topic_choice.by_that,
    Form.IT: topic_choice.by_it,
    Form.THEM: topic_choice.by_them,
    Form.BOTH: topic_choice.by_both,
    Form.OTHER: topic_choice.by_other,
    Form.DESCRIBED: line_choice.by_described,
    Form.EARLIER: line_choice.by_earlier,
}
