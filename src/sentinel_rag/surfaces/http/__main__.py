"""The agent's process; started by the supervisor (`sentinel up`), never by hand."""

import sys

from sentinel_rag.assembly.serving import begin_zone, serve
from sentinel_rag.assembly.zones import build_agent
from sentinel_rag.surfaces.http import create_app


def main() -> None:
    configuration = begin_zone("agent")
    agent = build_agent(
        **{name: configuration[name] for name in ("timezone", "conversations", "model", "question_timeout_s")}
    )
    app = create_app(
        agent.analyst,
        token=configuration["token"],
        question_timeout_s=configuration["question_timeout_s"],
        close=agent.close,
    )
    serve(app, int(sys.argv[1]))


main()
