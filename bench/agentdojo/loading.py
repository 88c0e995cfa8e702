"""The pinned AgentDojo package: its suites of version 1.2.2, imported without the model clients that it does not need.

Two modules are kept from running: the package `agentdojo.agent_pipeline`, which would import every model client, is
entered without its `__init__`, and of the module for Google's models only the one constant is there that the tool
tool server reads. No task, tool, environment or check is touched.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import types
from importlib import metadata
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / ".venv" / "agentdojo"
"""Where `make agentdojo` installs it, apart from everything else."""

VERSION = "v1.2.2"
SUITES = ("banking", "slack", "travel", "workspace")


class NotInstalled(Exception):
    """The package is not there; the message says what to do."""


def load_suites(folder: Path = FOLDER) -> dict[str, Any]:
    """The four suites by name. Raises NotInstalled."""
    if not (folder / "agentdojo").is_dir():
        raise NotInstalled("AgentDojo is not installed. Run: make agentdojo")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        _enter_pipeline(folder / "agentdojo" / "agent_pipeline")
    module = importlib.import_module("agentdojo.task_suite.load_suites")
    suites: dict[str, Any] = module.get_suites(VERSION)
    return {name: suites[name] for name in SUITES}


def fixes_of_v1_1_2() -> None:
    """Import the corrected tasks of version 1.1.2, which the package ships and never imports: they take the places of
    those that `load_suites` gives."""
    importlib.import_module("agentdojo.default_suites.v1_1_2")


def versions(folder: Path = FOLDER) -> dict[str, str]:
    """The installed packages of the folder."""
    return {found.name: found.version for found in metadata.distributions(path=[str(folder)])}


def _enter_pipeline(package: Path) -> None:
    pipeline = types.ModuleType("agentdojo.agent_pipeline")
    pipeline.__path__ = [str(package)]
    sys.modules[pipeline.__name__] = pipeline
    google = types.ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    name = "EMPTY_FUNCTION_NAME"
    setattr(google, name, _constant(package / "llms" / "google_llm.py", name))
    sys.modules[google.__name__] = google


def _constant(source: Path, name: str) -> Any:
    """The literal that a module assigns to `name`, without running it."""
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise NotInstalled(f"The installed AgentDojo has no {name}; install the pinned version with: make agentdojo")
