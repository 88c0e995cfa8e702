"""The table of commands: each names a function that is there and takes exactly the options that the command has."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.settings.deployment import KNOWLEDGE_STORES
from sentinel_rag.surfaces.cli._commands import COMMANDS, Command, CommandOption, Either

pytestmark = pytest.mark.requirement("SURF-1")


def options(command: Command) -> dict[str, CommandOption]:
    """By the name under which argparse keeps the value."""
    each = [one for some in command.options for one in (some.options if isinstance(some, Either) else (some,))]
    return {one.settings.get("dest") or one.name.lstrip("-").replace("-", "_"): one for one in each}


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.run], ids=lambda each: each.path)
def test_a_command_is_carried_out_by_a_function_that_takes_its_options(command: Command) -> None:
    module, _, function = command.run.partition(".")
    run = getattr(import_module(f"sentinel_rag.surfaces.cli.{module}"), function)
    given = {**dict.fromkeys(options(command)), **command.fixed}
    taken = inspect.signature(run).bind(**given).arguments
    assert taken.keys() >= given.keys() or command.path == "workspace faults"


def test_choices_are_those_of_what_carries_it_out() -> None:
    of = {command.path: options(command) for command in COMMANDS}
    assert of["knowledge search"]["severity"].settings["choices"] == tuple(SEVERITIES)
    assert ", ".join(KNOWLEDGE_STORES) in of["knowledge migrate"]["to"].settings["help"]
