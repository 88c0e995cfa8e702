"""Sentences that the product writes, written as a model would cite them, and what the check of answers says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.markup import sentence_spans
from sentinel_rag.agent.answers.results_file import read_results, results_document
from sentinel_rag.contracts.evidence import Sentence, SentenceState

_NAMES_ONLY = ("the names stand there", "nothing in it can be compared", "gave no result")
"""Reasons for which a sentence of ours may have a source and no more: it names things, says that there are none, or
what a call that waits was asked for."""


def as_a_model_would(sentences: Iterable[Sentence]) -> str:
    """The lines with their citations in brackets, behind what they hold for."""
    return "\n".join("".join(_parts(sentence)) for sentence in sentences)


def _parts(sentence: Sentence) -> Iterator[str]:
    note = f" [{', '.join(citation.ref for citation in sentence.citations)}]" if sentence.citations else ""
    places = [mark.start - sentence.start for mark in sentence.marks] or [0]
    behind = 0
    for start, end in sentence_spans(sentence.text):
        part, behind = sentence.text[behind:end], end
        if note and any(start <= place < end for place in places):
            said = part.rstrip(".:;?!")
            part = said + note + part[len(said) :]
        yield part
    yield sentence.text[behind:]


def doubts(
    sentences: Sequence[Sentence], results: Sequence[Mapping[str, Any]], *, timezone: str, said: Sequence[str]
) -> list[str]:
    """Sentences of an answer that the check does not find as they were born, each with its reason."""
    read = read_results(results_document(results, timezone=timezone, said=said))
    checked = check_answer(as_a_model_would(sentences), ReadResults(read.results, zone=read.zone, said=read.said))
    return [
        f"{each.state}: {each.text} ({each.reason})"
        for each in checked.sentences
        if each.state not in (SentenceState.VALUES_FOUND, SentenceState.OWN_WORDS)
        and not (each.state is SentenceState.SOURCE_GIVEN and any(told in each.reason for told in _NAMES_ONLY))
    ]
