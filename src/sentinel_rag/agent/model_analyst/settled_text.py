"""Where a text that is still being written can be cut, so that no later word changes what stands before the cut.

Sentences of plain paragraphs are whole once the next one has begun; lists, tables and code blocks once a blank line
ends them, since their parts speak for each other. Careful: a place that may still change is no cut. Reads layout only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.grounding.lookalikes import plain
from sentinel_rag.agent.grounding.markdown_text import ends_a_sentence, is_plain_prose, opened_fence, title_of_section
from sentinel_rag.agent.model_analyst.answer_text import code_in, shown

_MAY_END = re.compile(r"[.!?](?=[ \t]+[*_]{0,2}[A-Z0-9]|[ \t]*$)")
_CALLS = re.compile(r"\s*(?:<|\{|```|\[(?!\d))")
_MAY_SETTLE = re.compile(r"[\n\r]|[.!?][ \t]+[*_]{0,2}[A-Z0-9]")


def may_settle(text: str, more: str) -> bool:
    """True if `more` behind `text` can make a new cut; cheap, for each word of a stream."""
    return _MAY_SETTLE.search(text[-8:] + more) is not None


def settled_ends(text: str) -> list[int]:
    """The places at which `text`, the beginning of a model's text, can be cut, in order. None for a text that may turn
    out to be calls of tools."""
    if _CALLS.match(text):
        return []
    code = code_in(text)
    return [end for end in _ends(text) if not any(start < end < stop for start, stop in code)]


def _ends(text: str) -> Iterator[int]:
    start = 0
    last = 0
    """The end of the last line that is not blank."""
    held = False
    begun = False
    fence = ""
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
        whole = len(content) < len(line) and not (line.endswith("\r") and start + len(line) == len(text))
        body = plain(content)
        if not whole:
            if not held and not fence and is_plain_prose(body):
                yield from _sentences(content, start, whole=False)
            return
        if fence:
            fence = "" if body.strip().startswith(fence) else fence
        elif opened := opened_fence(body):
            fence, held = opened, True
        elif not body.strip():
            if begun:
                yield last
            begun = held = False
        elif not held and title_of_section(body):
            yield start + len(content)
            start += len(line)
            begun = False
            continue
        elif not held and is_plain_prose(body):
            yield from _sentences(content, start, whole=True)
        else:
            held = True
        if body.strip():
            begun, last = True, start + len(content)
        start += len(line)


def _sentences(line: str, start: int, *, whole: bool) -> Iterator[int]:
    """The ends of the sentences of one line, as they stay whatever follows."""
    for found in _MAY_END.finditer(line):
        at_end = not line[found.end() :].strip()
        if at_end and not whole:
            return
        sentence = line[: found.end()]
        if _balanced(sentence) and ends_a_sentence(plain(shown(sentence))):
            yield start + found.end()


def _balanced(text: str) -> bool:
    """True if nothing is open that a later character could close."""
    text = plain(text)
    for left, right in ("()", "[]", "<>", "“”", "⟦⟧"):
        depth = 0
        for character in text:
            depth += (character == left) - (character == right)
            if depth < 0:
                return False
        if depth:
            return False
    return text.count('"') % 2 == 0 and text.count("`") % 2 == 0
