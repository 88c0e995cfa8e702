"""`sentinel chat`: a conversation in the terminal, or one question a line from a pipe."""

from __future__ import annotations

import sys
from argparse import ArgumentError
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli import kept_conversations
from sentinel_rag.surfaces.cli._chat_commands import COMMANDS as COMMANDS
from sentinel_rag.surfaces.cli._chat_commands import ChatCommands
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._output import print_words
from sentinel_rag.surfaces.cli._zones import AgentClient, UserSession, attached_zones, user_session
from sentinel_rag.surfaces.cli.approvals import GO_ON, confirmed
from sentinel_rag.surfaces.cli.ask import checked_question, keeping_text, not_utf8, waiting
from sentinel_rag.surfaces.rendering.visible import found_alone, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.agent.conversations.store import StoredConversation
    from sentinel_rag.surfaces.cli._render import AnswerPages

MEMORY_NOTICE = "memory:"


def run(
    *,
    workspace: str | None,
    resume: str | None,
    listed: str | None,
    rename: Sequence[str] | None,
    delete: str | None,
    only_found: bool,
    as_json: bool,
) -> int:
    """Hold a conversation, or look after those that are kept. `resume` is the beginning of the id of one to go on with,
    empty for the last one."""
    if as_json and listed is None:
        raise ArgumentError(None, "--json goes with --list")
    if listed is not None:
        return kept_conversations.show(listed, as_json=as_json)
    if rename is not None:
        return kept_conversations.rename(*rename)
    if delete is not None:
        return kept_conversations.delete(delete)
    return _converse(workspace, resume, only_found=only_found)


def _converse(workspace: str | None, resume: str | None, *, only_found: bool) -> int:
    """Read questions until /quit or the end of input. A question that fails does not end the conversation."""
    settings = load_settings()
    stored, asked = None, dict[int, str]()
    if resume is not None:
        stored = kept_conversations.conversation_to_resume(settings, resume)
    with ExitStack() as stack:
        with waiting("Starting..."):
            state, zones = stack.enter_context(attached_zones(settings, workspace, shared=True))
        interactive = sys.stdin.isatty() and sys.stdout.isatty()
        user = user_session(state, settings)
        client = AgentClient(state, user)
        served = () if settings.gateway_url is not None else state.workspaces
        if stored is not None:
            preferences = stored.preferences
            known = not served or preferences.workspace is None or preferences.workspace in served
            client.workspace = preferences.workspace if known else None
            if not known:
                print(f"Its workspace {preferences.workspace} is not served now, so questions go to {served[0]}.")
            asked = {turn.number: turn.question for turn in stored.turns}
            client.timezone, client.verbosity = preferences.timezone, preferences.verbosity
            _go_on(client, user, stored.conversation_id)
            _tell_what_was_asked(stored)
        elif interactive:
            _welcome(workspace or (served[0] if served else None))
        client.workspace = workspace or client.workspace
        commands = ChatCommands(client, settings, state, served)
        commands.asked |= asked if client.session_id is not None else {}
        commands.only_found = only_found
        check = _still_there(settings, state) if zones is None else zones.check
        for line in _prompted(settings, commands) if interactive else _piped():
            text = line.strip()
            if not text:
                continue
            if text in ("/quit", "/exit"):
                break
            try:
                if text.startswith("/") and "\n" not in text:  # of a pasted text the first word is no command
                    commands.run(text)
                    if interactive or not commands.draft:
                        continue
                    text, commands.draft = commands.draft, ""  # nobody edits it in a pipe
                if _answered(text, client, commands, check, interactive=interactive):
                    # A call that this person confirms themselves is shown at once, and made once they have.
                    while interactive and confirmed(user, client.session_id):
                        _answered(GO_ON, client, commands, check, interactive=True)
            except KeyboardInterrupt:
                if not interactive:
                    raise
                print("Stopped; the conversation goes on. Ctrl-D or /quit leaves it.")
    return 0


def _answered(
    question: str, client: AgentClient, commands: ChatCommands, check: Callable[[], None], *, interactive: bool
) -> bool:
    """Ask and print; False where there is no answer, which was told."""
    commands.asked[max(commands.asked, default=0) + 1] = question
    answer = _ask(question, client, check, shows_text=not commands.only_found)
    if answer is None:
        return False
    shown, hidden = found_alone(answer) if commands.only_found else (answer, 0)
    commands.last_answer = shown
    commands.pages = _print(shown, client.verbosity, paged=interactive, hidden=hidden)
    return True


def _welcome(workspace: str | None) -> None:
    where = "" if workspace is None else f" Questions go to the workspace {workspace}."
    print_words(f"Ask about incidents, alerts, entities or logs. /help lists the commands.{where}")


def _still_there(settings: Settings, state: RunState) -> Callable[[], None]:
    """What raises UnavailableError once the zones of another command, which this chat asks, are gone for good."""

    def check() -> None:
        if settings.gateway_url is None and RunFolder(settings.home).read() != state:
            raise UnavailableError(
                "The zones that this conversation used have ended with the command that ran them.",
                next_step="Run: sentinel chat --resume (it goes on here, with zones of its own)",
            )

    return check


def _tell_what_was_asked(stored: StoredConversation) -> None:
    if stored.turns:
        number = stored.turns[-1].number
        asked = "1 question was" if number == 1 else f"{number} questions were"
        print(f"{asked} asked before; the last one: {safe_cell(stored.turns[-1].question)}")


def _go_on(client: AgentClient, user: UserSession | None, session_id: str) -> None:
    """Take up a kept conversation's session, if the gateway still has it. Without a person's key the agent finds
    out with the first question."""
    if user is None or user.is_open(session_id):
        client.session_id = session_id
        return
    print(
        "The gateway no longer knows the session of this conversation, so what was read in it is not carried on: "
        "a new session starts. Your preferences stay, and sentinel chat --list still shows the old one."
    )


def _ask(question: str, client: AgentClient, check: Callable[[], None], *, shows_text: bool) -> Answer | None:
    """The answer; None where there is none, which was told. `check` raises if no later question can be answered
    either: dead zones end the conversation, with the reason."""
    try:
        with keeping_text(quiet=not shows_text) as keep, waiting("Thinking...", shows_text=shows_text) as progress:
            return client.ask(checked_question(question), keep(progress))
    except UsageError as error:
        report(error, as_json=False)
        return None
    except UnavailableError as error:
        check()
        report(error, as_json=False)
        return None


def _print(answer: Answer, verbosity: Verbosity | None, *, paged: bool, hidden: int) -> AnswerPages | None:
    """Print the answer: what the window holds of it, or in a pipe the whole."""
    shown, full = _shown(answer, verbosity), verbosity is Verbosity.FULL
    from sentinel_rag.surfaces.cli._render import Display, console, print_answer

    source = verbosity is not Verbosity.SHORT
    how = Display(whole=full, evidence=full, hidden=hidden, source=source, more="/more" if paged else "/evidence")
    pages = None
    if paged:
        from sentinel_rag.surfaces.cli._render import AnswerPages

        pages = AnswerPages.begun(console(), shown, how)
    else:
        print_answer(console(), shown, how)
    print(flush=True)
    return pages


def _shown(answer: Answer, verbosity: Verbosity | None) -> Answer:
    """The answer as much as the person wants of it; that it is not kept is told in every case."""
    if verbosity is not Verbosity.SHORT:
        return answer
    notices = tuple(line for line in answer.footnote if line.startswith(MEMORY_NOTICE))
    return replace(answer, footnote=notices, suggestions=())


def _piped() -> Iterator[str]:
    try:
        yield from sys.stdin
    except UnicodeDecodeError:
        raise not_utf8("input") from None


def _prompted(settings: Settings, commands: ChatCommands) -> Iterator[str]:
    from sentinel_rag.surfaces.cli._prompt import ChatCompleter, prompted_lines

    completer = ChatCompleter(settings, lambda: commands.last_answer, commands.served)

    def draft() -> str:
        begun, commands.draft = commands.draft, ""
        return begun

    return prompted_lines(settings.home / "chat_history", completer, draft)
