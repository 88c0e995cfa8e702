"""Law: a filter of the search service lets through exactly what it names, whatever the names are made of.

The filter is written by the store and read by the parser of the double, which shares no line with it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.azure_search.definitions import Field
from tests.support.azure_search.odata import parsed

from sentinel_rag_azure_search.odata import any_one_of, one_of

pytestmark = pytest.mark.requirement("KNOW-4")
FIELDS = {
    name: Field(name, kind, False, False, True, False, True, 0, ())
    for name, kind in (("name", "Edm.String"), ("names", "Collection(Edm.String)"))
}
PIECES = (*"ab'|,;~^ \\()/\"\n*%é", "' or ", "any(", "null")
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
NAMES = st.frozensets(HOSTILE, max_size=6)


@given(wanted=NAMES, held=HOSTILE)
def test_one_of_is_equality(wanted: frozenset[str], held: str) -> None:
    for value in (held, *wanted):
        assert parsed(one_of("name", wanted), FIELDS)({"name": value}) == (value in wanted)


@given(wanted=NAMES, held=NAMES)
def test_any_one_of_is_a_common_member(wanted: frozenset[str], held: frozenset[str]) -> None:
    assert parsed(any_one_of("names", wanted), FIELDS)({"names": sorted(held)}) == bool(wanted & held)
