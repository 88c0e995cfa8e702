"""`POST /chat {"message": "..."}`: the agent of `agent.py` over HTTP, with a model at OpenRouter.

    SENTINEL_URL=... SENTINEL_API_KEY=... OPENROUTER_API_KEY=... python examples/langchain_agent/main.py

OPENROUTER_MODEL names the model; OPENROUTER_BASE_URL another service that speaks the same wire. It listens on 127.0.0.1
and knows no people: put a sign-in before it where others can reach it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import uvicorn
from fastapi import FastAPI, HTTPException
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from pydantic import BaseModel, Field

from agent import SentinelAgent
from sentinel_rag.contracts.errors import ConfigurationError, SentinelError
from sentinel_rag.integrations.gateway import GatewayConnection
from sentinel_rag.integrations.langchain import load_gateway_tools

OPENROUTER_URL = "https://openrouter.ai/api/v1"


class Question(BaseModel):
    """A message; with `session_id` one of the conversation that an earlier answer began."""

    message: str = Field(min_length=1, max_length=8_000)
    session_id: str | None = None


def create_app(agent: SentinelAgent, gateway: GatewayConnection) -> FastAPI:
    """The HTTP side of an agent. It closes the connection to the gateway when it stops."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with gateway:
            yield

    app = FastAPI(title="A LangChain agent behind the gateway", lifespan=lifespan)

    @app.post("/chat")
    async def chat(question: Question) -> dict[str, object]:
        if question.session_id is not None and not agent.knows(question.session_id):
            raise HTTPException(404, "There is no such conversation. Leave session_id out to begin one.")
        session_id = question.session_id or str(uuid.uuid4())
        try:
            turn = await agent.invoke(question.message, session_id)
        except openai.AuthenticationError:
            raise HTTPException(502, "The model's service does not accept OPENROUTER_API_KEY.") from None
        except openai.OpenAIError as fault:
            raise HTTPException(502, f"The model could not be asked ({type(fault).__name__}). Try again.") from None
        except GraphRecursionError:
            raise HTTPException(502, "The model went on calling tools without an answer. Ask for less.") from None
        return {"answer": turn.answer, "session_id": session_id, "tools": list(turn.tools)}

    @app.get("/healthz")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    return app


def made_agent(gateway: GatewayConnection) -> SentinelAgent:
    """The agent of this environment. Raises ConfigurationError or UnavailableError, with the next step."""
    key = os.environ.get("OPENROUTER_API_KEY")
    if not key:
        raise ConfigurationError("There is no key for the model.", next_step="Set OPENROUTER_API_KEY.")
    model = ChatOpenAI(
        model=os.environ.get("OPENROUTER_MODEL", "openai/gpt-4o-mini"),
        base_url=os.environ.get("OPENROUTER_BASE_URL", OPENROUTER_URL),
        api_key=key,
        streaming=True,
        timeout=120,
        max_retries=2,
    )
    return SentinelAgent(model, load_gateway_tools(gateway=gateway))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000, help="port on 127.0.0.1; 0 takes a free one")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        gateway = GatewayConnection()
        app = create_app(made_agent(gateway), gateway)
        listener = socket.create_server(("127.0.0.1", options.port))
    except SentinelError as error:
        print(f"{error} {error.next_step}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Port {options.port} cannot be used: {error.strerror}. Choose another one.", file=sys.stderr)
        return 1
    host, port = listener.getsockname()[:2]
    print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none")).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
