"""`sentinel kql install`: Microsoft's KQL parser into the Python environment that runs this command.

What is installed and where, `sentinel.kql_guard.parser_installation` knows.
"""

from __future__ import annotations

import json

from sentinel_rag.contracts.errors import UnavailableError


def install(*, as_json: bool) -> int:
    """Install the pinned parser unless it is there."""
    from sentinel_rag.sentinel.kql_guard.parser_installation import install_parser, parser_state, quicken

    before = parser_state()
    state = before if not before.missing else install_parser()
    quicken(state)
    if state.missing or state.node is None:
        raise UnavailableError(state.missing, next_step=state.next_step)
    node = ".".join(str(part) for part in state.node.version)
    if as_json:
        found = {"version": state.version, "folder": str(state.folder), "node": node, "installed": bool(before.missing)}
        print(json.dumps(found, indent=2))
    else:
        done = "is installed now" if before.missing else "was there already"
        print(f"Microsoft's KQL parser {state.version} {done}, in {state.folder}; it runs on node {node}.")
    return 0
