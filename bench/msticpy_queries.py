"""msticpy's built-in queries through its own driver, each once: run by an interpreter that has msticpy, with the
address of a workspace, its id and its identity header. Prints an object a query: name, KQL, and rows or error.

The driver, its client (azure-monitor-query) and the credential are Microsoft's. They are told where the workspace is,
and that a token may go over plain http, which they send to no address by themselves.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from datetime import UTC, datetime
from typing import Any

URL, WORKSPACE, HEADER = sys.argv[1:4]
for name in [name for name in os.environ if name.startswith(("AZURE_", "IDENTITY_", "MSI_", "IMDS_"))]:
    del os.environ[name]
os.environ.update(IDENTITY_ENDPOINT=f"{URL}/msi/token", IDENTITY_HEADER=HEADER)
warnings.simplefilter("ignore")

from azure.core.pipeline.policies import BearerTokenCredentialPolicy  # noqa: E402  # the environment stands first
from azure.identity import ManagedIdentityCredential  # noqa: E402  # the environment stands first
from azure.monitor.query import LogsQueryClient  # noqa: E402  # the environment stands first
from msticpy.data import QueryProvider  # noqa: E402  # the environment stands first
from msticpy.data.drivers import azure_monitor_driver as driver  # noqa: E402  # the environment stands first

WINDOW = {"start": datetime(2024, 6, 2, tzinfo=UTC), "end": datetime(2024, 7, 2, tzinfo=UTC)}
TYPED: dict[str, Any] = {"list": ["10.0.0.1", "example.com"], "int": 5, "datetime": WINDOW["end"], "str": "example"}
# What no value of its type would make a query of: a table, a column of it, a port, a time. Values that a query takes
# without quotes get theirs here, as its reader gives them.
NAMED: dict[str, Any] = {
    "table": "SecurityEvent",
    "aggregatecolumn": "EventID",
    "time_column": "TimeGenerated",
    "protocol": "443",
    "timestamp": "2024-06-20",
    "host_name": "ws-042",
    "account_name": "anna",
    "ip_address": "10.0.0.1",
    "ip_address_list": ["10.0.0.1", "10.0.0.2"],
}
QUOTED = {
    "list_storage_ops_for_ip": {"ip_address": '"10.0.0.1"'},
    "list_storage_ops_for_hash": {"file_hash": '"0a1b2c"'},
}


class PlainHttp(BearerTokenCredentialPolicy):  # type: ignore[misc,unused-ignore]  # of no known type where azure-core is not installed
    def on_request(self, request: Any) -> None:
        request.context.options["enforce_https"] = False
        super().on_request(request)


class Signed:
    modern = ManagedIdentityCredential()


def here(credential: Any, **_: Any) -> LogsQueryClient:
    policy = PlainHttp(credential, "https://api.loganalytics.io/.default")
    return LogsQueryClient(credential, endpoint=URL, authentication_policy=policy)


def connected() -> QueryProvider:
    driver.az_connect = lambda **_: Signed
    driver.LogsQueryClient = here
    driver.AzureMonitorDriver._get_schema = lambda _: {}  # asks management.azure.com, and feeds completion alone
    provider = QueryProvider("MSSentinel")
    tenant = "00000000-0000-0000-0000-000000000001"
    sys.stdout = sys.stderr
    provider.connect(connection_str=f"loganalytics://code().tenant('{tenant}').workspace('{WORKSPACE}')")
    sys.stdout = sys.__stdout__
    return provider


def arguments(source: Any, query: str) -> dict[str, Any]:
    wanted = {*source.required_params, *({"time_column", "aggregatecolumn"} & {*source.params})} - {*WINDOW}
    if "table" in source.default_params:
        wanted -= {"table"}
    given = {name: NAMED.get(name, TYPED.get(source.params[name].get("type"), "example")) for name in wanted}
    return {**WINDOW, **given, **QUOTED.get(query, {})}


def main() -> None:
    provider = connected()
    # A query stands under each family that it belongs to; it is asked once.
    by_name = {name.rpartition(".")[2]: name for name in provider.list_queries()}
    for query, name in sorted(by_name.items(), key=lambda each: each[1]):
        ask: Any = provider
        for part in name.split("."):
            ask = getattr(ask, part)
        family = name.rpartition(".")[0]
        given = arguments(provider.query_store.get_query(query_path=family, query_name=query), query)
        told = {"name": name, "kql": ask("print", **given)}
        try:
            told["rows"] = len(ask(**given))
        except Exception as error:  # whatever a stranger's client ends with is the finding
            cause = error.__cause__ or error.__context__
            told["error"] = str(getattr(cause, "message", cause) or error)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
