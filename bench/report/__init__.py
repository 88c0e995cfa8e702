"""`docs/benchmarks.md` out of `bench/results/*.json`: `python -m bench report` writes it, and so does each benchmark.

`page` puts the page together, `figures.toml` names what of each result a reader should see, and `weaknesses.md` is what
stands first. A result that `figures.toml` does not know is shown by its first figures.
"""

from bench.report.page import PAGE, page, write_page

__all__ = ["PAGE", "page", "write_page"]
