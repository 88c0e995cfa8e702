"""Reports of an incident or of a shift: a page to read, then the conversation with its evidence and the gateway's
record of it, as a file for others.

Pure: a surface hands in the turns and records that its person may see, and gets a `HandOver`, and texts of it. Reading,
revealing and writing are the surface's.
"""

from sentinel_rag.surfaces.reports.as_csv import as_csv
from sentinel_rag.surfaces.reports.as_docx import as_docx
from sentinel_rag.surfaces.reports.as_html import as_html
from sentinel_rag.surfaces.reports.as_markdown import as_markdown
from sentinel_rag.surfaces.reports.as_pdf import as_pdf
from sentinel_rag.surfaces.reports.building import hand_over
from sentinel_rag.surfaces.reports.model import HandOver, Head, ReportTurn

__all__ = ["HandOver", "Head", "ReportTurn", "as_csv", "as_docx", "as_html", "as_markdown", "as_pdf", "hand_over"]
