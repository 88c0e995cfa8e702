"""Questions of the sample estate, asked of a real model through the whole product: what must hold for any model.

No answer is judged as right or wrong by its words: the shipped model of 135 million parameters writes nonsense, and a
model of one's own (`make model-local MODEL=FILE.gguf`) may write anything. For each question: it ends in a typed
outcome, within its time and without a traceback; the next question of the conversation does too; and no sentence with
the seal "values found" holds a number that its cells do not. Where there is no server, nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.harness import write
from bench.local_model import TEMPLATE, WEIGHTS, NotHereError, install, server_command, serving
from sentinel_rag.contracts.evidence import Outcome, SentenceState

SENTINEL = Path(sys.executable).parent / "sentinel"
QUESTIONS = (
    "Which high severity incidents are open?",
    "and which of them is the newest?",
    "show incident 124",
    "hello, what can you do?",
)
QUESTION_S = 900
_NUMBER = re.compile(r"\d+")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench local_model", description=__doc__)
    parser.add_argument("--server", default="llama-server", help="llama.cpp's server")
    parser.add_argument("--model", default="", help="a .gguf file of a model that calls tools; without it SmolLM2")
    parser.add_argument("--context", type=int, default=0, help="tokens of context; 4096, or 16384 with --model")
    parser.add_argument("--threads", type=int, default=None, help="threads of the server; one for each core")
    options = parser.parse_args()
    own = Path(options.model) if options.model else None
    if own is not None and not own.is_file():
        print(f"{own} is no file. Name a .gguf file: make model-local MODEL=FILE.gguf", file=sys.stderr)
        return 2
    context = options.context or (4_096 if own is None else 16_384)
    try:
        if own is None or not server_command(options.server):
            install()
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(
                own or WEIGHTS,
                context=context,
                template=TEMPLATE if own is None else None,
                command=server_command(options.server),
                threads=options.threads,
            ) as url,
        ):
            asked = _ask_all(Path(folder), url, (own or WEIGHTS).stem, context)
    except NotHereError as error:
        print(f"No local model was asked: {error}", file=sys.stderr)
        return 1
    faults = [f"{each['question']}: {fault}" for each in asked for fault in each["faults"]]
    if own is None:
        _write(asked, context)
    for fault in faults:
        print(f"FAULT {fault}", file=sys.stderr)
    print(f"{len(asked)} questions asked of {(own or WEIGHTS).stem}, {len(faults)} faults.")
    return 1 if faults else 0


def _ask_all(folder: Path, url: str, name: str, context: int) -> list[dict[str, Any]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
    environment = {
        **kept,
        "SENTINEL_HOME": str(folder / "home"),
        "SENTINEL_MODEL": "openai-compatible",
        "SENTINEL_MODEL_URL": url,
        "SENTINEL_MODEL_NAME": name,
        "SENTINEL_MODEL_CONTEXT_TOKENS": str(context),
        "SENTINEL_MODEL_TIMEOUT_S": str(QUESTION_S - 30),
        "SENTINEL_QUESTION_TIMEOUT_S": str(QUESTION_S),
    }
    subprocess.run([SENTINEL, "workspace", "generate"], env=environment, cwd=folder, check=True, capture_output=True)
    doctor = subprocess.run(
        [SENTINEL, "doctor", "--model"], env=environment, cwd=folder, check=False, text=True, capture_output=True
    )
    print(next((line for line in doctor.stdout.splitlines() if "model large" in line), doctor.stdout), flush=True)
    asked: list[dict[str, Any]] = []
    session: list[str] = []
    for question in QUESTIONS:
        started = time.monotonic()
        command: list[str] = [str(SENTINEL), "ask", "--json", *session, question]
        done = subprocess.run(command, env=environment, cwd=folder, check=False, capture_output=True, text=True)
        answer = _parsed(done.stdout)
        session = ["--session", str(answer["session_id"])] if answer.get("session_id") else session
        asked.append(_judged(question, done, answer, time.monotonic() - started))
        print(json.dumps(asked[-1], ensure_ascii=False), flush=True)
    return asked


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _judged(
    question: str, done: subprocess.CompletedProcess[str], answer: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    outcome = answer.get("outcome")
    faults = [] if outcome in set(Outcome) else [f"no typed outcome, exit code {done.returncode}"]
    faults += ["a traceback"] if "Traceback" in done.stdout + done.stderr else []
    faults += ["an answer without a text"] if not str(answer.get("answer", "")).strip() else []
    faults += ["it took longer than a question may"] if seconds > QUESTION_S + 60 else []
    sealed = [each for each in answer.get("sentences", ()) if each["state"] == SentenceState.VALUES_FOUND]
    faults += [
        f"sealed without its numbers: {each['text']!r}" for each in sealed if not _holds(each, str(answer["answer"]))
    ]
    usage = answer.get("model") or {}
    return {
        "question": question,
        "outcome": outcome,
        "calls": [run.get("tool") for run in answer.get("tools", ())],
        "sentences": Counter(each["state"] for each in answer.get("sentences", ())),
        "requests": usage.get("requests", 0),
        "input_tokens": usage.get("input_tokens", 0),
        "output_tokens": usage.get("output_tokens", 0),
        "seconds": round(seconds, 1),
        "text": str(answer.get("answer", ""))[:300],
        "faults": faults,
    }


def _holds(sentence: Mapping[str, Any], answer: str) -> bool:
    """True if each number of a sentence stands in a literal that was compared and found."""
    found = [answer[mark["start"] : mark["end"]] for mark in sentence["marks"] if mark["found"]]
    known = {number for literal in found for number in _NUMBER.findall(literal)}
    return known >= set(_NUMBER.findall(sentence["text"]))


def _write(asked: list[dict[str, Any]], context: int) -> None:
    outcomes = Counter(each["outcome"] for each in asked)
    faults = sum(len(each["faults"]) for each in asked)
    write(
        "local_model",
        {"model": WEIGHTS.stem, "context": context, "outcomes": outcomes, "faults": faults, "questions": asked},
        claim="Whatever a model writes, each question ends in a typed outcome and the next one works; no sealed number "
        "is without its cell.",
        figures={
            "model": WEIGHTS.stem,
            "questions": len(asked),
            "faults": faults,
            "sentences with the seal": sum(each["sentences"][SentenceState.VALUES_FOUND.value] for each in asked),
            "median seconds of a question": sorted(each["seconds"] for each in asked)[len(asked) // 2],
        },
        group="correctness",
        show=False,
    )


if __name__ == "__main__":
    sys.exit(main())
