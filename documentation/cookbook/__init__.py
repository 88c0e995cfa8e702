"""The answers of `docs/cookbook/`: its questions are asked of a running product, and what it says is what stands there.

`dialogue` reads and runs a page, `shortening` cuts an answer to what a reader wants, with `...` for what is left out.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from documentation.cookbook.dialogue import Estate, pages, steps, with_outputs
from documentation.cookbook.shortening import shortened


def write_answers(repository: Path, names: list[str]) -> int:
    """Ask the questions of the named pages, or of all, and write their answers into them."""
    with tempfile.TemporaryDirectory() as home, Estate.running(repository, Path(home)) as estate:
        for page in pages(repository):
            if names and page.stem not in names:
                continue
            text = page.read_text()
            page.write_text(with_outputs(text, [shortened(output) for output in estate.run(steps(text))]))
            print(f"{page.relative_to(repository)} is written")
    return 0
