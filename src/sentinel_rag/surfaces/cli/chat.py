"""`sentinel chat`: a conversation in the terminal, or one question a line from a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from sentinel_rag.assembly.processes import RunningZones
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import load_settings, workspace_name
from sentinel_rag.surfaces.cli._agent_client import AgentClient
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._user_session import user_session
from sentinel_rag.surfaces.cli._zones import attached_zones
from sentinel_rag.surfaces.cli.ask import checked_question, not_utf8, print_result, waiting

COMMANDS = {
    "/help": "this list",
    "/status": "which parts run, and where",
    "/workspace": "the workspaces; with a name: where the questions go from here on",
    "/clear": "start over: what was said before is forgotten",
    "/quit": "leave (so does Ctrl-D)",
}


def run(*, workspace: str | None) -> int:
    """Read questions until /quit or the end of input. A question that fails does not end the conversation."""
    settings = load_settings()
    with ExitStack() as stack:
        with waiting("Starting..."):
            state, zones = stack.enter_context(attached_zones(settings, workspace))
        interactive = sys.stdin.isatty() and sys.stdout.isatty()
        if interactive:
            print("Ask about incidents, alerts, entities or logs. /help lists the commands.")
        client = AgentClient(state, user_session(state, settings))
        client.workspace = workspace
        served = () if settings.gateway_url is not None else state.workspaces
        for line in _prompted(settings.home) if interactive else _piped():
            text = line.strip()
            if not text:
                continue
            if text in ("/quit", "/exit"):
                break
            if text.startswith("/"):
                _command(text, client, served)
            else:
                _ask(text, client, zones)
    return 0


def _ask(question: str, client: AgentClient, zones: RunningZones | None) -> None:
    try:
        with waiting("Thinking...") as progress:
            answer = client.ask(checked_question(question), progress)
    except KeyboardInterrupt:
        if not sys.stdin.isatty():
            raise
        print("Stopped; the conversation goes on. Ctrl-D or /quit leaves it.")
        return
    except UsageError as error:
        report(error, as_json=False)
        return
    except UnavailableError as error:
        if zones is not None:
            zones.check()  # a dead zone ends the conversation, with its own reason
        report(error, as_json=False)
        return
    print_result(answer, as_json=False, evidence=False)
    print(flush=True)


def _command(text: str, client: AgentClient, served: tuple[str, ...]) -> None:
    actions: dict[str, Callable[[], None]] = {
        "/help": _print_help,
        "/status": _print_status,
        "/workspace": lambda: _choose_workspace(text.split()[1:], client, served),
        "/clear": lambda: _clear(client),
    }
    action = actions.get(text.split()[0])
    if action is None:
        print(f"There is no command {text.split()[0]!r}; /help lists them.")
    else:
        action()


def _print_help() -> None:
    for name, meaning in COMMANDS.items():
        print(f"  {name:10} {meaning}")
    print('\nExamples:  "high severity incidents of the last 7 days", "details of [2]", "which accounts are in it?"')


def _print_status() -> None:
    from sentinel_rag.surfaces.cli.status import run as print_status

    print_status(as_json=False)


def _choose_workspace(words: list[str], client: AgentClient, served: tuple[str, ...]) -> None:
    """`served` are the names of these zones; an Interceptor that runs elsewhere tells its own when it is asked."""
    if not words:
        chosen = client.workspace or (served[0] if served else "the default one")
        known = f" There are: {', '.join(served)}." if served else ' Ask "which workspaces are there?" for their names.'
        print(f"Questions go to {chosen}.{known}")
        return
    name = words[0].lower()
    if served and name not in served:
        print(f"There is no workspace {words[0]!r}; there are: {', '.join(served)}.")
        return
    try:
        client.workspace = workspace_name(name)
    except ValueError as error:
        print(f"{error}.")
        return
    print(f"Questions go to {name} from here on.")


def _clear(client: AgentClient) -> None:
    client.clear()
    print("The conversation starts over.")


def _piped() -> Iterator[str]:
    try:
        yield from sys.stdin
    except UnicodeDecodeError:
        raise not_utf8("input") from None


def _prompted(home: Path) -> Iterator[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory

    history = home / "chat_history"
    history.touch(mode=0o600)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)), completer=WordCompleter(list(COMMANDS), sentence=True)
    )
    while True:
        try:
            yield session.prompt("> ")
        except KeyboardInterrupt:
            continue  # Ctrl-C drops the line being typed, as in a shell
        except EOFError:
            return
