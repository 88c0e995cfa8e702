"""`sentinel doctor`: a line for each dependency, and for each that is not right the command that mends it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.chromium import PAGE

from sentinel_rag.surfaces.cli import main
from sentinel_rag_testing.running_gateway import RunningGateway
from sentinel_rag_testing.scripted_model import ScriptedModel, text_reply

pytestmark = pytest.mark.requirement("OPS-4")
EVERYWHERE = (
    "python packages settings|home folder|disk|ports|clock|policy|tool servers|gateway|zones|workspace|templates|"
    "freeform KQL|kql parser|files|web|knowledge|conversations|model|web page|telemetry"
)


class Doctor:
    """`sentinel doctor` in this process, in a home of its own."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._monkeypatch, self._capsys = home, monkeypatch, capsys

    def finds(self, **environment: str) -> dict[str, dict[str, Any]]:
        for name, value in environment.items():
            self._monkeypatch.setenv(name, value)
        code, out = self.run("doctor", "--json")
        findings = json.loads(out)
        assert code == (0 if all(each["ok"] for each in findings) else 1)
        for each in findings:
            assert each["ok"] == (each["level"] != "fail"), each
            assert bool(each["fix"]) == (each["level"] != "ok"), each
        return {each["name"]: each for each in findings}

    def run(self, *arguments: str) -> tuple[int, str]:
        code = main(list(arguments))
        return code, self._capsys.readouterr().out

    def import_rows(self, moment: str) -> None:
        file = self.home.parent / "Syslog.csv"
        file.write_text(f"TimeGenerated,Computer,SyslogMessage\n{moment},web1,hello\n")
        code, out = self.run("workspace", "import", str(file), "--table", "Syslog")
        assert code == 0, out


@pytest.fixture
def doctor(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Doctor:
    monkeypatch.chdir(tmp_path)
    return Doctor(clean_environment, monkeypatch, capsys)


def test_every_dependency_has_a_line_and_an_empty_home_is_told_what_to_do(doctor: Doctor) -> None:
    found = doctor.finds()
    assert " ".join(found).split() == EVERYWHERE.replace("|", " ").split()
    assert [name for name, each in found.items() if not each["ok"]] == ["workspace"]
    assert found["workspace"]["fix"].endswith("sentinel workspace import FILE, or sentinel workspace generate")
    assert found["home folder"]["detail"].endswith("(made when first needed)")
    assert (found["web page"]["level"], found["web page"]["fix"]) == (
        ("ok", "") if PAGE.is_file() else ("warn", "make page (in a clone)")
    )


def test_what_could_be_better_is_no_fault(doctor: Doctor) -> None:
    doctor.import_rows("2024-01-01T00:00:00Z")
    found = doctor.finds(SENTINEL_KNOWLEDGE_STORE="local")
    assert found["workspace"]["detail"] == "default: 1 rows in 1 tables, the newest of 2024-01-01 00:00:00 UTC"
    code, out = doctor.run("doctor")
    assert code == 0
    assert out.splitlines()[-1].startswith(f"{len(found)} checks: everything that is needed works")
    warned = [name for name, each in found.items() if each["level"] == "warn"]
    assert [line.split("  ")[1].strip() for line in out.splitlines() if line.startswith("warn")] == warned


def test_rows_that_are_still_to_come_are_told(doctor: Doctor) -> None:
    """A window that ends now leaves them out, so that an answer would lack them."""
    doctor.import_rows("2199-01-01T00:00:00Z")
    found = doctor.finds()
    assert (found["workspace"]["level"], "still to come" in found["workspace"]["detail"]) == ("warn", True)


def test_a_setting_that_is_misspelt_in_the_environment_is_told(doctor: Doctor) -> None:
    """It is no fault: other products' variables begin alike, and those are not even mentioned."""
    others = {"SENTINEL_MASTER_NAME": "mymaster", "SENTINEL_PASSWORD": "x" * 20, "SENTINEL_UPSTREAM_NOTES": "y" * 20}
    assert doctor.finds(**others)["settings"]["level"] == "ok"
    found = doctor.finds(SENTINEL_MODLE="openrouter")["settings"]
    assert found["level"] == "warn"
    assert found["detail"].endswith("in the environment SENTINEL_MODLE is no setting, SENTINEL_MODEL is")
    assert not any(name in str(found) for name in others)


def test_a_home_that_cannot_be_written(doctor: Doctor, tmp_path: Path) -> None:
    """A file stands where a folder should: the tests may run as root, whom rights do not keep out."""
    (tmp_path / "file").write_text("")
    found = doctor.finds(SENTINEL_HOME=str(tmp_path / "file" / "home"))
    assert "cannot be written" in found["home folder"]["detail"]
    assert {found[name]["level"] for name in ("home folder", "knowledge", "conversations")} == {"fail"}
    assert "SENTINEL_HOME" in found["home folder"]["fix"]


def test_a_home_that_cannot_even_be_looked_at(doctor: Doctor, tmp_path: Path) -> None:
    """As for a folder of another account; no disk takes this name, whoever asks."""
    found = doctor.finds(SENTINEL_HOME=str(tmp_path / ("x" * 300)))
    assert list(found) == ["python", "packages", "settings"]
    assert "SENTINEL_HOME: the folder" in found["settings"]["detail"]


def test_a_clock_behind_what_is_stored(doctor: Doctor) -> None:
    assert doctor.finds()["clock"]["level"] == "ok"
    journal = doctor.home / "gateway" / "audit.sqlite"
    journal.parent.mkdir(parents=True)
    journal.write_text("")
    ahead = (datetime.now(UTC) + timedelta(days=2)).timestamp()
    os.utime(journal, (ahead, ahead))
    clock = doctor.finds()["clock"]
    assert (clock["level"], clock["fix"]) == ("fail", "set the clock right: timedatectl set-ntp true")


def test_settings_that_cannot_be_read_end_the_list_with_all_their_problems(doctor: Doctor) -> None:
    found = doctor.finds(SENTINEL_TIMEZONE="Mars/Olympus", SENTINEL_CHAT_TURNS="many")
    assert list(found) == ["python", "packages", "settings"]
    for name in ("SENTINEL_TIMEZONE", "SENTINEL_CHAT_TURNS"):
        assert name in found["settings"]["detail"]


def test_an_interceptor_elsewhere_is_asked_whether_it_is_ready_and_takes_the_key(
    doctor: Doctor, gateway: RunningGateway
) -> None:
    right = doctor.finds(SENTINEL_URL=gateway.url, SENTINEL_API_KEY=gateway.key)["gateway"]
    assert (right["level"], "is ready: policy ok" in right["detail"]) == ("ok", True)
    wrong = doctor.finds(SENTINEL_API_KEY="a-key-of-nobody-0123456789")["gateway"]
    assert (wrong["level"], "HTTP 401" in wrong["detail"]) == ("fail", True)
    assert "sentinel keys create" in wrong["fix"]
    assert "a-key-of-nobody" not in json.dumps(wrong)


def test_what_is_no_interceptor_or_nothing_at_all_is_told(doctor: Doctor) -> None:
    with ScriptedModel([text_reply("ready")]).running() as url:
        other = doctor.finds(SENTINEL_URL=url, SENTINEL_API_KEY="a-key-of-nobody-0123456789")["gateway"]
        assert "is no gateway" in other["detail"]
    gone = doctor.finds()["gateway"]
    assert (gone["level"], "does not answer" in gone["detail"]) == ("fail", True)
    assert "SENTINEL_URL" in gone["fix"]


def test_azure_without_an_identity(doctor: Doctor, tmp_path: Path) -> None:
    found = doctor.finds(
        SENTINEL_WORKSPACE_ID="prod=6f1c2a34-0000-4000-8000-000000000001",
        AZURE_TOKEN_CREDENTIALS="AzureCliCredential",
        PATH=str(tmp_path),
    )
    assert (found["sign-in"]["level"], "no token for prod" in found["sign-in"]["detail"]) == ("fail", True)
    assert found["sign-in"]["fix"].startswith("az login")
