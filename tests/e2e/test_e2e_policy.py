"""The policy of a running product: changed on disk, refused, put right; and its past calls replayed."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from waiting import WAIT_S

SHIPPED = Path(__file__).parents[2] / "config" / "sentinel_config.yaml"
DENIES = """
tools:
  - name: list_tables
    effect: read
    taint_rules: [{rule_id: closed, condition: "true", taint_level: HIGH, deny: true}]
"""


def ask(url: str, key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    try:
        payload = None if body is None else json.dumps(body)
        connection.request(method, path, payload, {"X-API-Key": key, "Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.mark.requirement("GATE-2")
def test_a_running_product_takes_a_changed_policy_and_refuses_a_bad_one(sentinel: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(SHIPPED.read_text())
    sentinel.settings["SENTINEL_CONFIG"] = str(policy)
    call = {"session_id": "e2e-policy", "tool_name": "list_tables", "args": {}}
    with sentinel.up() as addresses:
        url, agent = addresses["interceptor"]["url"], sentinel.environment["SENTINEL_API_KEY"]
        created = sentinel.json("keys", "create", "--name", "ci", "--scope", "admin")
        admin = next(value for value in created.values() if isinstance(value, str) and value.startswith("sr_"))
        assert ask(url, agent, "POST", "/v1/proxy-execute", call)[0] == 200
        assert "in force" in sentinel.json("status")["policy"]

        policy.write_text(DENIES)
        assert ask(url, admin, "POST", "/v1/policy/reload")[0] == 200
        status, denied = ask(url, agent, "POST", "/v1/proxy-execute", call)
        assert (status, denied["rule_id"]) == (403, "closed")

        policy.write_text(DENIES.replace("deny:", "denny:"))
        status, refused = ask(url, admin, "POST", "/v1/policy/reload")
        assert (status, refused["reason"]) == (422, "invalid_argument")
        assert "did you mean 'deny'?" in refused["refused"]["problems"][0]
        assert ask(url, agent, "POST", "/v1/proxy-execute", call)[1]["rule_id"] == "closed"
        assert "the file was refused" in sentinel.json("status")["policy"]

        replayed = sentinel.json("policy", "replay")
        assert (replayed["decided"], replayed["same"], replayed["unknown_policies"]) == (3, 3, {})
    told = sentinel.run("policy", "explain", denied["audit_id"])
    assert told.returncode == 0
    assert told.stdout.splitlines()[-1] == "On record: deny by closed (rule_denies), HIGH/TRUSTED"
