"""`make model-local`: three questions of the sample estate, answered by a real model over llama.cpp's server.

Starts the server on a .gguf file and the product in a home folder of its own, and stops both. Nothing is fetched: where
llama.cpp or the file is missing, it says so and ends well, since the target is optional.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

SENTINEL = Path(sys.executable).parent / "sentinel"
QUESTIONS = (
    "Which high severity incidents are open?",
    "Which hosts do most alerts name?",
    "How many alerts were there in the last 30 days?",
)
LOADING_S = 300.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.local_model", description=__doc__)
    parser.add_argument("--server", default="llama-server", help="llama.cpp's server")
    parser.add_argument("--model", default="", help="a .gguf file of a model that calls tools")
    parser.add_argument("--context", default="16384", help="tokens of context")
    options = parser.parse_args()
    server = shutil.which(options.server)
    if server is None:
        return _skipped(f"{options.server} is not installed. Install llama.cpp, or name its server in LLAMA_SERVER")
    if not Path(options.model).is_file():
        return _skipped(f"{options.model or 'MODEL'} is no file. Name a .gguf file: make model-local MODEL=FILE.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [server, "--model", options.model, "--host", "127.0.0.1", "--port", str(port), "--jinja"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([*command, "--ctx-size", options.context], stdout=sys.stderr) as process,
    ):
        try:
            return _ask(Path(folder), f"http://127.0.0.1:{port}/v1", options, process)
        finally:
            process.terminate()


def _ask(folder: Path, url: str, options: argparse.Namespace, process: subprocess.Popen[bytes]) -> int:
    if not _serves(url, process):
        print(f"{options.server} did not serve the model; what it printed is above.", file=sys.stderr)
        return 1
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
    environment = {
        **kept,
        "SENTINEL_HOME": str(folder / "home"),
        "SENTINEL_MODEL": "openai-compatible",
        "SENTINEL_MODEL_URL": url,
        "SENTINEL_MODEL_NAME": Path(options.model).stem,
        "SENTINEL_MODEL_CONTEXT_TOKENS": options.context,
        "SENTINEL_MODEL_TIMEOUT_S": "600",
        "SENTINEL_QUESTION_TIMEOUT_S": "900",
    }
    subprocess.run([SENTINEL, "workspace", "generate"], env=environment, cwd=folder, check=True)
    failed = 0
    for question in QUESTIONS:
        done = subprocess.run([SENTINEL, "ask", question], env=environment, cwd=folder, check=False)
        print(f"-- {json.dumps(question)}: exit code {done.returncode}\n", flush=True)
        failed += done.returncode != 0
    return 1 if failed else 0


def _serves(url: str, process: subprocess.Popen[bytes]) -> bool:
    """True once the server lists its model; False if it ended, or takes too long to load it."""
    until = time.monotonic() + LOADING_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/models", timeout=5) as answer:
                return bool(json.load(answer))
        except (OSError, ValueError, urllib.error.URLError):
            time.sleep(0.5)
    return False


def _skipped(why: str) -> int:
    print(f"SKIPPED, no local model was asked: {why}.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
