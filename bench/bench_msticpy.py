"""msticpy's built-in queries, through its own driver and Microsoft's client, against the embedded workspace.

`--python` is an interpreter that has msticpy (a virtual environment beside this one: `pip install msticpy`). Each query
runs once over the sample estate as it is generated, and once where the tables that only a connector brings hold a row,
as in a workspace that has the connector. What does not run is listed with the reason. Some are no query anywhere
(comments that swallow the rest of their line, a column that no table has): those Microsoft's parser does not bind to
the schema, and they stand by themselves. Needs `make kql-parser`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import harness
from bench.kql_binding import Schema, bind, open_parser
from bench.workspace_process import IDENTITY_HEADER, WORKSPACE_ID, workspace_process
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

AT = "2024-06-20T10:00:00Z"
_FLOW = "SubType_s VM_s FlowType_s VMIP_s PublicIPs_s SrcIP_s DestIP_s FlowDirection_s L4Protocol_s L7Protocol_s"
_FLOW_MORE = "AzureRegion_s Region_s VirtualMachine_s PrivateIPAddresses_s PublicIPAddresses_s ResourceType"
_STORAGE = "OperationName CallerIpAddress Uri ResponseMd5 CorrelationId AccountName"
_ALERT = {"AlertId": "a-1", "Title": "Title", "Timestamp": AT}
BROUGHT: dict[str, dict[str, Any]] = {
    "AzureNetworkAnalytics_CL": {
        **dict.fromkeys(f"{_FLOW} {_FLOW_MORE}".split(), "x"),
        **dict.fromkeys(("FlowStartTime_t", "FlowEndTime_t", "FlowIntervalEndTime_t"), AT),
        **dict.fromkeys(
            ("DestPort_d", "AllowedOutFlows_d", "AllowedInFlows_d", "DeniedInFlows_d", "DeniedOutFlows_d"), 1.5
        ),
    },
    "AuditLog_CL": {"Computer": "c", "RawData": "type=A msg=audit(1): x=1"},
    "DynamicSummary": {"SummaryId": "s-1", "SummaryName": "n", "SummaryStatus": "Active", "SummaryDataType": "Summary"},
    "VMComputer": {"Computer": "ws-042", "Ipv4Addresses": ["10.0.0.1"]},
    "StorageFileLogs": {**dict.fromkeys(_STORAGE.split(), "x"), "RequestBodySize": 1},
    "StorageBlobLogs": {**dict.fromkeys(_STORAGE.split(), "x"), "RequestBodySize": 1},
    # Defender's connector also sends the time column of its own portal; Microsoft's page of the table leaves it out.
    "AlertInfo": {**_ALERT, "ServiceSource": "s", "DetectionSource": "d"},
    "AlertEvidence": {**_ALERT, "EntityType": "Ip", "RemoteIP": "10.0.0.1", "SHA1": "0a1b2c"},
}
_PLACE = re.compile(r'"message": "((?:[^"\\]|\\.)*)"')


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench msticpy", description=__doc__)
    parser.add_argument("--python", type=Path, help="an interpreter that has msticpy")
    python = parser.parse_args().python
    if python is None:
        sys.exit("bench: give the interpreter of an environment that has msticpy: --python PATH")
    generated, _ = _asked(python, {})
    asked, schema = _asked(python, BROUGHT)
    bounds = bind(open_parser(), [each["kql"] for each in asked], schema)
    queries = [each for each, bound in zip(asked, bounds, strict=True) if bound.binds]
    run = sum("rows" in each for each in queries)
    measured = {
        "msticpy": _version(python, "msticpy"),
        "azure_monitor_query": _version(python, "azure-monitor-query"),
        "built_in": len(asked),
        "bind": len(queries),
        "run": run,
        "run_percent": round(100 * run / len(queries), 1),
        "run_as_generated": sum("rows" in each for each in generated),
        "tables_brought": sorted(BROUGHT),
        "misses": {each["name"]: _reason(each["error"]) for each in queries if "error" in each},
        "no_query_for_microsofts_parser": {
            each["name"]: _reason(each.get("error", "runs"))
            for each, bound in zip(asked, bounds, strict=True)
            if not bound.binds
        },
    }
    claim = (
        f"Of msticpy's {len(asked)} built-in queries for Sentinel {len(queries)} bind for Microsoft's parser; {run} of "
        "these run through msticpy's own driver, and each other is listed with the reason."
    )
    shown = {
        "run, of those that bind": f"{run} of {len(queries)} ({measured['run_percent']} %)",
        "run without the tables that connectors bring": f"{measured['run_as_generated']} of {len(asked)}",
    }
    harness.write("msticpy", measured, claim=claim, figures=shown, group="correctness")


def _asked(python: Path, brought: Mapping[str, Mapping[str, Any]]) -> tuple[list[dict[str, Any]], Schema]:
    """What became of each query, over the sample estate and the rows `brought`, and the schema that it met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace = Workspace.open(folder / "workspace")
        workspace.generate(EstateOptions(days=30, events=5000, seed=7, end=datetime(2024, 7, 2, tzinfo=UTC)))
        for table, row in brought.items():
            path = folder / f"{table}.json"
            path.write_text(json.dumps([{"TimeGenerated": AT, "TenantId": "t", "Type": table, **row}]))
            workspace.import_path(path)
        schema = {table: dict(columns) for table, columns in workspace.schema().items()}
        workspace.close()
        with workspace_process(folder / "workspace") as served:
            script = Path(__file__).with_name("msticpy_queries.py")
            command = [str(python), str(script), served.url, WORKSPACE_ID, IDENTITY_HEADER]
            ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if ran.returncode:
        sys.exit(ran.stderr)
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")], schema


def _reason(error: str) -> str:
    """The innermost message of a service's error."""
    found = _PLACE.findall(error)
    return str(json.loads(f'"{found[-1]}"')) if found else error


def _version(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
