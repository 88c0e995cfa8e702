"""The commands of a chat, `/name` and words: what each says and does. Questions are `chat`'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.app.run_state import RunState
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.settings import Settings, workspace_name
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._output import print_table, print_words
from sentinel_rag.surfaces.cli._zones import AgentClient, user_session
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.agent.conversations.store import ConversationStore
    from sentinel_rag.surfaces.cli._render import AnswerPages

Method = Callable[["ChatCommands", Sequence[str]], None]


class ChatCommand(NamedTuple):
    """What a command does, and the words that Tab completes behind it, as far as they are always the same."""

    meaning: str
    run: Method
    words: tuple[str, ...] = ()


COMMANDS: dict[str, ChatCommand] = {}
"""In the order of their help."""


def _command(name: str, meaning: str, *words: str) -> Callable[[Method], Method]:
    def register(run: Method) -> Method:
        COMMANDS[name] = ChatCommand(meaning, run, words)
        return run

    return register


HISTORY_LINES = 3
MOST_REASON = 600
"""Characters of why an answer helped or did not, as on the page."""


class ChatCommands:
    """The commands of one chat. `served` are the names of the workspaces of these zones; none where they are not
    known."""

    def __init__(self, client: AgentClient, settings: Settings, state: RunState, served: tuple[str, ...]) -> None:
        self._client = client
        self._state = state
        self._settings = settings
        self.served = served
        self.last_answer: Answer | None = None
        """The answer that `/evidence` is about."""
        self.only_found = False
        """Whether what was not found is hidden."""
        self.asked: dict[int, str] = {}
        """The questions of this conversation by their numbers."""
        self.draft = ""
        """What stands in the next prompt, to be edited."""
        self.pages: AnswerPages | None = None
        """Its lines that were not shown yet."""

    def run(self, text: str) -> None:
        """Carry out one command. A failure is told, and ends nothing."""
        name, *words = text.split()
        command = COMMANDS.get(name)
        if command is None:
            near = _nearest(name)
            print(f"There is no command {name!r}; {f'did you mean {near}? ' if near else ''}/help lists them.")
            return
        try:
            command.run(self, words)
        except SentinelError as error:
            report(error, as_json=False)

    @_command("/help", "this list")
    def _print_help(self, _: Sequence[str]) -> None:
        print_table(("", ""), [(name, each.meaning) for name, each in COMMANDS.items()])
        print_words(
            '\nExamples: "high severity incidents of the last 7 days", "details of [2]", "which accounts are in it?"\n'
            "Ctrl-C stops a question, Ctrl-D leaves, Tab completes; a pasted text waits for Enter."
        )

    @_command("/status", "which parts run, and where")
    def _print_status(self, _: Sequence[str]) -> None:
        from sentinel_rag.surfaces.cli.status import run as print_status

        print_status(as_json=False)

    @_command("/workspace", "the workspaces; with a name: where the questions go from here on")
    def _choose_workspace(self, words: Sequence[str]) -> None:
        if not words:
            chosen = self._client.workspace or (self.served[0] if self.served else "the default one")
            known = (
                f" There are: {', '.join(self.served)}."
                if self.served
                else ' Ask "which workspaces are there?" for their names.'
            )
            print(f"Questions go to {chosen}.{known}")
            return
        name = words[0].lower()
        if self.served and name not in self.served:
            print(f"There is no workspace {words[0]!r}; there are: {', '.join(self.served)}.")
            return
        try:
            self._client.workspace = workspace_name(name)
        except ValueError as error:
            print(f"{error}.")
            return
        print(f"Questions go to {name} from here on.")

    @_command("/tz", "the time zone of days and times; with a name such as Europe/Berlin: from here on")
    def _choose_timezone(self, words: Sequence[str]) -> None:
        if not words:
            print(f"Days and times are those of {self._client.timezone or self._settings.timezone}.")
            return
        try:
            zone = ZoneInfo(words[0])
        except (ZoneInfoNotFoundError, ValueError, OSError):
            print(f"{words[0]!r} is not a time zone. Give an IANA name such as Europe/Berlin or UTC.")
            return
        self._client.timezone = zone.key
        print(f"Days and times are those of {zone.key} from here on.")

    @_command("/verbosity", "short (facts alone), normal, or full (with the evidence of each fact)", *Verbosity)
    def _choose_verbosity(self, words: Sequence[str]) -> None:
        if not words:
            print(f"Answers are {self._client.verbosity or Verbosity.NORMAL}; there are: {', '.join(Verbosity)}.")
            return
        if words[0].lower() not in tuple(Verbosity):
            print(f"There is no verbosity {words[0]!r}; there are: {', '.join(Verbosity)}.")
            return
        self._client.verbosity = Verbosity(words[0].lower())
        print(f"Answers are {self._client.verbosity} from here on.")

    @_command(
        "/refresh", "past incidents up to date in the knowledge base; /refresh all: also what did not change", "all"
    )
    def _refresh(self, words: Sequence[str]) -> None:
        """This process asks the tool server itself: the agent has no part in it."""
        from sentinel_rag.surfaces.cli.knowledge import INTERRUPTED, print_outcomes, told_ingest

        wish = {"who": "refresh in a chat", "reread": [word.lower() for word in words[:1]] == ["all"]}
        try:
            print_outcomes(told_ingest(self._state, wish, quiet=False))
        except KeyboardInterrupt:
            print(INTERRUPTED)

    @_command("/more", "the rest of the last answer, then its details: ids, addresses, sources, calls")
    def _print_more(self, _: Sequence[str]) -> None:
        if self.pages is None:
            print("There is no more of the last answer.")
            return
        from sentinel_rag.surfaces.cli._render import console

        self.pages.print_next(console())

    @_command(
        "/evidence", "sources and facts of the last answer; s1: the source ˢ¹; 3: fact 3; [2]: that line of a table"
    )
    def _print_evidence(self, words: Sequence[str]) -> None:
        from sentinel_rag.surfaces.cli._marked_text import evidence_lines, fact_lines, source_lines

        answer = self.last_answer
        if answer is None:
            print("Nothing was answered yet, so there is no evidence.")
        elif words:
            print("\n".join(evidence_lines(answer, words[0])))
        elif answer.evidence or answer.sentences:
            print("\n".join((*source_lines(answer, whole=True), *fact_lines(answer))))
            print("/evidence s1 tells what source s1 says; 1, what stands behind fact 1; [2], behind that table line.")
        else:
            print("No fact of the last answer comes from a tool.")

    @_command(
        "/found", "only: answers without what was not found or is contradicted; all: the whole of them", "only", "all"
    )
    def _choose_found(self, words: Sequence[str]) -> None:
        wanted = words[0].lower() if words else ""
        if wanted not in ("", "only", "all"):
            print(f"There is no /found {words[0]!r}; there are: only, all.")
            return
        self.only_found = wanted == "only" if wanted else self.only_found
        hides = "hide what was not found or is contradicted, and say how much" if self.only_found else "are shown whole"
        print(f"Answers {hides}{' from here on' if wanted else ''}.")

    @_command("/again", "a question once more, to be edited: the last one, or that number of /history")
    def _again(self, words: Sequence[str]) -> None:
        number = max(self.asked, default=0) if not words else int(words[0]) if words[0].isdecimal() else 0
        if number not in self.asked:
            print("There is no such question in this conversation; /history has their numbers.")
            return
        self.draft = self.asked[number]

    @_command(
        "/thumb", "whether the last answer helped: up, down, with a reason; none takes it back", "up", "down", "none"
    )
    def _think(self, words: Sequence[str]) -> None:
        thumb, reason = words[0].lower() if words else "", " ".join(words[1:])
        if thumb not in ("up", "down", "none"):
            print("Say /thumb up, /thumb down, or /thumb none; a reason may follow.")
        elif len(reason) > MOST_REASON:
            print(f"The reason has {len(reason)} characters; at most {MOST_REASON} are kept.")
        elif not self._keep(lambda store, key: store.think(key, _opinion(thumb, reason))):
            print("There is no answer yet that could be judged, or it is not kept.")
        else:
            print("It is taken back." if thumb == "none" else "It is kept with the answer.")

    @_command("/cost", "what the last answer and this conversation took: tokens, and money where the model has a price")
    def _print_cost(self, _: Sequence[str]) -> None:
        from sentinel_rag.surfaces.cli.usage import print_conversation

        if self._client.session_id is None or self.last_answer is None:
            print("Nothing was answered yet, so nothing was used.")
            return
        print_conversation(self._settings, self._client.session_id, self.last_answer.model)

    @_command(
        "/texts", "texts in alerts that attackers may have left to be obeyed, of 14 days; with a number: of so many"
    )
    def _print_texts(self, words: Sequence[str]) -> None:
        from sentinel_rag.surfaces.cli import texts

        days = int(words[0]) if words and words[0].isdecimal() else 14
        texts.show(user_session(self._state, self._settings), self._client.workspace, days)

    @_command("/approvals", "calls that wait for a person; with an ID: one of them whole")
    def _print_approvals(self, words: Sequence[str]) -> None:
        from sentinel_rag.surfaces.cli import approvals

        if words:
            approvals.show(words[0], last=False, as_json=False)
            print(f"\nDecide in another terminal: sentinel approvals approve {safe_cell(words[0])} (or deny)")
        else:
            approvals.list_all("pending", as_json=False)

    @_command("/rename", "another title for this conversation")
    def _rename(self, words: Sequence[str]) -> None:
        title = " ".join(words)
        if not title:
            print("Say which title: /rename Night shift, phishing wave")
        elif not self._keep(lambda store, key: store.rename(key, title)):
            print("Nothing of this conversation is kept yet.")
        else:
            print("It has that title; sentinel chat --list shows it.")

    @_command("/history", "what was asked and answered in this conversation")
    def _print_history(self, _: Sequence[str]) -> None:
        session_id = self._client.session_id
        if session_id is None:
            print("Nothing was asked in this conversation yet.")
            return
        from sentinel_rag.app.conversations import kept_conversations

        with closing(kept_conversations(self._settings)) as store:
            stored = store.load(session_id)
        for turn in () if stored is None else stored.turns:
            if stored is not None and turn.number == stored.cleared_turns + 1 > 1:
                print("  -- cleared --")
            print(f"{turn.number}. {turn.asked_at[:16].replace('T', ' ')} UTC  {safe_cell(turn.question)}")
            lines = safe(str(self._client.with_values(turn.answer, session_id))).strip().splitlines()
            for line in lines[:HISTORY_LINES] or [f"({turn.outcome})"]:
                print(f"     {line}")
            if len(lines) > HISTORY_LINES:
                print(f"     ... {len(lines) - HISTORY_LINES} more lines")
        if stored is None or not stored.turns:
            print("Nothing of this conversation is kept.")

    @_command(
        "/export",
        "a hand-over report of this conversation: /export [md|html|csv|results] [PATH] [--force] [--reveal]",
        "md",
        "html",
        "csv",
        "--force",
        "--reveal",
    )
    def _export(self, words: Sequence[str]) -> None:
        if self._client.session_id is None:
            print("Nothing was asked in this conversation yet.")
            return
        from sentinel_rag.surfaces.cli.export import export, wish_of_words

        export(self._settings, self._client.session_id, wish_of_words(words))

    @_command("/clear", "start over with what is known; /clear all: in a new session, with nothing", "all")
    def _clear(self, words: Sequence[str]) -> None:
        if words and words[0].lower() == "all":
            self._client.forget()
            self.asked.clear()
            print("The conversation starts over in a new session; your preferences stay.")
            return
        from sentinel_rag.surfaces.reports.building import both

        carried = self._client.clear()
        print("The conversation starts over; your preferences stay.")
        if not carried:
            return
        print("These facts are carried on, each as of its time; a question about a state asks again:")
        zone = self._client.timezone or self._settings.timezone
        for fact in carried:
            told = ", ".join(part.strip() for part in fact.text.strip(" |").split(" | "))
            print(f"  - {safe_cell(told)} ({safe_cell(fact.tool)}, as of {safe_cell(both(fact.at, str(zone)))})")

    @_command("/quit", "leave (so does Ctrl-D)")
    def _leave(self, _: Sequence[str]) -> None:
        """The chat sees to it itself."""

    def _keep(self, change: Callable[[ConversationStore, str], bool]) -> bool:
        """Whether the change was made of this conversation as it is kept."""
        from sentinel_rag.app.conversations import kept_conversations

        session_id = self._client.session_id
        if session_id is None:
            return False
        with closing(kept_conversations(self._settings)) as store:
            return change(store, session_id)


def _opinion(thumb: str, reason: str) -> dict[str, Any] | None:
    return None if thumb == "none" else {"good": thumb == "up", "reason": reason}


def _nearest(name: str) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name.lower(), COMMANDS, n=1)), "")
