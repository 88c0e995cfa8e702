"""Shows that the example works: real zones, a scripted model in place of OpenRouter, the agent, three questions.

    python examples/langchain_agent/check.py              starts everything in a folder of its own and stops it
    python examples/langchain_agent/check.py --url URL    asks an agent that runs, over the same script

Exits with 0 if every answer is as it should be, and with 1 and a sentence for each that is not. It needs no key and no
network, and no package but those of `pip install 'sentinel-rag[langchain]' langchain langchain-openai`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPT = {
    "replies": [
        {
            "calls": [
                {
                    "name": "web_search",
                    "arguments": {"query": "what is a panda", "context": "user wants to learn about pandas"},
                }
            ]
        },
        {"text": "A panda is a bear species that eats bamboo."},
        {"calls": [{"name": "file_read", "arguments": {"file_path": "confidential/salaries.csv"}}], "first": 2},
        {"text": "I may not read that file; a person has to approve it."},
        {"text": "You asked about pandas, and about a file that I may not read."},
    ]
}
MODEL_KEY = "a-key-of-the-model"
BLOCK = (
    "Tool 'file_read' was blocked by a security policy. "
    "Reason: Access denied by security policy. Taint level: HIGH [approval_required] "
)


@dataclass(frozen=True)
class Place:
    """What runs: the agent and the gateway, the agent's key, the home folder of the zones and all that `sentinel up`
    says of them."""

    agent: str
    gateway: str
    key: str
    home: Path
    zones: Mapping[str, Any]


def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """Status and JSON of a POST."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read() or b"null")


def conversation(agent: str) -> list[Any]:
    """The agent's answers to three messages of one conversation; the model must be at the beginning of `SCRIPT`."""
    chat = f"{agent}/chat"
    _, panda = post(chat, {"message": "I want to know what is a panda"})
    session = {"session_id": panda.get("session_id")}
    _, file = post(chat, {"message": "Read confidential/salaries.csv", **session})
    _, memory = post(chat, {"message": "What did I ask?", **session})
    return [panda, file, memory]


def faults(answers: Sequence[Any]) -> Iterator[str]:
    """A sentence for each answer of `conversation` that is not as it should be."""
    panda, file, memory = answers
    [search] = panda.get("tools") or [{}]
    if search.get("status") != "success" or '"title": "Giant panda"' not in search.get("told", ""):
        yield f"The web search found no panda: {panda}"
    if "bear" not in str(panda.get("answer")):
        yield f"The panda was not explained: {panda}"
    [read] = file.get("tools") or [{}]
    if read.get("status") != "error" or not str(read.get("told")).startswith(BLOCK):
        yield f"The confidential file was not blocked: {file}"
    if memory.get("tools") != [] or memory.get("session_id") != panda.get("session_id"):
        yield f"The conversation did not go on: {memory}"


@contextmanager
def process(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[dict[str, Any]]:
    """A process that prints a line of JSON once it is ready; stopped at the end. Raises RuntimeError."""
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True) as running,
    ):
        try:
            assert running.stdout is not None
            line = running.stdout.readline()
            if not line:
                running.wait()
                raise RuntimeError(f"{' '.join(command[1:4])} did not start: {log.read_text().strip()[-500:]}")
            yield json.loads(line)
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(30)


@contextmanager
def running(
    folder: Path,
    *,
    policy: Path | None = None,
    variables: Mapping[str, str] | None = None,
    model: str | None = None,
    packages: Path | None = None,
) -> Iterator[Place]:
    """Zones, scripted model and agent, each a process of its own, with their state in `folder`. `policy` is a policy
    file in place of the shipped one, `variables` are more settings of the zones, `model` is the address of a model that
    runs, `packages` is a folder with the agent's packages where they are not installed."""
    key = secrets.token_urlsafe(24)
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_", "OPENROUTER_"))
    }
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    model_command = [
        *(sys.executable, "-m", "sentinel_rag_testing.scripted_model", "--of-others"),
        *("--scenario", str(folder / "script.json"), "--key", MODEL_KEY),
    ]
    zones_command = [str(Path(sys.executable).parent / "sentinel"), "up", "--json"]
    zones_environment = {**kept, **(variables or {}), "SENTINEL_HOME": str(folder / "home"), "SENTINEL_API_KEY": key}
    if policy is not None:
        zones_environment["SENTINEL_CONFIG"] = str(policy)
    with ExitStack() as all_of_them:
        if model is None:
            model = all_of_them.enter_context(process(model_command, kept, folder / "model.log"))["url"]
        zones = all_of_them.enter_context(process(zones_command, zones_environment, folder / "zones.log"))
        gateway = zones["interceptor"]["url"]
        agent_environment = {
            **kept,
            "SENTINEL_URL": gateway,
            "SENTINEL_API_KEY": key,
            "OPENROUTER_API_KEY": MODEL_KEY,
            "OPENROUTER_BASE_URL": f"{model}/api/v1",
        }
        if packages is not None:
            agent_environment["PYTHONPATH"] = str(packages)
        command = [sys.executable, str(HERE / "main.py"), "--port", "0"]
        agent = all_of_them.enter_context(process(command, agent_environment, folder / "agent.log"))
        yield Place(agent["url"], gateway, key, folder / "home", zones)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an agent that runs, whose model is at the beginning of the script")
    options = parser.parse_args(arguments)
    try:
        if options.url:
            found = list(faults(conversation(options.url)))
        else:
            with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as place:
                found = list(faults(conversation(place.agent)))
    except (OSError, RuntimeError) as error:
        found = [str(error)]
    for fault in found:
        print(fault, file=sys.stderr)
    print("The example does not work." if found else "The example works: three questions, one block.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
