"""`sentinel answer check`: any answer, judged by the check of this product against results in a file.

It reads two files and asks nothing of anybody. What it says of a sentence is what the agent says of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sentinel_rag.agent.answers.check import CheckedAnswer, check_answer, cited_share
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results_file import read_results
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.surfaces.rendering.visible import STATE_WORDS, WRONG, counted, reason_of, safe_cell

STANDARD_INPUT = "-"
EXIT_NOT_FOUND = 3
EXIT_CONTRADICTED = 5


def check(*, results: str, answer: str, as_json: bool) -> int:
    """Judge an answer; 3 if values of a sentence were not found, 5 if one is contradicted. Raises UsageError."""
    try:
        told = read_results(json.loads(_read(results)))
    except json.JSONDecodeError as error:
        raise UsageError(f"{results} is no JSON: {error}.", next_step="Write it with sentinel export.") from None
    checked = check_answer(_read(answer), ReadResults(told.results, zone=told.zone, said=told.said))
    if as_json:
        print(json.dumps(_as_json(checked), ensure_ascii=False, indent=2))
    else:
        _print(checked)
    states = {sentence.state for sentence in checked.sentences}
    if SentenceState.CONTRADICTED in states:
        return EXIT_CONTRADICTED
    return EXIT_NOT_FOUND if SentenceState.NOT_FOUND in states else 0


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == STANDARD_INPUT else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UsageError(f"{name} cannot be read: {reason}.", next_step="Give the name of a file.") from None


def _as_json(checked: CheckedAnswer) -> dict[str, object]:
    counts = {state.value: sum(sentence.state is state for sentence in checked.sentences) for state in SentenceState}
    return {
        "answer": checked.text,
        "sentences": [sentence.to_dict() for sentence in checked.sentences],
        "counts": counts,
        "cited_share": round(cited_share(checked), 3),
    }


def _print(checked: CheckedAnswer) -> None:
    for sentence in checked.sentences:
        sources = " ".join(dict.fromkeys(f"[{citation.ref}]" for citation in sentence.citations))
        shown = " ".join((safe_cell(" ".join(sentence.text.split())), *([sources] if sources else [])))
        print(f"{WRONG.get(sentence.state, ' ')} {STATE_WORDS[sentence.state]:<12}  {shown}")
        if reason := reason_of(sentence):
            print(f"{'':16}{safe_cell(reason)}")
    print(counted(checked.sentences) or "There is no sentence in it.")
