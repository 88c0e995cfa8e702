"""`sentinel workspace faults`: a bad day of the service, made on the embedded workspace that runs now.

Faults live in the workspace's server and end with it, so there is nothing to set while no server runs. What a fault can
be, `workspace.serving.faults` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._moments import moment
from sentinel_rag.surfaces.cli._safe_text import safe_cell
from sentinel_rag.surfaces.cli._workspace_access import fault_admin

_SHOWN = ("kind", "wire", "method", "path", "times", "skip", "every", "probability", "start", "end")


def run(requested: str | None, action: str, kind: str | None, given: Mapping[str, Any], *, as_json: bool) -> int:
    """Show the faults that are left, set them (`set` in place of others, `add` behind them), or `clear` them."""
    if action in ("set", "add") and kind is None:
        raise UsageError(f"faults {action} needs the kind of the fault.", next_step="sentinel workspace faults --help")
    if action in ("show", "clear") and (kind is not None or given):
        raise UsageError(f"faults {action} takes no fault.", next_step=f"sentinel workspace faults {action}")
    admin = fault_admin(load_settings(), requested)
    if action == "show":
        state = admin("GET", None)
    elif action == "clear":
        state = admin("PUT", {"faults": []})
    else:
        state = admin("PUT" if action == "set" else "POST", {"faults": [_fault(str(kind), given)]})
    if as_json:
        print(json.dumps(state, indent=2))
    else:
        _print(state)
    return 0


def _fault(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: format_time(moment(f"--{name}", given[name])) for name in ("start", "end") if name in given}
    return {"kind": kind, **given, **times}


def _print(state: Mapping[str, Any]) -> None:
    faults = state["faults"]
    if faults:
        from sentinel_rag.surfaces.cli._render import console, print_table

        rows = [tuple(_cell(name, fault.get(name)) for name in _SHOWN) for fault in faults]
        print_table(console(), "", _SHOWN, rows)
    else:
        print("No fault is to come.")
    counted = ", ".join(f"{safe_cell(name)} {count}" for name, count in state["requests"].items())
    print(f"Requests since they were set: {counted or 'none'}.")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "all" if name == "times" else "any" if name in ("wire", "method") else "-"
    return str(value)
