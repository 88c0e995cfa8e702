"""Laws: the search operators of KQL agree with Kusto's definition of a term, written out in Python, on any texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

TEXTS = st.text(alphabet="abAB1 ._%\\-'é\n", max_size=8)
NEEDLES = st.text(alphabet="abA1 ._%\\-'", max_size=4)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace.open(tmp_path_factory.mktemp("search") / "workspace")
    yield workspace
    workspace.close()


def in_term(text: str, needle: str, *, begins: bool, ends: bool) -> bool:
    """Whether `needle` stands in `text` where a term begins or ends, as far as its own edges are of a term."""
    start = text.find(needle)
    while start >= 0:
        before = text[start - 1 : start] if start else ""
        after = text[start + len(needle) : start + len(needle) + 1]
        left = not (begins and needle[:1].isalnum()) or not before.isalnum()
        right = not (ends and needle[-1:].isalnum()) or not after.isalnum()
        if left and right:
            return True
        start = text.find(needle, start + 1)
    return False


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


@settings(
    max_examples=examples(60, 20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), needle=NEEDLES, others=st.lists(NEEDLES, min_size=1, max_size=5))
def test_search_operators_follow_the_definition_of_a_term(
    searched: Workspace, texts: list[str], needle: str, others: list[str]
) -> None:
    low = [text.lower() for text in texts]
    small = needle.lower()
    listed = ", ".join(map(quoted, others))
    expected = {
        f"s has {quoted(needle)}": [in_term(text, small, begins=True, ends=True) for text in low],
        f"s !has {quoted(needle)}": [not in_term(text, small, begins=True, ends=True) for text in low],
        f"s has_cs {quoted(needle)}": [in_term(text, needle, begins=True, ends=True) for text in texts],
        f"s hasprefix {quoted(needle)}": [in_term(text, small, begins=True, ends=False) for text in low],
        f"s hassuffix_cs {quoted(needle)}": [in_term(text, needle, begins=False, ends=True) for text in texts],
        f"s contains {quoted(needle)}": [small in text for text in low],
        f"s !contains_cs {quoted(needle)}": [needle not in text for text in texts],
        f"s startswith {quoted(needle)}": [text.startswith(small) for text in low],
        f"s endswith {quoted(needle)}": [text.endswith(small) for text in low],
        f"s =~ {quoted(needle)}": [text == small for text in low],
        f"s has_any ({listed})": [any(in_term(t, o.lower(), begins=True, ends=True) for o in others) for t in low],
        f"s has_all ({listed})": [all(in_term(t, o.lower(), begins=True, ends=True) for o in others) for t in low],
        f"s in~ ({listed})": [text in [other.lower() for other in others] for text in low],
    }
    columns = ", ".join(f"c{place} = {expression}" for place, expression in enumerate(expected))
    rows = ", ".join(f"{place}, {quoted(text)}" for place, text in enumerate(texts))
    query = f"datatable(i:long, s:string)[{rows}] | sort by i asc | project {columns}"
    answer = searched.query(query).rows
    found = {expression: [row[place] for row in answer] for place, expression in enumerate(expected)}
    assert found == expected
