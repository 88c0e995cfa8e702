"""A gateway in a process of its own: `python serving_gateway.py FOLDER EXECUTOR_URL TOKEN`.

It prints its URL and the keys that it made as JSON, and serves until its standard input ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from approval_policy import policy

from sentinel_rag.gateway.upstream import McpHttpUpstream
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import running_gateway


def main() -> None:
    folder, url, token = sys.argv[1:]
    upstreams = {"sentinel": McpHttpUpstream(url, token=token)}
    with running_gateway(policy(), Path(folder), FakeToolServer(), upstreams=upstreams) as gateway:
        print(json.dumps({"url": gateway.url, "key": gateway.key, "approver": gateway.approver}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
