"""Why a file cannot become a document: one sentence, which is a line of the report and no failure of the run."""

from __future__ import annotations


class FileFault(ValueError):
    """The file is broken, locked, or not what its name says. The text is the sentence for the report."""


class MissingReaderError(Exception):
    """The library that reads this format is not installed; the text says how to get it."""
