"""Zones in containers of their own: what each is given is enough to serve, and nothing opens what it must not."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.containers import Container, Deployment
from tests.support.private_authority import Authority
from tests.support.web_client import Client, signed_in

from sentinel_rag.surfaces.cli import main
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("OPS-5")

PASSWORD = "a long enough password 7"


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


@pytest.fixture(scope="module")
def dana(deployment: Deployment) -> Client:
    """A person with an account, made beside the gateway and signed in at the web surface."""
    added = deployment.containers["interceptor"].run(
        "users", "add", "dana", "--role", "analyst", "--role", "auditor", "--password-stdin", stdin=PASSWORD
    )
    assert added.returncode == 0, added.stderr
    trusted = trusting(deployment.authority)
    url = deployment.urls["web"]
    answer = Client(url, trusted=trusted).post("/sign-in", {"name": "dana", "password": PASSWORD})
    assert answer.status == 200, answer.content
    return signed_in(url, answer, trusted)


def beside(made: Container, words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and output of a command beside a running role, as `kubectl exec` runs one; here in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        patch.chdir(made.home)
        capsys.readouterr()
        code = main(words)
    said = capsys.readouterr()
    return code, said.out + said.err


def test_a_question_goes_through_four_containers_and_is_on_record_in_one(
    deployment: Deployment, dana: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = dana.ask("how many incidents are there by severity in the last 14 days?")
    assert answer["outcome"] == "answered", answer
    assert answer["evidence"], "an answer without evidence is not one"
    _, shown = beside(deployment.containers["interceptor"], ["audit", "show", "--json", "--last", "20"], capsys)
    assert "query_incidents" in shown
    assert dana.post("/audit/verify").body["intact"] is True, "the auditor checks the same journal from the page"


def refused(deployment: Deployment, zone: str, path: str, headers: dict[str, str], host: str = "127.0.0.1") -> int:
    client = Client(deployment.urls[zone], trusted=trusting(deployment.authority))
    return client.request("POST", path, {}, {**headers, "Host": host}).status


@pytest.mark.parametrize("zone", ["executor-sentinel", "executor-knowledge", "executor-files", "executor-web"])
def test_no_secret_of_another_border_opens_a_tool_zone(deployment: Deployment, zone: str) -> None:
    """What the attacker controls: everything that the agent's container holds. Nothing is executed, so nothing is on
    record: the tool zone answers 401 before a route is looked for."""
    for secret in (deployment.secrets["agent"], deployment.secrets["agent_key"], deployment.secrets["approver_key"]):
        assert refused(deployment, zone, "/mcp", {"Authorization": f"Bearer {secret}"}) == 401
        assert refused(deployment, zone, "/admin/ingest", {"Authorization": f"Bearer {secret}"}) == 401


def test_the_gateways_token_does_not_open_what_terminals_may_ask_of_the_knowledge_zone(deployment: Deployment) -> None:
    token = {"Authorization": f"Bearer {deployment.secrets['tools']}"}
    assert refused(deployment, "executor-knowledge", "/admin/ingest", token) == 401


@pytest.mark.parametrize(
    ("zone", "path", "status"),
    [("interceptor", "/v1/proxy-execute", 421), ("agent", "/chat", 421), ("web", "/chat", 421)]
    + [(f"executor-{name}", "/mcp", 421) for name in ("sentinel", "knowledge", "files", "web")],
)
def test_a_name_that_no_certificate_has_is_refused(deployment: Deployment, zone: str, path: str, status: int) -> None:
    """What the attacker controls: a web page whose name was rebound to the zone's address."""
    assert refused(deployment, zone, path, {}, host="evil.example.com") == status


def test_each_role_answers_to_the_name_in_its_certificate(deployment: Deployment) -> None:
    key = {"X-API-Key": deployment.secrets["agent_key"]}
    assert refused(deployment, "interceptor", "/v1/sessions", key, host="interceptor:8442") in (201, 403)
    assert refused(deployment, "executor-files", "/mcp", {}, host="tools:8453") == 401
    assert refused(deployment, "agent", "/chat", {}, host="agent") == 401


def test_an_authority_that_nobody_named_is_not_believed(deployment: Deployment, tmp_path: Path) -> None:
    """What the attacker controls: the network between the zones, and a certificate of an authority of its own."""
    with pytest.raises(ssl.SSLCertVerificationError):
        Client(deployment.urls["interceptor"], trusted=trusting(Authority(tmp_path))).get("/healthz")


def test_the_health_check_of_a_container_says_who_serves(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(role: str, port: str, *options: str) -> int:
        for name, value in deployment.containers[role].environment.items():
            monkeypatch.setenv(name, value)
        return main(["serve", role, *options, "--listen", f"127.0.0.1:{port}", "--check"])

    for role, zone in (("interceptor", "interceptor"), ("agent", "agent"), ("web", "web")):
        assert check(role, deployment.urls[zone].rsplit(":", 1)[1]) == 0
    assert check("tools", deployment.urls["executor-sentinel"].rsplit(":", 1)[1], "--tools", "sentinel") == 0
    assert check("agent", "1") == 1
    assert "Nothing healthy answers on port 1." in capsys.readouterr().err


def test_rows_and_knowledge_are_looked_after_beside_the_running_tools(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = deployment.containers["tools"]
    _, status = beside(tools, ["status", "--json"], capsys)
    assert '"running": true' in status
    assert '"unreachable"' not in status, "a zone with a certificate is reached from its own terminal too"
    done = beside(tools, ["knowledge", "ingest", "--only", "incidents", "--by-words", "--days", "14"], capsys)
    assert done[0] == 0, done[1]
    code, said = beside(tools, ["ask", "how many incidents are open?"], capsys)
    assert (code, "No agent is running." in said) == (1, True), "there is none in this container"


@pytest.mark.parametrize("role", ["interceptor", "agent", "web", "tools"])
def test_no_process_shows_a_secret_in_its_arguments_or_its_environment(deployment: Deployment, role: str) -> None:
    children = Path(f"/proc/{deployment.processes[role].pid}/task/{deployment.processes[role].pid}/children")
    pids = children.read_text().split()
    assert pids, "the role runs its zones as processes of their own"
    hidden = [secret for name, secret in deployment.secrets.items() if role != "agent" or name != "agent_key"]
    for pid in pids:
        shown = Path(f"/proc/{pid}/cmdline").read_text() + Path(f"/proc/{pid}/environ").read_text()
        assert not [secret for secret in hidden if secret in shown]


def container(deployment: Deployment, tmp_path: Path, role: str, **changed: str) -> Container:
    known = {**deployment.containers[role].settings, **changed}
    return Container(tmp_path, {name: value for name, value in known.items() if value})


def refusal(made: Container, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `sentinel serve` says with the settings of `made`, in this process; asserts exit code 2 and no traceback."""
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(made.home)
    assert main(["serve", *words]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("role", "changed", "lacks"),
    [
        ("tools", {"SENTINEL_ZONE_TOKEN": "", "SENTINEL_WORKSPACE": "default"}, "SENTINEL_ZONE_TOKEN is not set"),
        ("interceptor", {"SENTINEL_TOOLS": "", "SENTINEL_TOOLS_TOKENS": ""}, "SENTINEL_TOOLS is not set"),
        ("agent", {"SENTINEL_URL": ""}, "SENTINEL_URL is not set"),
        ("agent", {"SENTINEL_ZONE_TOKEN": ""}, "SENTINEL_ZONE_TOKEN is not set"),
        ("web", {"SENTINEL_WEB_URL": ""}, "SENTINEL_WEB_URL is not set"),
        ("web", {"SENTINEL_AGENT_TOKEN": ""}, "SENTINEL_AGENT_TOKEN: is missing"),
        (
            "agent",
            {
                "SENTINEL_MODEL": "azure",
                "SENTINEL_MODEL_NAME": "gpt",
                "AZURE_OPENAI_ENDPOINT": "https://soc.openai.azure.com",
            },
            "a served agent holds no Azure sign-in",
        ),
        ("agent", {"SENTINEL_TLS_KEY": ""}, "SENTINEL_TLS_KEY: is missing"),
        ("agent", {"SENTINEL_TLS_CA": "/nowhere/ca.crt"}, "SENTINEL_TLS_CA: '/nowhere/ca.crt' cannot be read"),
        ("agent", {"SENTINEL_URL": "http://interceptor:8442"}, "plain http is for this machine only"),
        ("interceptor", {"SENTINEL_TOOLS_TOKENS": "sentinel=secret"}, "a token is shorter than 32 characters"),
        ("interceptor", {"SENTINEL_TOOLS": "mail=https://x"}, "is not of the form NAME=VALUE,NAME=VALUE"),
        ("interceptor", {"SENTINEL_TOOLS": "web=https://x/mcp"}, "no more than https://HOST or https://HOST:PORT"),
    ],
)
def test_a_role_that_lacks_a_setting_says_which(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    role: str,
    changed: dict[str, str],
    lacks: str,
) -> None:
    said = refusal(container(deployment, tmp_path, role, **changed), monkeypatch, capsys, role)
    assert lacks in said
    assert "sentinel=secret" not in said, "a token is never quoted"


@pytest.mark.parametrize("address", ["0.0.0.0", "[::]:8442", "192.0.2.7"])
def test_nothing_is_served_to_other_machines_without_a_certificate(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
) -> None:
    bare = container(deployment, tmp_path, "interceptor", SENTINEL_TLS_CERTIFICATE="", SENTINEL_TLS_KEY="")
    said = refusal(bare, monkeypatch, capsys, "interceptor", "--listen", address)
    assert "can be reached by other machines, and there is no certificate." in said


@pytest.mark.parametrize("text", ["interceptor", "127.0.0.1:70000", "[::1", "1.2.3.4:", "[::1]:x", ""])
def test_what_is_no_address_is_refused_with_an_example(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
) -> None:
    made = container(deployment, tmp_path, "interceptor")
    said = refusal(made, monkeypatch, capsys, "interceptor", f"--listen={text}")
    assert "is no address to listen on." in said
    assert "--listen 0.0.0.0:8442" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["agent", "--tools", "web"], "--tools goes with the role tools."),
        (["tools", "--tools", "web,mail"], "There is no tool zone 'mail'."),
    ],
)
def test_tool_zones_are_named_for_the_role_that_has_them(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    says: str,
) -> None:
    assert says in refusal(container(deployment, tmp_path, words[0]), monkeypatch, capsys, *words)


def test_a_tool_zone_that_is_not_deployed_is_not_offered_and_a_dead_process_ends_its_role(
    deployment: Deployment, tmp_path: Path
) -> None:
    known = deployment.containers["interceptor"].settings
    few = [part for part in known["SENTINEL_TOOLS"].split(",") if not part.startswith("web=")]
    made = container(deployment, tmp_path, "interceptor", SENTINEL_TOOLS=",".join(few))
    with made.serve("interceptor") as (urls, process):
        client = Client(urls["interceptor"], trusted=trusting(deployment.authority))
        listed = client.request("GET", "/v1/tools", None, {"X-API-Key": deployment.secrets["agent_key"]}).body
        names = {tool["name"] for tool in listed["tools"]}
        assert "file_read" in names
        assert not names & {"web_search", "web_fetch"}
        assert client.get("/readyz").status == 200, "what is not part of a deployment is not missing"
        child = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
        subprocess.run(["kill", "-9", child], check=True)
        assert process.wait(WAIT_S) == 1
        assert process.stdout is not None
        assert "The interceptor process ended (exit code -9)." in process.stdout.read()


def test_people_sign_in_with_accounts_alone(
    deployment: Deployment, dana: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody started this web surface at a terminal, so there is no owner, and no link that makes one."""
    assert dana.get("/session").body["name"] == "dana"
    code, said = beside(deployment.containers["interceptor"], ["users", "link"], capsys)
    assert code != 0, said
    stranger = replace(dana, cookie="", csrf="")
    assert stranger.get("/conversations").status == 401
    assert stranger.request("POST", f"/sign-in/once/{'A' * 43}", {}).status == 404


def test_a_served_home_is_not_replaced_under_the_roles_that_serve_it(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_it = deployment.containers["interceptor"]
    code, said = beside(beside_it, ["backup", str(tmp_path / "copy")], capsys)
    assert code == 0, said
    code, said = beside(beside_it, ["restore", str(tmp_path / "copy")], capsys)
    assert (code, "A role is served from this home folder" in said) == (1, True), said
