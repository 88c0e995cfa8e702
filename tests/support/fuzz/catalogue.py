"""All fuzz targets by name, in the order in which a whole run takes them."""

from __future__ import annotations

from tests.support.fuzz.canonical_forms import CANONICAL_FORM
from tests.support.fuzz.condition_texts import CONDITION
from tests.support.fuzz.documents import PLAYBOOK_HTML, PLAYBOOK_MARKDOWN, PLAYBOOK_PDF
from tests.support.fuzz.imports import FIRST_LOOK, IMPORT_CSV, IMPORT_JSON, IMPORT_PARQUET
from tests.support.fuzz.journals import JOURNAL, JOURNAL_EXPORT
from tests.support.fuzz.kql_parameters import KQL_PARAMETER
from tests.support.fuzz.mcp_messages import MCP_MESSAGE
from tests.support.fuzz.model_streams import MODEL_STREAM
from tests.support.fuzz.policy_files import POLICY_FILE
from tests.support.fuzz.request_bodies import REQUEST_BODY
from tests.support.fuzz.tool_server_answers import EVENT_STREAM, TOOL_SERVER_ANSWER

TARGETS = {
    target.name: target
    for target in (
        *(POLICY_FILE, CONDITION, REQUEST_BODY, MCP_MESSAGE, CANONICAL_FORM, KQL_PARAMETER),
        *(FIRST_LOOK, IMPORT_CSV, IMPORT_JSON, IMPORT_PARQUET),
        *(EVENT_STREAM, TOOL_SERVER_ANSWER, MODEL_STREAM, JOURNAL, JOURNAL_EXPORT),
        *(PLAYBOOK_MARKDOWN, PLAYBOOK_HTML, PLAYBOOK_PDF),
    )
}
