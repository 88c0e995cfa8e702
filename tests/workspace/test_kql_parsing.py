"""Texts that have a form: Kusto's documented answers, and texts that do not keep the form."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

PARSED: list[tuple[str, str, Cell]] = [
    ('parse_csv(\'aa,"b,b",cc,"say ""x"""\')', "dynamic", '["aa","b,b","cc","say \\"x\\""]'),
    ("parse_csv(',a,,b')", "dynamic", '["","a","","b"]'),
    ("parse_csv('r1,a\\nr2,x')", "dynamic", '["r1","a"]'),
    ("parse_csv('\"a\\nb\",c')", "dynamic", '["a\\nb","c"]'),
    ("parse_csv('')", "dynamic", '[""]'),
    ("parse_path(@'C:\\temp\\file.txt').DirectoryPath", "dynamic", "C:\\temp"),
    ("parse_path(@'C:\\temp\\file.txt').RootPath", "dynamic", "C:"),
    ("parse_path(@'temp\\file.txt').Filename", "dynamic", "file.txt"),
    ("parse_path('file://C:/temp/file.txt:some.exe').AlternateDataStreamName", "dynamic", "some.exe"),
    ("parse_path('file://C:/temp/file.txt:some.exe').Scheme", "dynamic", "file"),
    ("parse_path(@'\\\\shared\\users\\temp\\file.txt.gz').Extension", "dynamic", "gz"),
    ("parse_path(@'\\\\shared\\users\\temp\\file.txt.gz').DirectoryPath", "dynamic", "\\\\shared\\users\\temp"),
    (
        "parse_path('/usr/lib/temp/file.txt')",
        "dynamic",
        '{"Scheme":"","RootPath":"","DirectoryPath":"/usr/lib/temp","DirectoryName":"temp","Filename":"file.txt","Extension":"txt","AlternateDataStreamName":""}',
    ),
    ("parse_urlquery('k1=v1&k2=v2')", "dynamic", '{"Query Parameters":{"k1":"v1","k2":"v2"}}'),
    ("parse_url('https://user:pw@host:8080/a/b?k=v#frag').Host", "dynamic", "host"),
    ("parse_version('0.0.0.5')", "decimal", "5"),
    ("parse_version('0.1.2.0')", "decimal", "10000000200000000"),
    ("parse_version('1.2.3.4')", "decimal", "1000000020000000300000004"),
    ("parse_version('1') == parse_version('1.0.0.0')", "bool", True),
    ("parse_version('0.10') > parse_version('0.9')", "bool", True),
    ("parse_version('beta')", "decimal", None),
    ("parse_version('1.2.3.4.5')", "decimal", None),
    ('parse_command_line("echo \\"hello world!\\"", \'windows\')', "dynamic", '["echo","hello world!"]'),
    (
        "parse_command_line(@'\"C:\\Program Files\\a.exe\" -x \"a b\" c\\d', 'windows')",
        "dynamic",
        '["C:\\\\Program Files\\\\a.exe","-x","a b","c\\\\d"]',
    ),
    ('parse_command_line(@\'a "say \\"hi\\"" b"c d"e\', \'windows\')', "dynamic", '["a","say \\"hi\\"","bc de"]'),
    ("parse_command_line('', 'windows')", "dynamic", None),
    ("extract('x=([0-9]+)', 1, 'x=45', typeof(long))", "long", 45),
    ("extract('x=([0-9]+)', 1, 'y', typeof(long))", "long", None),
    ("extract('x=(.*)', 1, 'x=2020-01-01', typeof(datetime))", "datetime", "2020-01-01T00:00:00Z"),
    ("extract('x=(.*)', 1, 'x=true', typeof(bool))", "bool", True),
    ("extract_json('$.a[0].b', '{\"a\":[{\"b\":5}]}')", "string", "5"),
    ("extract_json(\"$['a b']\", '{\"a b\":1}', typeof(int))", "int", 1),
    ("extractjson('$.x', '{}')", "string", ""),
    ("extract_json('$', '7', typeof(long))", "long", 7),
]


@pytest.mark.parametrize(("expression", "type_", "value"), PARSED)
def test_texts_are_parsed_as_kusto_does(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("parse_command_line('a', 'posix')", "windows"),
        ("parse_user_agent('Mozilla/5.0', 'browser')", "parse_user_agent"),
        ("extract_json('$..a', '{}')", "path"),
        ("extract('a', 0, 'a', 'long')", "typeof"),
    ],
)
def test_what_cannot_be_parsed_exactly_is_refused(evaluated: Evaluate, expression: str, reason: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert reason in str(refusal.value)
    assert refusal.value.next_step
