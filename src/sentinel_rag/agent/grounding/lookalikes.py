"""Characters that look like ASCII letters and digits, read as what they look like.

A fullwidth digit or a Cyrillic letter within a Latin word would else carry a value past every recogniser. The plain
form is also what is shown: a reader cannot tell the two apart.
"""

from __future__ import annotations

import re
import unicodedata

_STYLED = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff]")
_DIGIT = re.compile(r"(?![0-9])\d")
_CYRILLIC_GREEK = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u0501\u051b"
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405"
        "\u03bf\u03b1\u03bd\u03c1\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
        "aeopcxyijsdwABEKMHOPCTXIJSoavpABEZHIKMNOPTYX",
        strict=True,
    )
)
_MIXED = re.compile(r"\w*(?:[A-Za-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][A-Za-z])\w*")
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")


def plain(text: str) -> str:
    """`text` with look-alike characters as ASCII and without invisible ones inside words."""
    if text.isascii():
        return text
    text = _STYLED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = _DIGIT.sub(lambda match: str(unicodedata.digit(match[0])), text)
    text = re.sub(rf"(?<=\w){_INVISIBLE.pattern}+(?=\w)", "", text)
    return _MIXED.sub(lambda match: "".join(_CYRILLIC_GREEK.get(each, each) for each in match[0]), text)
