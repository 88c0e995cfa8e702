"""docs/cookbook/: every question of every page is asked of the running product; what it says is what stands there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bench.reproduction import kept_turns, run_again
from page_boxes import matches
from tests.support.fork_server import forking
from tools.documentation.cookbook.dialogue import Estate, Question, Typed, pages, shown, steps, with_outputs
from tools.documentation.cookbook.shortening import shortened, shortened_output

from cited_sentences import doubts
from sentinel_rag.agent.conversations.store import ConversationStore
from sentinel_rag.contracts.evidence import Sentence
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.workspace.workspace import Workspace

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = pages(REPOSITORY)
GUIDE = REPOSITORY / "docs" / "guides" / "ingest-playbooks.md"
"""A guide that needs a running product too, and is followed when the conversations are over."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cookbook")


@pytest.fixture(scope="module")
def printed(home: Path) -> dict[Path, list[str]]:
    """What each page's steps print; in the order of the pages, for one of them closes an incident."""
    with forking(), Estate.running(home) as estate:
        return {page: estate.run(steps(page.read_text())) for page in (*PAGES, GUIDE)}


@pytest.mark.slow
@pytest.mark.requirement("SURF-1")
@pytest.mark.parametrize("page", [*PAGES, GUIDE], ids=lambda page: page.stem)
def test_the_answers_are_those_of_the_page(printed: dict[Path, list[str]], page: Path) -> None:
    text = page.read_text()
    for step, output, told in zip(steps(text), printed[page], shown(text), strict=True):
        assert matches(output, told), f"{step}\n{output}\nRun: make cookbook"


@pytest.mark.slow
@pytest.mark.requirement("GRND-4")
def test_each_sentence_of_each_answer_is_found_in_what_it_cites(printed: dict[Path, list[str]], home: Path) -> None:
    file = home / "home" / "agent" / "conversations.db"
    with closing(ConversationStore(file, clock=utc_now, keep_days=1)) as store:
        kept = [
            store.load(each.conversation_id, turns=1_000, with_answers=True, with_results=True) for each in store.list()
        ]
    conversations = [each for each in kept if each is not None]
    assert sum(len(each.turns) for each in conversations) > len(PAGES)
    for conversation in conversations:
        results: list[Mapping[str, Any]] = []
        said = [turn.question for turn in conversation.turns]
        for turn in conversation.turns:
            results += turn.results
            assert turn.shown is not None
            sentences = [Sentence.from_dict(each) for each in turn.shown["sentences"]]
            assert not doubts(sentences, results, timezone="UTC", said=said), turn.question


@pytest.mark.slow
@pytest.mark.requirement("GRND-4")
def test_the_query_that_is_shown_gives_the_number_that_is_shown(printed: dict[Path, list[str]], home: Path) -> None:
    workspace = Workspace.open(home / "home" / "workspaces" / "cookbook")
    try:
        made = run_again(kept_turns(home / "home"), workspace)
    finally:
        workspace.close()
    assert made.calls["found again"] > 40
    assert not made.differences


def test_there_are_twelve_and_the_index_names_them_in_order() -> None:
    assert len(PAGES) == 12
    index = (REPOSITORY / "docs" / "cookbook" / "README.md").read_text()
    titles = [page.read_text().split("\n", 1)[0].removeprefix("# ") for page in PAGES]
    assert [line for line in index.splitlines() if line[:1].isdigit()] == [
        f"{number}. [{title}]({page.name})" for number, (title, page) in enumerate(zip(titles, PAGES, strict=True), 1)
    ]


PAGE = (
    "a\n\n```text\n> who?\nme\n```\n\n```sh\nls\n```\n\n```text\nx\n```\n\n```text\n> why?\n```\n\n```yaml\nb: 1\n```\n"
)


def test_a_page_is_read_as_questions_and_what_is_typed() -> None:
    assert steps(PAGE) == [Question("who?"), Typed("ls\n"), Question("why?")]
    assert shown(PAGE) == ["me\n", "x\n", ""]


def test_new_answers_stand_where_the_old_ones_did() -> None:
    new = with_outputs(PAGE, ["you\n", "y\n", "because\n"])
    assert (steps(new), shown(new)) == (steps(PAGE), ["you\n", "y\n", "because\n"])
    assert new.replace("you", "me").replace("\ny\n", "\nx\n").replace("because\n", "") == PAGE


ANSWER = """\
3 of 4 hold.
Page:
`https://portal.example/a`

     ┃ A
━━━━━╇━━━
 [1] │ 1
     more of it

You could ask:
  What else?

Note: Microsoft's parser is not installed, so a stricter one checked the query.
query_alerts(entity="x") · 1 of 20 rows · window all retained data · newest row 2026-11-20, 8 days old ·
workspace cookbook · audit 01a223c2-e998-782a-a070-40297c7f31ea
"""


def test_a_shortened_answer_keeps_what_it_says_and_matches_what_was_printed() -> None:
    short = shortened(ANSWER)
    assert short == (
        "3 of 4 hold.\n...\n     ┃ A\n━━━━━╇━━━\n [1] │ 1\n     more of it\n\n...\n"
        'query_alerts(entity="x") · 1 of 20 rows...\n...\n'
    )
    assert matches(ANSWER, short)
    assert not matches(ANSWER.replace("3 of 4", "2 of 4"), short)
    assert not matches(ANSWER.replace("1 of 20", "1 of 21"), short)


def test_of_what_a_shell_prints_the_times_and_hashes_are_left_out() -> None:
    printed = f"12 records (1 to 12) hold. Head: {'a1' * 32}\nat 2026-11-28 20:46:44 UTC\n- **Exported by**: dana\n"
    short = shortened_output(printed)
    assert short == "... records (1 to ...) hold. Head: ...\nat ...\n- **Exported by**: ...\n"
    assert matches(printed, short)
