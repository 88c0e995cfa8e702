"""Reports of an incident or of a shift: a page to read, then the conversation with its evidence and the gateway's
record of it, as a file for others.

Pure: a surface hands in the turns and records that its person may see, and gets a `HandOver`, and texts of it. Reading,
revealing and writing are the surface's.
"""

from collections.abc import Callable, Mapping

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.reports.as_documents import as_docx, as_pdf
from sentinel_rag.surfaces.reports.as_html import as_html
from sentinel_rag.surfaces.reports.as_text import as_csv, as_evidence, as_markdown
from sentinel_rag.surfaces.reports.building import HandOver, Head, ReportTurn, hand_over
from sentinel_rag.surfaces.reports.readings import Calls, Reading, calls_for

__all__ = [
    "FORMATS",
    "Calls",
    "HandOver",
    "Head",
    "Reading",
    "ReportTurn",
    "as_csv",
    "as_docx",
    "as_evidence",
    "as_html",
    "as_markdown",
    "as_pdf",
    "calls_for",
    "hand_over",
    "written",
]

FORMATS: Mapping[str, Callable[[HandOver], str | bytes]] = {
    "md": as_markdown,
    "html": as_html,
    "pdf": as_pdf,
    "docx": as_docx,
    "csv": as_csv,
    "evidence": as_evidence,
}


def written(form: str, report: HandOver) -> bytes:
    """The report in a form. Raises UnavailableError where what makes that form is not installed."""
    try:
        content = FORMATS[form](report)
    except ImportError:
        raise UnavailableError(
            f"What writes {form.upper()} is not installed.",
            next_step="Run: pip install 'sentinel-rag[documents]'; or export md or html.",
        ) from None
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
