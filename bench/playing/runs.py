"""Questions that were played, here or over plain MCP: asked, kept, counted, and made into sets and blind pairs."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from itertools import groupby
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from bench.playing.wire import read_reply, reply_file, requests, write_json
from sentinel_rag.agent.answers.check import CheckedAnswer, check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.repair import ASKED, repaired, sourced
from sentinel_rag.agent.answers.results_file import read_results, results_document
from sentinel_rag.agent.model_analyst.answer_text import shown
from sentinel_rag.agent.model_analyst.composing import RULE, SENTENCES, TRANSLATED
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.contracts.evidence import Answer, CitedBy, SentenceState
from sentinel_rag.surfaces.cli.ask import print_result

SENTINEL = Path(sys.executable).parent / "sentinel"
QUESTION_S = "3600"
_SOURCES = prompt("sources").text
_ASKED_BACK = (ASKED, _SOURCES)
PARTS = ("draft", "final")
_POLL_S = 0.3
_PIPE = re.compile(r"(?<!\\)\|")
_RULE_OF_A_TABLE = frozenset(" :-|")


def environment(folder: Path) -> dict[str, str]:
    """Of the product: a home in `folder`, and the model that is served there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
    return {
        **kept,
        "SENTINEL_HOME": str(folder.resolve() / "home"),
        "SENTINEL_MODEL": "openai-compatible",
        "SENTINEL_MODEL_URL": f"http://127.0.0.1:{(folder / 'port').read_text()}/v1",
        "SENTINEL_MODEL_NAME": "played",
        "SENTINEL_MODEL_TIMEOUT_S": QUESTION_S,
        "SENTINEL_QUESTION_TIMEOUT_S": QUESTION_S,
    }


def sentinel(folder: Path, *words: str) -> str:
    """What a command of the product prints; what it complains of goes to `sentinel.log`."""
    with (folder / "sentinel.log").open("a") as log:
        command = [SENTINEL, *words]
        return subprocess.run(command, env=environment(folder), cwd=folder, stdout=-1, stderr=log, text=True).stdout


def fill(folder: Path) -> None:
    """The sample estate with its playbooks, where there is none yet."""
    if not (folder / "home").exists():
        sentinel(folder, "workspace", "generate")
        sentinel(folder, "knowledge", "ingest", "--by-words")


def load_run(folder: Path, name: str) -> dict[str, Any]:
    """A question that ended. Raises OSError for one that did not."""
    run: dict[str, Any] = json.loads((folder / "runs" / f"{name}.json").read_text(encoding="utf-8"))
    return run


def load_runs(folders: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """All questions that ended, with the folder that each lies in."""
    for folder in folders:
        for path in sorted((folder / "runs").glob("*.json")):
            yield folder, load_run(folder, path.stem)


def ask(folder: Path, name: str, question: str, after: str, lang: str) -> None:
    """Put a question to the product, and keep how it ended. `after` is the question whose conversation it goes on."""
    fill(folder)
    session = ["--session", load_run(folder, after)["answer"]["session_id"]] if after else []
    before = len(requests(folder))
    printed = sentinel(folder, "ask", "--json", *session, "--", question)
    try:
        answer = json.loads(printed)
        session_id = answer["session_id"]
    except (ValueError, KeyError):
        text = f"Nothing: the product gave no answer.\n{printed}\n{(folder / 'sentinel.log').read_text()[-2_000:]}"
        write_json(folder / "runs" / f"{name}.failed", {"name": name, "rendered": text})
        raise
    kept = sentinel(folder, "export", session_id, "--format", "results", "--output", "-")
    results = json.loads(kept) if kept else results_document((), timezone="UTC", said=(question,))
    draft, reply = draft_and_reply(requests(folder)[before:], results)
    final = repaired(draft, check(draft, results), reply) if reply else draft
    text = io.StringIO()
    with redirect_stdout(text):
        print_result(Answer.from_dict(answer), as_json=False, evidence=False)
    run = {
        "name": name,
        "question": question,
        "lang": lang,
        "draft": draft,
        "final": final,
        "rendered": text.getvalue(),
    }
    write_json(folder / "runs" / f"{name}.json", {**run, "answer": answer, "results": results})


def draft_and_reply(asked: Sequence[Path], results: Mapping[str, Any]) -> tuple[str, str]:
    """The answer as it was first written, with the sources that were given for it, and what came of its repair; empty
    where none was asked for."""
    draft = reply = ""
    for path in asked:
        told = json.loads(reply_file(path).read_text()).get("text", "")
        contents = [str(message.get("content") or "") for message in json.loads(path.read_text())["messages"]]
        place = {text: at for at, content in enumerate(contents) for text in _ASKED_BACK if content.startswith(text)}
        if ASKED in place:
            draft, reply = contents[place[ASKED] - 1], told
        elif place:
            written = contents[place[_SOURCES] - 1]
            draft, reply = sourced(written, check(written, results), told), ""
        else:
            draft, reply = shown(told), ""
    return draft, reply


def check(text: str, results: Mapping[str, Any]) -> CheckedAnswer:
    told = read_results(results)
    return check_answer(text, ReadResults(told.results, zone=told.zone, said=told.said))


def show_next(folder: Path, seconds: float) -> int:
    """Print the next request or a new answer, as soon as there is one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for request in requests(folder):
            if not reply_file(request).exists():
                print(f"#### REQUEST {request.name[:3]}\n\n{request.with_suffix('.txt').read_text()}")
                return 0
        for path in (folder / "runs").glob("*.*"):
            if path.suffix in (".json", ".failed") and not (seen := path.with_suffix(".seen")).exists():
                seen.touch()
                run = json.loads(path.read_text(encoding="utf-8"))
                print(f"#### ANSWERED: {run['name']}. The person reads:\n\n{run['rendered']}")
                return 0
        time.sleep(_POLL_S)
    print("Nothing waits. If something was asked and the server runs: see ask.log and sentinel.log.", file=sys.stderr)
    return 3


def reply_to(folder: Path, number: str, file: Path) -> None:
    """Answer a request. Raises ValueError for a reply that cannot be read, or a request that does not wait."""
    request = folder / "requests" / f"{number:0>3}.request.json"
    if not request.exists() or reply_file(request).exists():
        raise ValueError(f"request {number} does not wait for an answer")
    write_json(reply_file(request), read_reply(file))


async def plain(folder: Path, tool: str, arguments: Mapping[str, Any]) -> None:
    """Call a tool over the product's MCP face, without its rules and its check; without a tool, list them. No question
    may be open meanwhile: its zones hold the home."""
    async with Client(StdioServerParameters(command=str(SENTINEL), args=["mcp"], env=environment(folder))) as client:
        if tool:
            found = await client.call_tool(tool, dict(arguments))
            print("\n".join(getattr(part, "text", str(part)) for part in found.content))
            return
        print(client.instructions or "")
        for each in (await client.list_tools()).tools:
            print(f"- {each.name}: {each.description}\n  {json.dumps(each.input_schema)}")


def figures(folders: Sequence[Path]) -> None:
    """Print, for each run and for all, the sentences by state before and after the repair, and how many of those about
    the environment their writer cited."""
    totals = {part: Counter[str]() for part in PARTS}
    for folder, run in load_runs(folders):
        for part in PARTS:
            checked = check(run[part], run["results"])
            pairs = zip(checked.sentences, checked.written, strict=True)
            told = [each for each, unit in pairs if unit.kind not in (UnitKind.HEAD, UnitKind.HEADING)]
            counted = Counter(each.state.value for each in told)
            about = [each for each in told if each.state is not SentenceState.OWN_WORDS]
            counted["cited"] = sum(each.cited_by in (CitedBy.WRITER, CitedBy.BLOCK) for each in about)
            totals[part] += counted
            print(f"{folder.name}/{run['name']} {part}: {_told(counted)}")
    for part, counted in totals.items():
        print(f"all, {part}: {_told(counted)}")


def _told(counted: Counter[str]) -> str:
    total = sum(counted[state] for state in SentenceState)
    about = total - counted[SentenceState.OWN_WORDS]
    states = ", ".join(f"{state} {counted[state]} ({_percent(counted[state], total)})" for state in SentenceState)
    return f"{total} sentences: {states}; cited {counted['cited']} of {about} ({_percent(counted['cited'], about)})"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def make_set(folders: Sequence[Path], name: str, out: Path, part: str) -> None:
    """A set of true statements in the form of bench/answers_sets; results as the last answer had them."""
    estates: dict[str, Any] = {}
    lines = []
    for folder, run in load_runs(folders):
        estate = f"{folder.name}-{run['answer']['session_id']}"
        estates[estate] = max(
            estates.get(estate, run["results"]), run["results"], key=lambda told: len(told["results"])
        )
        line = {"id": f"{name}-{len(lines) + 1:02}", "set": name, "estate": estate, "calls": [], "truth": "true"}
        line |= {"lang": run["lang"], "question": run["question"], "text": run[part]}
        lines.append(json.dumps({**line, "plain": check(run[part], run["results"]).text}, ensure_ascii=False) + "\n")
    (out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (out / f"{name}.results.json").write_text(json.dumps(estates, ensure_ascii=False, separators=(",", ":")))


def pairs(folders: Sequence[Path], out: Path) -> None:
    """Write a page for each question that has both answers, in an order by chance, and the key beside the folder."""
    key: dict[str, dict[str, str]] = {}
    for folder, run in load_runs(folders):
        other = folder / "plain" / f"{run['name']}.md"
        if not other.exists():
            continue
        texts = {"here": _without_notices(run["answer"]["answer"]), "plain": other.read_text(encoding="utf-8")}
        texts = {whose: without_empty_columns(text) for whose, text in texts.items()}
        first, second = secrets.choice((("here", "plain"), ("plain", "here")))
        key[name := f"pair-{len(key) + 1:02}"] = {"A": first, "B": second, "run": f"{folder.name}/{run['name']}"}
        told = ("QUESTION", run["question"]), ("ANSWER A", texts[first]), ("ANSWER B", texts[second])
        out.mkdir(parents=True, exist_ok=True)
        page = "\n\n".join(f"# {head}\n\n{text.strip()}" for head, text in told)
        (out / f"{name}.md").write_text(page + "\n", encoding="utf-8")
    write_json(out.with_suffix(".key.json"), key)
    print(f"{len(key)} pairs")


def _without_notices(answer: str) -> str:
    """The answer without what code says below it: it would tell the judge whose it is."""
    body, rule, below = answer.rpartition(f"\n{RULE}\n")
    told = [*SENTENCES.values(), *(each for words in TRANSLATED.values() for each in words.values())]
    notices = tuple(sentence.partition("{")[0] for sentence in told)
    return body if rule and below.strip().startswith(notices) else answer


def without_empty_columns(text: str) -> str:
    """A text without the columns of its tables in which no line says anything: those that held sources alone are empty
    where these are taken out, and would tell the judge whose text it is."""
    told: list[str] = []
    for table, group in groupby(text.splitlines(), key=lambda line: line.lstrip().startswith("|")):
        lines = list(group)
        told += _filled(lines) if table else lines
    return "\n".join(told)


def _filled(table: list[str]) -> list[str]:
    """The lines of a table with the columns that say something."""
    rows = [_PIPE.split(line.strip().removeprefix("|").removesuffix("|")) for line in table]
    body = [row for row in rows[1:] if any(set(cell) - _RULE_OF_A_TABLE for cell in row)]
    width = max(map(len, rows))
    kept = [at for at in range(width) if any(at < len(row) and any(map(str.isalnum, row[at])) for row in body)]
    if not body or len(kept) == width:
        return table
    return [f"|{'|'.join(row[at] for at in kept if at < len(row))}|" for row in rows]


def score(out: Path, verdicts: Path) -> None:
    """Print what a judge's `{"pair-01": "A", "pair-02": "equal", ...}` says."""
    key = json.loads(out.with_suffix(".key.json").read_text())
    counted = Counter(key[name].get(told, "equal") for name, told in json.loads(verdicts.read_text()).items())
    good = counted["here"] + counted["equal"]
    print(f"{dict(counted)}: here preferred or equal in {100 * good / max(sum(counted.values()), 1):.0f} %")
