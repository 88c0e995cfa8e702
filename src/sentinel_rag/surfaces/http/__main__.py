"""The agent's process; started by the supervisor (`sentinel up`), never by hand."""

import sys
from collections.abc import Mapping
from typing import Any

from sentinel_rag.app.serving import begin_zone, fail_to_start, serve
from sentinel_rag.app.zones import build_agent
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.surfaces.http import create_app

BUILT_OF = ("timezone", "conversations", "model", "question_timeout_s")


def main() -> None:
    configuration = begin_zone("agent")
    try:
        _serve(configuration)
    except SentinelError as error:
        fail_to_start(error)


def _serve(configuration: Mapping[str, Any]) -> None:
    agent = build_agent(
        **{name: configuration[name] for name in BUILT_OF}, authorities=configuration.get("authorities")
    )
    app = create_app(
        agent.analyst,
        token=configuration["token"],
        question_timeout_s=configuration["question_timeout_s"],
        model=(configuration["model"] or {}).get("name", ""),
        close=agent.close,
    )
    serve(app, int(sys.argv[1]), tls=configuration.get("tls"))


main()
