"""A suite's estate: an MCP server over loopback that runs AgentDojo's own tools on one environment at a time.

Its process starts with `python -m bench.agentdojo.estate SUITE` and ends with its standard input. Beside `/mcp` it
serves `/control`: a fresh environment for an episode, what an episode would do, and AgentDojo's own verdicts on it.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Mapping
from typing import Any

import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bench.agentdojo.agentdyn import SCRIPTS, settled
from bench.agentdojo.attack_scripts import ToolCall, attack_calls
from bench.agentdojo.loading import AGENTDYN, load_suites, package_of
from sentinel_rag_testing.loopback import serve

ERA = "2026-07-28"
MARK = "<INFORMATION>"
"""How an injected text begins; a result that holds it has carried the injection to the agent."""


class Estate:
    """One suite and the environment of the episode that runs."""

    def __init__(self, suite: Any) -> None:
        from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
        from agentdojo.task_suite.task_suite import read_suite_file

        self._call_type = FunctionCall
        self._is_dyn = package_of(suite.name) is AGENTDYN
        self.suite = suite
        self.runtime = FunctionsRuntime(suite.tools)
        self.executed: list[Any] = []
        defaults = suite.get_injection_vector_defaults()
        self._vectors = [(name, default.encode().decode("unicode_escape")) for name, default in defaults.items()]
        self._marks = {name: f"zz{index}zz" for index, (name, _) in enumerate(self._vectors)}
        # A payload is put in after the YAML is read, so that nothing in it can be taken for YAML.
        self._document = yaml.safe_load(
            read_suite_file(suite.name, "environment.yaml", suite.data_path).format(**self._marks)
        )
        self._task: Any = None
        self._injection: Any = None
        self._before: Any = None
        self._environment: Any = None

    def begin(self, task_id: str, injection_id: str | None) -> dict[str, Any]:
        """A fresh environment, with the injection in every place that an outsider can write; the user's words and the
        calls that solve the task, those of the attack, and the answer."""
        self._task = self.suite.user_tasks[task_id]
        self._injection = None if injection_id is None else self.suite.injection_tasks[injection_id]
        fresh = self._fresh("" if self._injection is None else _payload(self._injection.GOAL))
        self._environment = self._task.init_environment(fresh)
        self._before = self._environment.model_copy(deep=True)
        self.executed = []
        random.seed(task_id)
        truth = self._task.ground_truth(self._environment.model_copy(deep=True))
        calls = self._settled([ToolCall(call.function, dict(call.args)) for call in truth])
        return {"prompt": self._task.PROMPT, "calls": _written(calls)}

    def attack(self) -> list[dict[str, Any]]:
        """The calls of the attack, as things stand now."""
        if self._is_dyn:
            return _written(self._settled(SCRIPTS[self.suite.name](self._injection, self._environment)))
        return _written(attack_calls(self.suite.name, self._injection, self._before, self._environment))

    def _settled(self, calls: list[ToolCall]) -> list[ToolCall]:
        """The calls with what only a run can tell; a run from here tells the same."""
        if not self._is_dyn:
            return calls
        chance = random.getstate()
        made = settled(self.runtime, calls, self._environment)
        random.setstate(chance)
        return made

    def verdict(self) -> dict[str, bool]:
        """AgentDojo's own: whether the task is solved and whether the injection reached its goal."""
        output = [{"type": "text", "content": self._task.GROUND_TRUTH_OUTPUT}]
        found = {}
        for name, task in (("utility", self._task), ("security", self._injection)):
            if task is not None:
                # Its checks mark mail as read in what they are shown.
                before, after = (each.model_copy(deep=True) for each in (self._before, self._environment))
                found[name] = bool(self.suite._check_task_result(task, output, before, after, self.executed))
        return found

    def run(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Any, str | None]:
        """A tool's result as JSON, and its error."""
        value, error = self.runtime.run_function(self._environment, tool, dict(arguments))
        self.executed.append(self._call_type(function=tool, args=dict(arguments)))
        return _plain(value), error

    def _fresh(self, payload: str) -> Any:
        """The suite's environment; a payload stands behind the text in each place that an outsider can write."""
        texts = {self._marks[name]: f"{text} {payload}".rstrip() if payload else text for name, text in self._vectors}
        return self.suite.environment_type.model_validate(_replaced(self._document, texts))


def app(estate: Estate) -> Starlette:
    async def mcp(request: Request) -> Response:
        message = json.loads(await request.body())
        if "id" not in message:
            return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **_answer(estate, message)})

    async def control(request: Request) -> Response:
        wish = json.loads(await request.body())
        match wish:
            case {"begin": str(task), "injection": injection}:
                return JSONResponse(estate.begin(task, injection))
            case {"attack": True}:
                return JSONResponse(estate.attack())
            case {"verdict": True}:
                return JSONResponse(estate.verdict())
            case {"executed": True}:
                return JSONResponse(len(estate.executed))
        return JSONResponse({"detail": "no such wish"}, status_code=422)

    return Starlette(routes=[Route("/mcp", mcp, methods=["POST"]), Route("/control", control, methods=["POST"])])


def _answer(estate: Estate, message: Mapping[str, Any]) -> dict[str, Any]:
    complete = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    match message["method"]:
        case "server/discover":
            info = {"name": "agentdojo", "version": "1"}
            found = {"supportedVersions": [ERA], "capabilities": {"tools": {}}, "serverInfo": info}
            return {"result": {**found, **complete}}
        case "tools/list":
            tools = [
                {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters.model_json_schema()}
                for tool in estate.suite.tools
            ]
            return {"result": {"tools": tools, **complete}}
        case "tools/call":
            value, error = estate.run(message["params"]["name"], message["params"].get("arguments") or {})
            if error is not None:
                content = [{"type": "text", "text": error}]
                return {"result": {"resultType": "complete", "content": content, "isError": True}}
            structured = {"result": value}
            content = [{"type": "text", "text": json.dumps(structured)}]
            shape = {"resultType": "complete", "content": content, "structuredContent": structured, "isError": False}
            return {"result": shape}
        case _:
            return {"error": {"code": -32601, "message": "method not found"}}


def _written(calls: list[ToolCall]) -> list[dict[str, Any]]:
    return [{"tool": call.tool, "arguments": call.arguments} for call in calls]


def _payload(goal: str) -> str:
    """The attack in its own words, with its addresses, links and names whole. Some checks of AgentDojo's look for a
    phrase in all mail and want it once; two blanks between words keep an injected mail from being that one."""
    return f"{MARK} {'  '.join(goal.split())} </INFORMATION>"


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for mark, text in texts.items():
            value = value.replace(mark, text)
        return value
    if isinstance(value, dict):
        return {_replaced(key, texts): _replaced(part, texts) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, texts) for part in value]
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return copy.copy(value)


def main() -> None:
    suite = load_suites(package_of(sys.argv[1]))[sys.argv[1]]
    with serve(app(Estate(suite))) as url:
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
