"""How often the offline analyst gives the one value that a question along the alert graph asks for, and how often a
wrong one, on the public questions of microsoft/SecRL over its real alerts.

Each question is asked of the shipped analyst and tools over the embedded workspace and its wire; equal calls are
answered from memory, since the rows do not change. It is asked as a person would paste it (the context, then the
question, on one line) and, with less to go by, as the question alone with the incident's number.

A short answer is the values in code spans of an answer's first line. It is *right* if it equals what is expected,
without regard to case, surrounding quotes and backticks, a trailing slash or full stop, repeated backslashes and a
URL's scheme. Where a process is expected as `id__time__command`, or as labelled parts, each value given must be one of
the parts that the expected text holds, and as many as it labels must be given. An account may be given by any name that
the answer tells for it; an expected address that is a display name before a domain (`Ana Ruiz@corp.example`, which
stands in no row) is met by that person's real address at that domain with that display name beside it, and such answers
are counted once more as `by_display_name`. *Wrong* is every other answer; *several* is a question back with a choice of
values; *not found* is an answer that names none.

Half of the incidents were used while building (`development`). The other half (`held_out`) was asked only when that was
done, but rules were changed after that, so that it is unseen no longer; `docs/asking.md` keeps its first figures.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import write
from bench.workspace_process import IDENTITY_HEADER, WORKSPACE_ID, workspace_process
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question, utc_now
from sentinel_rag.contracts.query_results import QueryError, QueryResult
from sentinel_rag.contracts.tool_calls import Failed, Succeeded, ToolCall, ToolOutcome
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.workspace.workspace import Workspace

DATA = Path(__file__).parents[2] / "shared" / "data" / "secrl"
TABLES = {"extracted_alerts.csv": "SecurityAlert", "extracted_incidents.csv": "SecurityIncident"}
DEVELOPMENT = (5, 34, 39, 134)
HELD_OUT = (38, 55, 166, 322)
FORMS = ("pasted", "incident_told")
VERDICTS = ("right", "wrong", "several", "not_found")
_FAMILIES = (
    ("hash", r"\bhash|sha-?\d|md5"),
    ("process id", r"process\s*id|\bpid"),
    ("command line", r"command"),
    ("SID", r"\bsid\b|security identif"),
    ("Entra device id", r"aad ?device|device id"),
    ("Entra user id", r"aad ?user|user id|object id"),
    ("technique", r"technique|mitre"),
    ("registry", r"registry (?:key|value)"),
    ("mailbox", r"mailbox|e-?mail"),
    ("URL", r"\burl|\blink\b"),
    ("IP address", r"\bips?\b|ip address"),
    ("time", r"^when\b|what time|timestamp"),
    ("process", r"process"),
    ("file", r"\bfile|script|tool|executable|malware"),
    ("host", r"host|device|machine|endpoint|system"),
    ("account", r"account|user|who\b|individual"),
)


@dataclass(frozen=True, slots=True)
class SecRLQuestion:
    incident: int
    context: str
    question: str
    expected: str

    def text(self, form: str) -> str:
        if form == "pasted":
            return f"{self.context} {self.question}"
        return f"Incident {self.incident}: {self.question}"

    @property
    def family(self) -> str:
        """What is asked for, by the words of the last sentence."""
        last = re.split(r"(?<=[.?!])\s+", self.question.strip())[-1].lower()
        return next((name for name, pattern in _FAMILIES if re.search(pattern, last)), "other")


def questions(incidents: tuple[int, ...]) -> Iterator[SecRLQuestion]:
    for incident in incidents:
        (path,) = (DATA / "questions").glob(f"*_incident_{incident}_qa_*.json")
        for item in json.loads(path.read_text(encoding="utf-8")):
            context = item["context"]
            told = context if isinstance(context, str) else json.dumps(context)
            yield SecRLQuestion(incident, told, item["question"], item["answer"])


class RememberingGateway:
    """The tools of `service` without the zones between; a call that was made before is not made again."""

    def __init__(self, service: SentinelService) -> None:
        self._service = service
        self._known: dict[str, QueryResult | QueryError] = {}
        self.calls = 0

    async def offered_tools(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self._service.tools)

    async def execute(self, call: ToolCall) -> ToolOutcome:
        self.calls += 1
        key = json.dumps([call.tool_name, dict(call.arguments)], sort_keys=True)
        if key not in self._known:
            self._known[key] = await self._service.call(call.tool_name, call.arguments)
        found = self._known[key]
        return Failed(call, found, "-") if isinstance(found, QueryError) else Succeeded(call, found, "-")


def normal(text: str) -> str:
    text = re.sub(r"\\+", r"\\", text.strip().strip("`'\"").rstrip("/.").casefold())
    return re.sub(r"^https?://", "", " ".join(text.split())).replace("ˋ", "`").strip("`'\"")


_LABELS = re.compile(
    r"(?:,\s*|^)\b(?:process\s*id(?:\s+and\s+command\s+line)?|(?:process\s+)?command\s*line|creat\w+\s*time|time)\s*:\s*",
    re.IGNORECASE,
)


def parts(expected: str) -> set[str]:
    """What an expected answer holds: itself, or the parts of a process told as one text."""
    found = {normal(expected)}
    labelled = re.split(
        r"(?:,\s*|^)\b(?:process\s*id|(?:process\s+)?command\s*line|creat\w+\s*time|time)\s*:\s*", expected, flags=re.I
    )
    for piece in labelled if len(labelled) > 1 else [expected]:
        found |= {normal(each) for each in [piece, *piece.split("__", 2)] if normal(each)}
    return found


def short_answer(answer: Answer) -> tuple[list[str], list[str]]:
    """(values of the first line, other names of the same thing)."""
    if answer.outcome is not Outcome.ANSWERED:
        return [], []
    first = answer.text.splitlines()[0] if answer.text else ""
    value, _, others = first.partition(", also known as ")
    return re.findall(r"`([^`]+)`", value), re.findall(r"`([^`]+)`", others)


def verdict(question: SecRLQuestion, answer: Answer) -> str:
    given, others = short_answer(answer)
    if answer.outcome is not Outcome.ANSWERED:
        return "several" if re.search(r"^\[2\] ", answer.text, re.MULTILINE) else "not_found"
    expected = parts(question.expected)
    wanted = max(1, len(_LABELS.findall(question.expected)))
    if len(given) >= wanted and all(normal(each) in expected for each in given):
        return "right"
    if any(normal(each) in expected for each in others):
        return "right"
    return "right" if is_display_address(question.expected, given, others) else "wrong"


def is_display_address(expected: str, given: list[str], others: list[str]) -> bool:
    """True if `expected` is `Display Name@domain` and the answer tells an address at that domain and that name."""
    name, at, domain = normal(expected).rpartition("@")
    told = {normal(each) for each in [*given, *others]}
    return bool(at) and " " in name and name in told and any(each.endswith(at + domain) for each in told)


async def ask_all(url: str, incidents: tuple[int, ...], form: str, *, verbose: bool) -> dict[str, Any]:
    credential = IdentityEndpointCredential(f"{url}/msi/token", IDENTITY_HEADER)
    by_incident: dict[str, Counter[str]] = defaultdict(Counter)
    by_family: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    async with LogAnalytics(credential, endpoint=url) as connection:
        gateway = RememberingGateway(SentinelService({"bench": connection.workspace("bench", WORKSPACE_ID)}))
        for place, question in enumerate(questions(incidents)):
            answer = await OfflineAnalyst(gateway, clock=utc_now).answer(Question(question.text(form), str(place)))
            found = verdict(question, answer)
            if found == "right" and is_display_address(question.expected, *short_answer(answer)):
                total["by_display_name"] += 1
            for counter in (total, by_incident[str(question.incident)], by_family[question.family]):
                counter[found] += 1
            if verbose:
                print(f"{found.upper()} {question.incident}/{place} {question.family}: {question.question}")
                print(f"    want {question.expected!r}\n    got  {answer.outcome.value}: {answer.text[:400]!r}")
    asked = sum(total[name] for name in VERDICTS)
    return {
        "questions": asked,
        **{name: round(total[name] / asked, 3) for name in (*VERDICTS, "by_display_name")},
        "calls_per_question": round(gateway.calls / asked, 1),
        "by_incident": {
            name: dict(counts) for name, counts in sorted(by_incident.items(), key=lambda item: int(item[0]))
        },
        "by_family": {name: dict(counts) for name, counts in sorted(by_family.items())},
    }


def ask_in_process(url: str, incidents: tuple[int, ...], form: str, verbose: bool) -> dict[str, Any]:
    """`ask_all` as a process of a pool runs it."""
    return asyncio.run(ask_all(url, incidents, form, verbose=verbose))


def main() -> None:
    verbose = "--verbose" in sys.argv
    groups = {"development": DEVELOPMENT, "held_out": HELD_OUT}
    if "--development" in sys.argv:
        del groups["held_out"]
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.open(Path(folder) / "workspace")
        for name, table in TABLES.items():
            workspace.import_path(DATA / name, table=table)
        workspace.close()
        with workspace_process(Path(folder) / "workspace") as server:
            tasks = [(group, form) for group in groups for form in FORMS]
            with ProcessPoolExecutor(2) as pool:
                running = [
                    pool.submit(ask_in_process, server.url, groups[group], form, verbose and group == "development")
                    for group, form in tasks
                ]
                measured: dict[str, dict[str, Any]] = {group: {} for group in groups}
                for (group, form), future in zip(tasks, running, strict=True):
                    measured[group][form] = future.result()
    if "held_out" in groups:
        write("secrl", measured, claim="The offline analyst singles out the value asked for along the alert graph.")
    else:
        print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
