"""Text of others as every surface shows it: unsafe characters as visible escapes, hosts as DNS is asked for them.

Which characters are unsafe says `contracts.visible_text`, for the agent too.
"""

from __future__ import annotations

from itertools import accumulate

from sentinel_rag.contracts.visible_text import shown_characters, visible
from sentinel_rag.surfaces.rendering.links import hosts_spelled_anew, with_ascii_hosts


def safe(text: str) -> str:
    """`text` with every unsafe character written as an escape, and hosts of addresses as DNS is asked for them; new
    lines and tabs stay where the caller wants lines."""
    return visible(text) if text.isascii() else with_ascii_hosts(visible(text))


def safe_cell(text: str) -> str:
    """`safe` on one line, for a table cell."""
    return safe(text).replace("\n", " ").replace("\t", " ")


def safe_with_places(text: str, also: str = "") -> tuple[str, list[int]]:
    """`safe(text)`, and where each place of `text` lies in it, the end included; within a host, at its start. The
    characters of `also` are escaped too."""
    characters = shown_characters(text, also)
    places = list(accumulate(map(len, characters), initial=0))
    written = "".join(characters)
    if text.isascii():
        return written, places
    shift = number = 0
    for start, end, put in hosts_spelled_anew(written):
        while places[number] <= start:
            places[number] += shift
            number += 1
        while places[number] < end:
            places[number] = start + shift
            number += 1
        shift += len(put) - (end - start)
    places[number:] = [place + shift for place in places[number:]]
    return with_ascii_hosts(written), places
