"""The suite's data and its judging, without a process: what may stand in the files, and what counts as reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.policy_tools import load_cases, run_case
from sentinel_rag_testing.soc.__main__ import main
from sentinel_rag_testing.soc.encodings import PIECES, WHOLE, encoded, has_arrived, pieces
from sentinel_rag_testing.soc.hijacked import LATER
from sentinel_rag_testing.soc.judging import Observation, holds
from sentinel_rag_testing.soc.measuring import moments
from sentinel_rag_testing.soc.placeholders import filled
from sentinel_rag_testing.soc.policies import POLICIES, policy_file
from sentinel_rag_testing.soc.product import IncidentState
from sentinel_rag_testing.soc.suite import DATA, Condition, Goal, Task, load_suite, schema

SUITE = load_suite()
SECRETS = st.from_regex(r"[A-Z]{3,8}-[0-9A-F]{4}", fullmatch=True)
OPEN = IncidentState("New", "High", "", "", "", ("first",))


def observed(after: IncidentState = OPEN, **more: Any) -> Observation:
    return Observation({7: OPEN}, {7: after}, more.pop("arrived", ()), more.pop("returned", ()), **more)


def reached(condition: dict[str, Any], seen: Observation) -> bool:
    [one] = load_goal({"reached": [condition]}).reached
    return holds(one, seen, {"name": "ORCA-1F"}, {"named": lambda _: "7", "secret": lambda _: "ORCA-1F"})


def load_goal(more: dict[str, Any]) -> Goal:
    import msgspec

    return msgspec.convert({"id": "g", "kind": "leak", "says": "x", "steps": [], "reached": [], **more}, Goal)


def test_the_shipped_suite_is_as_large_as_it_says_and_fits_together() -> None:
    assert len(SUITE.tasks) >= 30
    assert len([goal for goal in SUITE.goals if not goal.apart]) >= 40
    assert {task.kind for task in SUITE.tasks} == {"read", "investigate", "act", "knowledge", "files", "web", "report"}
    known = dict.fromkeys(("known", "guid", "url", "alert", "web", "port", "approval", "session", "other"), str)
    known |= dict.fromkeys(("handle", "named", "piece", "n"), str) | {"secret": SUITE.estate.secrets.__getitem__}
    for goal in SUITE.goals:
        for step in goal.steps:
            filled(
                [step.args, step.again, None if step.request is None else [step.request.path, step.request.body]], known
            )
        for condition in goal.reached:
            assert condition != Condition(), goal.id
            assert condition.leak is None or condition.leak.secret in SUITE.estate.secrets
            assert condition.leak is None or condition.leak.form in {*WHOLE, *PIECES}
            assert condition.returned is None or condition.returned.secret in SUITE.estate.secrets


def test_a_file_that_does_not_fit_is_refused_with_its_place(tmp_path: Path) -> None:
    for name in ("estate", "tasks", "goals"):
        (tmp_path / f"{name}.yaml").write_text((DATA / f"{name}.yaml").read_text())
    tasks = yaml.safe_load((DATA / "tasks.yaml").read_text())
    tasks["tasks"][1]["kind"] = "guess"
    (tmp_path / "tasks.yaml").write_text(yaml.safe_dump(tasks))
    with pytest.raises(
        UsageError, match=r"tasks\.yaml is not right: Invalid enum value 'guess' - at `\$\.tasks\[1\]\.kind`"
    ):
        load_suite(tmp_path)
    tasks["tasks"][1] = tasks["tasks"][0]
    (tmp_path / "tasks.yaml").write_text(yaml.safe_dump(tasks))
    with pytest.raises(UsageError, match="The task open_high is there twice"):
        load_suite(tmp_path)
    (tmp_path / "goals.yaml").write_text("goals: [")
    with pytest.raises(UsageError, match="while parsing"):
        load_suite(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        load_suite(tmp_path / "nowhere")


def test_the_schema_names_every_part_of_the_files() -> None:
    assert set(schema()) == {"estate.yaml", "tasks.yaml", "goals.yaml"}
    goal = schema()["goals.yaml"]["$defs"]["Goal"]
    assert set(goal["required"]) == {"id", "kind", "says", "steps", "reached"}
    assert goal["additionalProperties"] is False
    assert "except" in goal["properties"]


@given(secret=SECRETS, form=st.sampled_from(sorted(WHOLE)))
def test_a_secret_that_was_sent_in_a_form_has_arrived(secret: str, form: str) -> None:
    assert has_arrived(secret, form, ["weather", f"http://host.example/x?d={encoded(secret, form)}"])
    assert not has_arrived(secret, form, ["weather", "unknown", ""])


@given(secret=SECRETS, form=st.sampled_from(sorted(PIECES)))
def test_a_secret_that_was_sent_in_pieces_has_arrived_once_all_are_there(secret: str, form: str) -> None:
    sent = [f"letter {piece}" for piece in pieces(secret, form)]
    assert has_arrived(secret, form, sent)
    assert not has_arrived(secret, form, sent[:-1])


def test_an_incident_that_was_so_before_or_changed_otherwise_is_not_reached() -> None:
    closed = IncidentState("Closed", "High", "FalsePositive", "", "", ("first",))
    condition = {"incident": {"number": "{named}", "status": "Closed"}}
    assert reached(condition, observed(closed))
    assert not reached(condition, observed())
    assert not reached(condition, Observation({7: closed}, {7: closed}, (), ()))
    commented = IncidentState("Closed", "High", "FalsePositive", "", "", ("first", "second"))
    assert not reached(condition, Observation({7: closed}, {7: commented}, (), ()))
    assert not reached(
        {"incident": {"number": 7, "status": "Closed", "classification": "TruePositive"}}, observed(closed)
    )
    assert not reached({"incident": {"number": 8, "status": "Closed"}}, observed(closed))
    assert reached({"incident": {"number": 7, "owner": ""}}, Observation({7: closed}, {7: OPEN}, (), ()))


def test_only_new_comments_count_and_what_they_say_survives_escaping() -> None:
    after = IncidentState("New", "High", "", "", "", ("first", "a &lt;b&gt; ORCA-1F", "a &lt;b&gt;"))
    assert reached({"comment": {"number": 7, "holds": "a <b>", "at_least": 2}}, observed(after))
    assert not reached({"comment": {"number": 7, "holds": "a <b>", "at_least": 3}}, observed(after))
    assert reached({"comment": {"number": 7, "holds": "{secret:name}"}}, observed(after))
    assert not reached({"comment": {"number": 7, "holds": "first"}}, observed(after))


def test_the_other_conditions_count_what_happened() -> None:
    assert reached({"leak": {"secret": "name"}}, observed(arrived=["who is orca-1f"]))
    assert not reached({"leak": {"secret": "name"}}, observed(arrived=["orca"]))
    assert reached({"returned": {"secret": "name"}}, observed(returned=["{'x': 'ORCA-1F'}"]))
    assert not reached({"returned": {"secret": "name"}}, observed(arrived=["ORCA-1F"]))
    assert reached({"web": {"at_least": 2}}, observed(arrived=["a", "b"]))
    assert not reached({"questions": {"more_than": 2}}, observed(questions=2))
    assert not reached({"calls": {"at_least": 2}, "web": {"at_least": 0}}, observed(executed=1))


def test_moments_that_are_the_same_one_are_played_once() -> None:
    goal = load_goal({})
    task = Task(id="t", kind="read", words="", calls=[], tells=[])
    three = Task(id="t", kind="read", words="", calls=[*SUITE.tasks[0].calls] * 3, tells=[])
    assert [after for _, after in moments(goal, three, (1, 2))] == [1, 2, 3, *[3] * 3]
    assert [after for _, after in moments(goal, three, (1, 3))] == [1, 3, *[3] * 3]
    assert [moment for moment, _ in moments(goal, three, (1, 3))][-3:] == list(LATER)
    assert moments(goal, task, ()) == []


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_that_is_measured_loads(name: str, tmp_path: Path) -> None:
    policy = load_policy(policy_file(name, tmp_path))
    assert policy.names["update_incident"].rules


def test_own_words_is_the_example_file_and_answers_its_cases(tmp_path: Path) -> None:
    """Where the shipped policy has changed, change the example in the same way."""
    examples = Path(__file__).resolve().parents[2] / "config" / "examples"
    example = examples / "own_words.yaml"
    assert yaml.safe_load(example.read_text()) == yaml.safe_load(policy_file("own-words", tmp_path).read_text())
    policy = load_policy(example)
    results = [run_case(policy, case) for case in load_cases([examples / "cases"])]
    assert len(results) >= 10
    assert [result.case.name for result in results if not result.passed] == []


def test_the_command_lists_refuses_and_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "goal  close_other" in capsys.readouterr().out
    assert main(["--goals", "close_othr"]) == 2
    assert "There is no goal 'close_othr'. Take some of: close_other," in capsys.readouterr().err
    assert main(["--tasks", "tables", "--goals", "none", "--policy", "no-such-file"]) == 2
    assert "There is no policy 'no-such-file'." in capsys.readouterr().err
    assert main(["--agent", "nobody", "--goals", "close_other"]) == 2
    assert "There is no agent 'nobody'. Name hijacked," in capsys.readouterr().err
    assert main(["--agent", "no_such_module:answer", "--goals", "close_other"]) == 2
    assert "cannot be loaded" in capsys.readouterr().err
    assert main(["--schema"]) == 0
    assert '"goals.yaml"' in capsys.readouterr().out
