"""The page on KQL templates: its example is a template that runs, its table is that of the shipped ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sentinel_rag.app.template_trial import try_templates
from sentinel_rag.sentinel.templates.template_registry import (
    _PARAMETER_KEYS,
    _TEMPLATE_KEYS,
    PARAMETER_TYPES,
    load_templates,
)

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "kql-templates.md").read_text(encoding="utf-8")


@pytest.mark.requirement("TOOL-4")
def test_the_example_is_sound(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "vpn_logins.yaml"
    path.write_text(example)
    report = try_templates([path], taken=load_templates())
    assert (report.templates, report.problems, report.warnings) == (("vpn_logins",), (), ())


def test_every_shipped_template_is_listed_with_its_parameters() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \| .*? \|$", PAGE, re.MULTILINE))
    expected = {
        template.name: ", ".join(f"`{p.name}`" + ("" if p.required else "?") for p in template.parameters) or "-"
        for template in load_templates().values()
    }
    assert {name: rows.get(name) for name in expected} == expected
    assert f"The {len(expected)} shipped ones" in PAGE


def test_every_key_and_type_is_explained() -> None:
    assert [key for key in (*_TEMPLATE_KEYS, *_PARAMETER_KEYS, *PARAMETER_TYPES) if f"`{key}" not in PAGE] == []
