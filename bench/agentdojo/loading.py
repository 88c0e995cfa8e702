"""The pinned AgentDojo package, and AgentDyn, which is a copy of it with suites of its own: their suites of version
1.2.2, imported without the model clients that they do not need. A process can import one of the two.

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
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

VENV = Path(__file__).parents[2] / ".venv"
VERSION = "v1.2.2"


@dataclass(frozen=True, slots=True)
class Package:
    """A package of suites, and the target of `make` that installs it, apart from everything else."""

    name: str
    target: str
    suites: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return VENV / self.target


AGENTDOJO = Package("AgentDojo", "agentdojo", ("banking", "slack", "travel", "workspace"))
AGENTDYN = Package("AgentDyn", "agentdyn", ("github", "shopping", "dailylife"))


class NotInstalled(Exception):
    """The package is not there; the message says what to do."""


def package_of(suite: str) -> Package:
    return AGENTDYN if suite in AGENTDYN.suites else AGENTDOJO


def load_suites(package: Package = AGENTDOJO) -> dict[str, Any]:
    """The suites of a package by name. Raises NotInstalled."""
    if not (package.folder / "agentdojo").is_dir():
        raise NotInstalled(f"{package.name} is not installed. Run: make {package.target}")
    if str(package.folder) not in sys.path:
        # What AgentDyn needs beside itself is what AgentDojo needs.
        sys.path += dict.fromkeys((str(package.folder), str(AGENTDOJO.folder)))
        _enter_pipeline(package.folder / "agentdojo" / "agent_pipeline")
    module = importlib.import_module("agentdojo.task_suite.load_suites")
    suites: dict[str, Any] = module.get_suites(VERSION)
    return {name: suites[name] for name in package.suites}


def fixes_of_v1_1_2() -> None:
    """Import the corrected tasks of version 1.1.2, which the package ships and never imports: they take the places of
    those that `load_suites` gives."""
    importlib.import_module("agentdojo.default_suites.v1_1_2")


def versions(package: Package = AGENTDOJO) -> dict[str, str]:
    """The installed packages, and the commit of what comes from a repository."""
    found = {found.name: found.version for found in metadata.distributions(path=[str(AGENTDOJO.folder)])}
    if package is AGENTDYN:
        found["agentdojo"] = f"AgentDyn at {(package.folder / 'installed').read_text().strip()}"
    return found


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
