"""Answers that are shown while a model writes them: how much of a text is shown before its end, what its check costs on
the way, and whether anything that was shown is not the beginning of the checked answer (there must be none).

The texts are those of the lying model, true and false, some of them put together to the length of a real answer, in
pieces of four characters as models stream them. Times are processor time; `--answers N` bounds the texts.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator

from bench.grounding_estates import sample, scripted
from bench.harness import write
from sentinel_rag.agent.grounding import EvidenceIndex, GrowingCheck, ground
from sentinel_rag.agent.model_analyst.answer_text import shown
from sentinel_rag.agent.model_analyst.draft import Draft
from sentinel_rag.testing.lying_model import Estate
from sentinel_rag.testing.lying_model.answers import BOOKS
from sentinel_rag.testing.lying_model.measuring import answers

SEED = 20261128
PIECE = 4
"""Characters of a model's delta."""


def texts(estate: Estate, most: int) -> Iterator[str]:
    """Answers of one to four texts of the lying model."""
    known = [answer.text for book in BOOKS for answer in answers(estate, SEED, rounds=1, book=book)]
    chosen = random.Random(SEED)
    for _ in range(most):
        parts = chosen.sample(known, chosen.randint(1, 4))
        yield chosen.choice(("\n\n", "\n\n", " ", "\n")).join(parts)


def measured(estate: Estate, most: int) -> dict[str, float]:
    index = EvidenceIndex(estate.zone)
    for run in estate.runs:
        index.add(run)
    early = total = pieces = disagreements = 0
    on_the_way: list[float] = []
    at_the_end: list[float] = []
    for text in texts(estate, most):
        started = time.process_time()
        draft = Draft(GrowingCheck(index, "q"), shown)
        given = [piece for at in range(0, len(text), PIECE) if (piece := draft.add(text[at : at + PIECE]))]
        between = time.process_time()
        whole = ground(shown(text), index, question="q").text.strip()
        at_the_end.append((time.process_time() - between) * 1e3)
        on_the_way.append((between - started) * 1e3)
        written = "".join(given)
        disagreements += not whole.startswith(written)
        pieces, early, total = pieces + len(given), early + len(written), total + len(whole)
    return {
        "answers": most,
        "not_the_beginning_of_the_checked_answer": disagreements,
        "pieces": pieces,
        "characters_shown_before_the_end_percent": round(100 * early / total, 1),
        "check_on_the_way_p50_ms": round(statistics.median(on_the_way), 2),
        "check_of_the_whole_p50_ms": round(statistics.median(at_the_end), 2),
        "check_on_the_way_max_ms": round(max(on_the_way), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench streamed_answers", description=__doc__)
    parser.add_argument("--answers", type=int, default=1_500, help="texts of each estate (1500)")
    options = parser.parse_args()
    estates = (scripted("Europe/Berlin"), sample("America/New_York"))
    found = {estate.name: measured(estate, options.answers) for estate in estates}
    write(
        "streamed_answers",
        found,
        claim="What is shown while a model writes is the beginning of the checked answer",
        figures={
            f"{label}, {name} estate": each[key]
            for name, each in found.items()
            for key, label in (
                ("not_the_beginning_of_the_checked_answer", "answers that turned out another way than shown"),
                ("characters_shown_before_the_end_percent", "percent of the text shown before its end"),
                ("check_on_the_way_p50_ms", "processor ms of the check on the way"),
                ("check_of_the_whole_p50_ms", "processor ms of the check of the whole"),
            )
        },
        group="correctness",
    )


if __name__ == "__main__":
    main()
