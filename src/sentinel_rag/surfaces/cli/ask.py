"""`sentinel ask`: one question, one answer, an exit code that scripts can use."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from sentinel_rag.app.places import SAMPLE_WORKSPACE, workspace_folder
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import SentinelError, UsageError
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress, Written
from sentinel_rag.contracts.ports import MAX_QUESTION_CHARACTERS, ProgressListener
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._zones import AgentClient, attached_zones, user_session
from sentinel_rag.surfaces.rendering.visible import found_alone, safe_cell

SESSION_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")

EXIT_CODES = {
    Outcome.ANSWERED: 0,
    Outcome.CLARIFICATION: 0,
    Outcome.OUT_OF_SCOPE: 0,
    Outcome.NO_DATA: 3,
    Outcome.DENIED: 4,
    Outcome.TOOL_FAILED: 5,
}


def run(
    question: list[str],
    *,
    workspace: str | None,
    as_json: bool,
    details: bool,
    evidence: bool,
    only_found: bool,
    plan: bool,
    session: str | None,
) -> int:
    """Ask and print. The exit code says how the question ended (EXIT_CODES)."""
    if plan:
        from sentinel_rag.surfaces.cli.plan import run_question

        return run_question(checked_question(read_text(question, what="question")), as_json=as_json)
    if only_found and as_json:
        raise UsageError(
            "--only-found is for people: --json tells the state of each sentence.", next_step="Leave one of them out."
        )
    if session is not None and not SESSION_ID.fullmatch(session):
        raise UsageError(f"{session!r} is no session.", next_step="ask --json prints the session_id of an answer.")
    asked = checked_question(read_text(question, what="question"))
    settings = load_settings()
    with ExitStack() as stack:
        with keeping_text(quiet=as_json or only_found) as keep, ExitStack() as drawn:
            show: ProgressListener | None = None

            def progress(told: Progress) -> None:
                nonlocal show
                if show is None and not as_json:  # what draws is imported while the agent works
                    import sentinel_rag.surfaces.cli._render  # noqa: F401

                show = show or drawn.enter_context(waiting(told.text, quiet=as_json, shows_text=not only_found))
                show(told)

            running = RunFolder(settings.home).read()
            if running is None or running.private:
                progress(Progress("Starting..."))
            state, _ = stack.enter_context(attached_zones(settings, workspace))
            client = AgentClient(state, user_session(state, settings), session)
            client.workspace = workspace
            answer = client.ask(asked, keep(progress))
        shown, hidden = found_alone(answer) if only_found else (answer, 0)
        print_result(shown, as_json=as_json, details=details, evidence=evidence, hidden=hidden)
        hint_at_empty_workspace(answer, settings)
        sys.stdout.flush()  # the person reads while private zones are stopped
    return EXIT_CODES[answer.outcome]


def hint_at_empty_workspace(answer: Answer, settings: Settings) -> None:
    """Tell on standard error how to fill a workspace that holds nothing of what was asked about, and that the sample
    estate is still there: the first import, of whatever, has the questions go elsewhere."""
    if answer.coverage and all(coverage["table_rows"] == 0 for coverage in answer.coverage):
        asked = answer.coverage[0]["workspace"]
        sample = asked != SAMPLE_WORKSPACE and workspace_folder(settings.home, SAMPLE_WORKSPACE).exists()
        print(
            f"The workspace {asked!r} has no such rows yet. Fill it: "
            "sentinel workspace import FILE, or sentinel workspace generate"
            f"{'; or ask the sample estate: --workspace sample' if sample else ''}",
            file=sys.stderr,
        )


def print_result(
    answer: Answer, *, as_json: bool, details: bool = False, evidence: bool = False, hidden: int = 0
) -> None:
    """The answer to standard output: for people, or whole as JSON; `hidden` sentences of it were left out."""
    if as_json:
        print(json.dumps(answer.to_dict(), indent=2, ensure_ascii=not _speaks_utf8()))
        return
    from sentinel_rag.surfaces.cli._render import Display, console, print_answer

    print_answer(console(), answer, Display(whole=details or evidence, evidence=evidence, hidden=hidden))


def read_text(words: list[str], *, what: str) -> str:
    """The words of the command line, or standard input when there are none. Raises UsageError for nothing."""
    text = " ".join(words)
    if not words and not sys.stdin.isatty():
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError:
            raise not_utf8(what) from None
    if not text.strip():
        raise UsageError(f"There is no {what}.", next_step="Write it in quotes after the command, or pipe it in.")
    _check_utf8(text, what)
    return text.strip()


def checked_question(text: str) -> str:
    """`text` if an analyst reads it. Raises UsageError for one that is too long or holds bytes that are no text."""
    _check_utf8(text, "question")
    if len(text) > MAX_QUESTION_CHARACTERS:
        raise UsageError(
            f"The question has {len(text)} characters; at most {MAX_QUESTION_CHARACTERS} are read.",
            next_step="Ask about the essential part.",
        )
    return text


def _check_utf8(text: str, what: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):  # bytes that Python smuggles in as surrogates
        raise not_utf8(what)


def not_utf8(what: str) -> UsageError:
    """The error for input that is no text."""
    return UsageError(f"The {what} holds bytes that are not UTF-8 text.", next_step="Save or type it as UTF-8.")


@contextmanager
def keeping_text(*, quiet: bool = False) -> Iterator[Callable[[ProgressListener], ProgressListener]]:
    """Around `waiting`: where the block ends amid an answer (Ctrl-C, an agent that is gone), what was shown of it stays
    on the terminal and is told to be its beginning. A pipe gets whole answers only."""
    written = Written()

    def keep(progress: ProgressListener) -> ProgressListener:
        def listen(told: Progress) -> None:
            written.hear(told)
            progress(told)

        return listen

    try:
        yield keep
    except (KeyboardInterrupt, SentinelError):
        if written.text and not quiet and sys.stdout.isatty():
            from sentinel_rag.surfaces.cli._render import print_begun

            print_begun(written)
        raise


@contextmanager
def waiting(first: str, *, quiet: bool = False, shows_text: bool = True) -> Iterator[ProgressListener]:
    """On standard error what happens, each tool call, the text and the time so far, gone when the block ends; nothing
    where there is no terminal, and one line a step on a terminal that cannot draw over its lines (TERM=dumb)."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from sentinel_rag.surfaces.cli._render import console
    from sentinel_rag.surfaces.cli._status_line import TurnDisplay, quiet_keys

    target = console(stderr=True)
    if target.is_dumb_terminal:
        print(first, file=sys.stderr, flush=True)
        yield _told_once(lambda text: print(safe_cell(text), file=sys.stderr, flush=True))
        return
    from rich.live import Live

    display = TurnDisplay(first, shows_text=shows_text and sys.stdout.isatty())
    with quiet_keys(), Live(display, console=target, refresh_per_second=12.5, transient=True):
        yield display.show


def _told_once(tell: Callable[[str], None]) -> ProgressListener:
    """A listener that tells each status line, but not the same one twice in a row."""
    last = ""

    def listen(progress: Progress) -> None:
        nonlocal last
        if progress.text != last or progress.tool is not None:
            tell(progress.text)
        last = progress.text

    return listen


def _speaks_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
