"""Text functions: Kusto's documented answers, and those at the edges of its rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

TEXT: list[tuple[str, str, Cell]] = [
    ("strcmp('ABC', 'ABC')", "long", 0),
    ("strcmp('abcde', 'ABC')", "long", 1),
    ("strcmp('ABC', 'abc')", "long", -1),
    ("strcmp('', 'a')", "long", -1),
    ("indexof('abcdefg', 'cde')", "long", 2),
    ("indexof('abc', 'x')", "long", -1),
    ("indexof('abc', '')", "long", 0),
    ("indexof('abcdefg', 'cde', 1, 2)", "long", -1),
    ("indexof('abcdefg', 'cde', -5)", "long", 2),
    ("indexof('abcabcabc', 'b', 0, -1, 3)", "long", 7),
    ("indexof('abcabc', 'b', 0, -1, 3)", "long", -1),
    ("indexof('abc', 'b', 0, -2)", "long", None),
    ("indexof(1234567, 5, 1, 4)", "long", 4),
    ("indexof('héllo', 'l')", "long", 2),
    ("indexof_regex('abcabc', @'a.c')", "long", 0),
    ("indexof_regex('abcabcdefg', @'a.c', 0, 9, 2)", "long", 3),
    ("indexof_regex('ababaa', @'a.a', 0, -1, 2)", "long", -1),
    ("indexof_regex('abc', @'a|ab', -1)", "long", None),
    ("indexof_regex('xx12', @'\\d+')", "long", 2),
    ("strrep('ab', 3)", "string", "ababab"),
    ("strrep(123, 3, '.')", "string", "123.123.123"),
    ("strrep(3s, 2, ' ')", "string", "00:00:03 00:00:03"),
    ("strrep('a', 0)", "string", ""),
    ("translate('krasp', 'otsku', 'spark')", "string", "kusto"),
    ("translate('abc', 'x', 'abc')", "string", "xxx"),
    ("translate('abc', '', 'ab')", "string", ""),
    ("replace_strings('This is', dynamic(['This', 'is']), dynamic(['This', 'was']))", "string", "This was"),
    ("replace_strings('This is', dynamic(['is', 'This']), dynamic(['was', 'This']))", "string", "Thwas was"),
    ("replace_strings('This is', dynamic(['This', 'is']), dynamic([1, 'was']))", "string", "This was"),
    ("replace_strings('a cat', dynamic([' cat']), dynamic(['']))", "string", "a"),
    ("split('a_b_c', '_')", "dynamic", '["a","b","c"]'),
    ("split('', '_')", "dynamic", '[""]'),
    ("split('a__b', '_')", "dynamic", '["a","","b"]'),
    ("split('a_b', '_', 1)", "dynamic", '["b"]'),
    ("split('a_b', '_', 5)", "dynamic", "[]"),
    ("tostring(split('a,b', ','))", "string", '["a","b"]'),
    ("strcat_array(split('a,b', ','), '-')", "string", "a-b"),
    ("array_length(split('a,b,c', ','))", "long", 3),
    ("url_encode('https://www.bing.com/hello world')", "string", "https%3a%2f%2fwww.bing.com%2fhello+world"),
    ("url_encode_component('hello world/ä')", "string", "hello%20world%2f%c3%a4"),
    ("url_decode('https%3a%2f%2fwww.bing.com%2f')", "string", "https://www.bing.com/"),
    ("url_decode('a+b%20c')", "string", "a b c"),
    ("tohex(256)", "string", "100"),
    ("tohex(-256)", "string", "ffffffffffffff00"),
    ("tohex(toint(-256), 8)", "string", "ffffff00"),
    ("tohex(256, 8)", "string", "00000100"),
    ("tohex(256, 2)", "string", "100"),
    ("string_size('hello')", "long", 5),
    ("string_size('⒦⒰⒮⒯⒪')", "long", 15),
    ("isascii('abc')", "bool", True),
    ("isascii('é')", "bool", False),
    ("unicode_codepoints_from_string('Kusto')", "dynamic", "[75,117,115,116,111]"),
    ("unicode_codepoints_to_string(75, 117, 115, 116, 111)", "string", "Kusto"),
    ("unicode_codepoints_to_string(dynamic([75, 117]), 115)", "string", "Kus"),
    ("base64_decode_toarray('S3VzdG8=')", "dynamic", "[75,117,115,116,111]"),
    ("base64_encode_fromarray(dynamic([75, 117, 115, 116, 111]))", "string", "S3VzdG8="),
    ("base64_decode_tostring('S3VzdG8=')", "string", "Kusto"),
    ("base64_decode_tostring('U3RyaW5n0KHR0tGA0L7Rh9C60LA=')", "string", ""),
    ("base64_decode_tostring('not base64!')", "string", ""),
    ("base64_encode_tostring('Kusto')", "string", "S3VzdG8="),
    ("base64_encode_tostring('é')", "string", "w6k="),
    ("base64_encode_tostring(@'C:\\Windows')", "string", "QzpcV2luZG93cw=="),
    ("base64_encode_tostring(@'\\xAA')", "string", "XHhBQQ=="),
    ("base64_encodestring(@'\\xAA')", "string", "XHhBQQ=="),
    ("format_bytes(564)", "string", "564 Bytes"),
    ("format_bytes(10332, 1)", "string", "10.1 KB"),
    ("format_bytes(20010332)", "string", "19 MB"),
    ("format_bytes(20010332, 2)", "string", "19.08 MB"),
    ("format_bytes(20010332, 0, 'KB')", "string", "19541 KB"),
    ("regex_quote('(so$me.Te^xt)')", "string", "\\(so\\$me\\.Te\\^xt\\)"),
    ("substring('abcdefg', -3, 2)", "string", "ef"),
    ("substring('abc', 1, 10)", "string", "bc"),
    ("substring('abc', 5)", "string", ""),
    ("reverse('abc')", "string", "cba"),
    ("countof('aaa', 'aa')", "long", 2),
    ("extract('x=([0-9.]+)', 1, 'hello x=45.6|wo')", "string", "45.6"),
    ("replace_regex('a1b2', @'\\d', '#')", "string", "a#b#"),
    ("trim('--', '--a--')", "string", "a"),
    ("trim_start(@'[^\\w]+', '-  Te st1// $')", "string", "Te st1// $"),
]


@pytest.mark.parametrize(("expression", "type_", "value"), TEXT)
def test_text_functions_answer_as_kusto_does(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)
