"""What a page may cost its parser: depth and attributes are counted first, since both take it quadratic time.

A scan in the spirit of the HTML standard's tokenizer that only moves forward. It knows comments, quoted values and
elements whose content is no markup, so that neither hides a tag from it, nor shows it one that is none.
"""

from __future__ import annotations

import re
from collections import Counter

from sentinel_rag.knowledge.documents.faults import FileFault

DEEPEST = 512
"""Elements inside one another; browsers stop there too."""
MOST_ATTRIBUTES = 1_000
"""Of one tag."""

_MARKUP = re.compile(r"<(?:!--|[!?]|/?[a-zA-Z])")
_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*+)")
_ATTRIBUTE = re.compile(r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))?""")
_END = re.compile(r"[\s/]*+>")
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_SELF_ENDING = frozenset({"p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "option", "body", "html"})
"""Elements that the next of their kind ends, so people leave their ends out."""


def check_limits(page: str) -> None:
    """Raises FileFault for a page that is nested too deeply, or has a tag with too many attributes."""
    depth: Counter[str] = Counter()
    total = place = 0
    while (found := _MARKUP.search(page, place)) is not None:
        start = found.start()
        if found[0] == "<!--":
            end = page.find("-->", start + 4)
            place = end + 3 if end >= 0 else len(page)
            continue
        if found[0] in ("<!", "<?"):
            end = page.find(">", start)
            place = end + 1 if end >= 0 else len(page)
            continue
        name = _NAME.match(page, start)
        assert name is not None, "markup that is no comment and no declaration begins a tag"
        place = _after_tag(page, name.end())
        tag = name[1].lower()
        closes = page[start + 1] == "/"
        if not closes and tag in _RAW:
            closing = _RAW_ENDS[tag].search(page, place)
            place = closing.start() if closing else len(page)
        elif tag not in _VOID and tag not in _SELF_ENDING and tag not in _RAW:
            if not closes:
                depth[tag] += 1
                total += 1
            elif depth[tag]:  # an end without its beginning ends nothing
                depth[tag] -= 1
                total -= 1
            if total > DEEPEST:
                raise FileFault(f"Its elements are nested more than {DEEPEST} deep.")


def _after_tag(page: str, place: int) -> int:
    """Where the tag whose name ends at `place` ends itself."""
    for _ in range(MOST_ATTRIBUTES):
        if (end := _END.match(page, place)) is not None:
            return end.end()
        attribute = _ATTRIBUTE.match(page, place)
        if attribute is None:
            return len(page)
        place = attribute.end()
    raise FileFault(f"A tag has more than {MOST_ATTRIBUTES:,} attributes.")
