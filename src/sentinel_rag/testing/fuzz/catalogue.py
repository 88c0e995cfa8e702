"""All fuzz targets by name, in the order in which a whole run takes them."""

from __future__ import annotations

from sentinel_rag.testing.fuzz.canonical_forms import CANONICAL_FORM
from sentinel_rag.testing.fuzz.condition_texts import CONDITION
from sentinel_rag.testing.fuzz.documents import PLAYBOOK_HTML, PLAYBOOK_MARKDOWN, PLAYBOOK_PDF
from sentinel_rag.testing.fuzz.imports import FIRST_LOOK, IMPORT_CSV, IMPORT_JSON, IMPORT_PARQUET
from sentinel_rag.testing.fuzz.journals import JOURNAL, JOURNAL_EXPORT
from sentinel_rag.testing.fuzz.kql_parameters import KQL_PARAMETER
from sentinel_rag.testing.fuzz.mcp_messages import MCP_MESSAGE
from sentinel_rag.testing.fuzz.model_streams import MODEL_STREAM
from sentinel_rag.testing.fuzz.policy_files import POLICY_FILE
from sentinel_rag.testing.fuzz.request_bodies import REQUEST_BODY
from sentinel_rag.testing.fuzz.tool_server_answers import EVENT_STREAM, TOOL_SERVER_ANSWER

TARGETS = {
    target.name: target
    for target in (
        *(POLICY_FILE, CONDITION, REQUEST_BODY, MCP_MESSAGE, CANONICAL_FORM, KQL_PARAMETER),
        *(FIRST_LOOK, IMPORT_CSV, IMPORT_JSON, IMPORT_PARQUET),
        *(EVENT_STREAM, TOOL_SERVER_ANSWER, MODEL_STREAM, JOURNAL, JOURNAL_EXPORT),
        *(PLAYBOOK_MARKDOWN, PLAYBOOK_HTML, PLAYBOOK_PDF),
    )
}
