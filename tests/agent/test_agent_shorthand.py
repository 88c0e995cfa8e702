"""Questions as an analyst shortens them, against the templates that ship: which query is run, and with what.

They are those of docs/cookbook/ which the offline analyst had answered with another query, or with none.
"""

from __future__ import annotations

import pytest
from test_agent_shipped_templates import ANA, queries

pytestmark = pytest.mark.anyio

DOMAIN = "files.transfer-cdn.example.net"
ADDRESS = "203.0.113.71"


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("question", "template", "parameters"),
    [
        (f"where did {ANA} sign in from?", "signin_places_of_user", {"user": ANA}),
        ("where did siobhan.o'brien sign in from?", "signin_places_of_user", {"user": "siobhan.o'brien"}),
        ("processes on srv-file-01", "process_on_host", {"host": "srv-file-01"}),
        (f"dns queries for {DOMAIN}", "dns_queries_for_domain", {"domain": DOMAIN}),
        (f"which hosts talk to {ADDRESS}?", "network_connections_to_ip", {"destination": ADDRESS}),
        (f"who talked to {ADDRESS}?", "network_connections_to_ip", {"destination": ADDRESS}),
        (f"is {ADDRESS} in threat intelligence?", "threat_indicator_lookup", {"indicator": ADDRESS}),
        (f"threat intelligence on {ADDRESS}", "threat_indicator_lookup", {"indicator": ADDRESS}),
        ("app consents", "audit_app_consents", {}),
        ("office operations by user", "office_operations_by_user", {}),
        (f"what did {ANA} do in office?", "office_activity_by_user", {"user": ANA}),
        (f"what did {ANA} do in Office 365?", "office_activity_by_user", {"user": ANA}),
        ("who downloads the most files?", "office_operations_by_user", {}),
        ("sign-ins by day", "signins_by_day", {}),
        ("failed sign-ins by user", "failed_signins_by_user", {}),
    ],
)
async def test_a_short_question_runs_its_query(question: str, template: str, parameters: dict[str, str]) -> None:
    (call,) = await queries(question)
    assert (call.arguments["template"], call.arguments.get("parameters", {})) == (template, parameters)
