"""The answers of `docs/cookbook/`: its questions are asked of a running product, and what it says is what stands there.

`dialogue` reads and runs a page, `shortening` cuts an answer to what a reader wants, with `...` for what is left out.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.documentation.cookbook.dialogue import Estate, Question, Step, pages, steps, with_outputs
from tools.documentation.cookbook.shortening import shortened, shortened_output


def write_answers(repository: Path, names: list[str]) -> int:
    """Ask the questions of the named pages, or of all, and write their answers into them."""
    with tempfile.TemporaryDirectory() as home, Estate.running(Path(home)) as estate:
        for page in pages(repository):
            if names and page.stem not in names:
                continue
            text = page.read_text()
            asked = steps(text)
            outputs = zip(asked, estate.run(asked), strict=True)
            page.write_text(with_outputs(text, [_short(step, output) for step, output in outputs]))
            print(f"{page.relative_to(repository)} is written")
    return 0


def _short(step: Step, output: str) -> str:
    return shortened(output) if isinstance(step, Question) else shortened_output(output)
