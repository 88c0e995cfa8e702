"""What lies in deploy/: it says what docs/deployment.md says, gives no zone more than it needs, and holds no secret.

The chart is read as Helm rendered it; `python -m bench.deploy_rendering` renders it anew, and has the tools of others
judge it too.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from bench.deploy_rendering import CHART, EXAMPLES, RENDERED, chart_digest
from cryptography import x509
from tests.support.network_policies import Way, ways, workloads

from sentinel_rag.app.roles import FIRST_PORTS
from sentinel_rag.audit import SigningKey
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.store.keys import read_pepper
from sentinel_rag.settings import VARIABLES

pytestmark = pytest.mark.requirement("OPS-5")

REPOSITORY = Path(__file__).resolve().parents[2]
DEPLOY = REPOSITORY / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
MANIFESTS = {name: list(yaml.load_all((RENDERED / f"{name}.yaml").read_text(), yaml.CSafeLoader)) for name in EXAMPLES}
ZONES = {"web", "agent", "interceptor", "tools-data", "tools-files", "tools-web"}
SETTINGS = set(VARIABLES)
BETWEEN = {"TOKEN_DATA", "TOKEN_FILES", "TOKEN_WEB"}
"""Variables of a pod that only put another one together."""


def containers() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Example, zone and each container of its pod."""
    for example, manifests in MANIFESTS.items():
        for zone, template in workloads(manifests).items():
            for each in [*template["spec"].get("initContainers", ()), *template["spec"]["containers"]]:
                yield example, zone, each


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_rendered_chart_is_that_of_these_sources(example: str) -> None:
    first = (RENDERED / f"{example}.yaml").read_text().split("\n", 1)[0]
    assert first.endswith(chart_digest()), "render it again: python -m bench.deploy_rendering"
    assert set(workloads(MANIFESTS[example])) == ZONES


def documented_ways(example: str) -> set[Way]:
    """The table of docs/deployment.md for an example."""
    page = (REPOSITORY / "docs" / "deployment.md").read_text()
    table = page.split(f"<!-- ways: {example} -->")[1].split("\n\n")[0]
    found = set()
    for line in table.strip().splitlines()[2:]:
        source, target, ports = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
        found |= {(source, target, int(port)) for port in ports.split(",")}
    return found


@pytest.mark.parametrize("example", EXAMPLES)
def test_who_reaches_whom_is_what_the_page_says(example: str) -> None:
    assert ways(MANIFESTS[example]) == documented_ways(example)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_courier_is_blind(example: str) -> None:
    """What the attacker controls: the agent's pod, whole. It opens connections to the gateway and the model alone,
    and to names; nobody but the web surface opens one to it."""
    found = ways(MANIFESTS[example])
    dns = {way for way in found if way[2] == 53}
    model = {("agent", "10.40.0.64/28", 443)} if example == "azure" else set()
    assert {way for way in found - dns if way[0] == "agent"} == {("agent", "interceptor", 8442)} | model
    assert {way for way in found if way[1] == "agent"} == {("web", "agent", 8441)}
    to_tools = {way for way in found if way[1].startswith("tools-")}
    assert {source for source, _, _ in to_tools} == {"interceptor"}, "only the gateway reaches tools"
    to_azure = {way for way in found if way[1] == "10.40.0.0/27"}
    assert {source for source, _, _ in to_azure} <= {"tools-data"}, "only tools reach Azure"
    assert not {way for way in found if way[0] == "tools-files"}, "the file tools reach nothing"


def policy_of(zone: str, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return next(
        each for each in manifests if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == f"sentinel-{zone}"
    )


def test_a_zone_that_no_policy_isolates_is_found() -> None:
    open_agent = deepcopy(MANIFESTS["embedded"])
    open_agent.remove(policy_of("nothing", open_agent))
    policy_of("agent", open_agent)["spec"]["policyTypes"] = ["Ingress"]
    with pytest.raises(ValueError, match="no policy isolates agent for Egress"):
        ways(open_agent)
    everybody = deepcopy(MANIFESTS["embedded"])
    policy_of("agent", everybody)["spec"]["egress"].append({"ports": [{"port": 443}]})
    assert ("agent", "everybody", 443) in ways(everybody)


def test_pods_hold_to_the_restricted_standard() -> None:
    for example, zone, each in containers():
        context = each["securityContext"]
        assert context["allowPrivilegeEscalation"] is False, (example, zone)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert "privileged" not in context
        assert {"requests", "limits"} <= each["resources"].keys()
    for manifests in MANIFESTS.values():
        for template in workloads(manifests).values():
            spec = template["spec"]
            assert spec["securityContext"]["runAsNonRoot"] is True
            assert spec["securityContext"]["runAsUser"] == 10001
            assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert spec["automountServiceAccountToken"] is False
            assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & spec.keys()
            assert not [each for each in spec["volumes"] if "hostPath" in each]


@pytest.mark.requirement("GATE-5")
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_client_of_mcp_comes_to_the_interceptor_that_holds_its_call(example: str) -> None:
    services = {each["metadata"]["name"]: each["spec"] for each in MANIFESTS[example] if each["kind"] == "Service"}
    kept = {name: spec for name, spec in services.items() if "sessionAffinity" in spec}
    assert set(kept) == {"sentinel-interceptor"}
    [spec] = kept.values()
    assert spec["sessionAffinity"] == "ClientIP"
    assert spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] >= GatewayLimits().approval_wait_s * 2


def test_whatever_may_have_several_replicas_is_not_evicted_whole() -> None:
    """The example for Azure has its gateways by load alone: a rendered StatefulSet without a number of replicas."""
    manifests = MANIFESTS["azure"]
    several = {
        each["metadata"]["name"]
        for each in manifests
        if each["kind"] in ("StatefulSet", "Deployment") and each["spec"].get("replicas", 2) > 1
    }
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in manifests if each["kind"] == "HorizontalPodAutoscaler"}
    budgets = {
        each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        for each in manifests
        if each["kind"] == "PodDisruptionBudget" and each["spec"]["maxUnavailable"] == 1
    }
    assert scaled == {"sentinel-interceptor"}
    assert several >= scaled
    assert {f"sentinel-{zone}" for zone in budgets} == several


def test_probes_ask_where_each_zone_listens_by_a_name_that_it_answers_to() -> None:
    ports = {role: {port} for role, port in FIRST_PORTS.items() if role != "tools"}
    at = {name: FIRST_PORTS["tools"] + place for place, name in enumerate(OWN_SERVERS)}
    ports |= {"tools-data": {at["sentinel"], at["knowledge"]}, "tools-files": {at["files"]}, "tools-web": {at["web"]}}
    for _, zone, each in containers():
        if each["name"] in ("prepare", "gateway-secrets"):
            continue
        assert {port["containerPort"] for port in each["ports"]} == ports[zone]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            get = each[probe]["httpGet"]
            assert (get["scheme"], get["httpHeaders"]) == ("HTTPS", [{"name": "Host", "value": "localhost"}])
            assert get["port"] in ports[zone]
            assert get["path"] in ("/healthz", "/readyz?part=journal")


ALLOWED_KEYS = {
    "web": {"agent-token", "database-url"},
    "agent": {"agent-key", "agent-token", "model-key"},
    "interceptor": {"agent-key", "tools-data-token", "tools-files-token", "tools-web-token", "database-url"},
    "tools-data": {"tools-data-token", "knowledge-url"},
    "tools-files": {"tools-files-token"},
    "tools-web": {"tools-web-token"},
}
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|_DATABASE_URL|KNOWLEDGE_URL")


def test_each_zone_is_given_its_own_secrets_and_none_stands_in_a_manifest() -> None:
    for example, zone, each in containers():
        for variable in each.get("env", ()):
            name, given = variable["name"], variable.get("valueFrom", {}).get("secretKeyRef")
            if given is not None:
                assert given["key"] in ALLOWED_KEYS[zone], (example, zone, name)
            elif SECRET_NAME.search(name) and name != "SENTINEL_TLS_KEY":  # a path
                assert name == "SENTINEL_TOOLS_TOKENS", (example, zone, name)
                assert re.fullmatch(r"(\w+=\$\(TOKEN_[A-Z]+\),?)+", variable["value"])


def test_every_variable_is_a_setting_and_stands_once() -> None:
    for example, zone, each in containers():
        names = [variable["name"] for variable in each.get("env", ())]
        assert len(names) == len(set(names)), (example, zone)
        assert set(names) - BETWEEN - SETTINGS == set(), (example, zone)
    for name, service in COMPOSE["services"].items():
        if name != "postgres":
            assert set(service["environment"]) - SETTINGS == set(), name


def values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def test_the_values_fit_their_schema_and_every_value_stands_in_it() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(values(), SCHEMA)
    assert set(values()) == set(SCHEMA["properties"]) - {"global"}


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("image", "tag"), "latest"),
        (("image", "digests"), {"agent": "sha256:short"}),
        (("state", "kind"), "memory"),
        (("web", "url"), "http://sentinel.example.com"),
        (("interceptor", "replicas"), 0),
        (("network", "model"), [{}]),
        (("agent", "settings"), {"sentinel_model": "azure"}),
        (("agent", "settings"), {"SENTINEL_MAX_TOOL_ROUNDS": 5}),
        (("tools", "data", "storage"), "lots"),
        (("agent", "replicas"), 3),
    ],
)
def test_wrong_values_are_refused(path: tuple[str, ...], wrong: Any) -> None:
    changed = values()
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, SCHEMA)


def stages() -> dict[str, str]:
    """Each stage of the Dockerfile with its lines."""
    found = {}
    for part in re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)[1:]:
        name = re.match(r"FROM \S+ AS (\S+)", part)
        assert name is not None, part
        found[name[1]] = part
    return found


def test_every_image_that_is_named_is_a_target_that_runs_as_nobody() -> None:
    roles = {"web", "agent", "interceptor", "tools"}
    built = {service["build"]["target"] for service in COMPOSE["services"].values() if "build" in service}
    in_chart = {each["image"].rsplit("/", 1)[1].split(":")[0].split("@")[0] for _, _, each in containers()}
    assert built == in_chart == roles
    for role in roles:
        stage = stages()[role]
        assert stage.startswith("FROM runtime AS ")
        assert re.search(r"^HEALTHCHECK .*CMD \[", stage, re.MULTILINE), "in exec form: an image needs no shell"
        assert re.search(r"^CMD \[", stage, re.MULTILINE)
        assert not re.search(r"^(RUN|USER|ENV|ARG) ", stage, re.MULTILINE)
    runtime = stages()["runtime"]
    assert "\nUSER 10001:10001\n" in runtime
    assert "\nSTOPSIGNAL SIGTERM\n" in runtime
    assert not re.search(r"^(RUN|ENTRYPOINT|CMD) (?!\[)", DOCKERFILE, re.MULTILINE), "no line needs a shell"


def test_images_are_built_of_locked_packages_on_a_base_that_can_be_pinned_and_hold_no_secret() -> None:
    assert '"--require-hashes", "--only-binary", ":all:", "-r", "requirements.lock"' in DOCKERFILE
    for base in ("PYTHON", "NODE"):
        assert f"FROM ${{{base}_IMAGE}}${{{base}_DIGEST:+@${{{base}_DIGEST}}}} AS" in DOCKERFILE
    assert not re.search(r"^(ADD|ARG|ENV) .*(KEY|TOKEN|SECRET|PASSWORD)", DOCKERFILE, re.MULTILINE)
    assert not re.search(r"^ADD ", DOCKERFILE, re.MULTILINE)
    lock = (DEPLOY / "requirements.lock").read_text()
    pinned = re.findall(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==", lock, re.MULTILINE)
    assert {"duckdb", "mcp", "openai", "psycopg", "uvicorn"} <= set(pinned)
    assert lock.count("--hash=sha256:") >= len(pinned)
    development = dict(
        re.findall(r"^([a-z0-9-]+)==([^ ]+)", (REPOSITORY / "requirements-dev.lock").read_text(), re.MULTILINE)
    )
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ;]+)", lock, re.MULTILINE):
        assert development.get(name) in (version, None) or name == "numpy", f"{name}: tested in another version"


def test_the_agents_image_lacks_what_executes() -> None:
    only = stages()["only-agent"]
    for package in ("duckdb", "azure-identity", "azure-monitor-query", "mcp", "psycopg"):
        assert f'"{package}"' in only
    assert '"pip", "uninstall", "--quiet", "--yes", "pip"' in only


def test_the_build_sees_nothing_of_a_checkout_that_is_private() -> None:
    lines = [line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*", "whatever is not named stays out"
    taken = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = set(re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE))
    sources = {word.rstrip("/") for line in copied for word in line.split()}
    assert all(any(source == each or source.startswith(f"{each}/") for each in taken) for source in sources)
    assert not taken & {".env", ".git", ".venv", "deploy", "tests"}
    assert "/deploy/private/" in (REPOSITORY / ".gitignore").read_text().splitlines()


def test_composed_containers_hold_to_the_same_rules() -> None:
    networks = COMPOSE["networks"]
    for name, service in COMPOSE["services"].items():
        assert "privileged" not in service
        assert "no-new-privileges:true" in service["security_opt"]
        if name == "postgres":
            continue
        assert (service["read_only"], service["cap_drop"], service["user"]) == (True, ["ALL"], "10001:10001"), name
    joined = {name: set(service.get("networks", ())) for name, service in COMPOSE["services"].items()}
    beside = {name: {other for other in joined if joined[name] & joined[other]} for name in joined}
    assert beside["agent"] == {"agent", "web", "interceptor"}
    for tool in ("tools-data-embedded", "tools-files", "tools-web"):
        assert {other for other in beside[tool] if not other.startswith("tools-data")} - {tool} == {"interceptor"}
    outward = {name for name, terms in networks.items() if not (terms or {}).get("internal")}
    assert outward == {"people", "model", "azure"}
    assert [port for each in COMPOSE["services"].values() for port in each.get("ports", ())] == ["127.0.0.1:8440:8440"]


def test_a_gateways_secrets_come_to_lie_where_it_takes_them(tmp_path: Path) -> None:
    """A mounted Secret is readable by a group, and a pepper that others may read is refused."""
    template = workloads(MANIFESTS["azure"])["interceptor"]
    copying = next(each for each in template["spec"]["initContainers"] if each["name"] == "gateway-secrets")
    mounted, state = tmp_path / "mounted", tmp_path / "state"
    for folder in (mounted, state):
        folder.mkdir()
    for name in ("audit-signing.key", "keys.pepper"):
        (mounted / name).write_text("a" * 64)
        (mounted / name).chmod(0o640)
    script = copying["args"][0].replace("/state/", f"{state}/").replace("/gateway-secrets", str(mounted))
    for _ in range(2):  # a restart
        subprocess.run([sys.executable, "-I", "-c", script], check=True)
    found = {path.name: path.stat().st_mode & 0o777 for path in (state / "gateway").iterdir()}
    assert found == {"audit-signing.key": 0o600, "keys.pepper": 0o600}


def test_new_secrets_fit_what_the_zones_are_given(tmp_path: Path) -> None:
    made = tmp_path / "private"
    script = [str(DEPLOY / "new-secrets.sh"), str(made), "soc", "blue"]
    subprocess.run(script, check=True, capture_output=True)
    secrets = list(yaml.safe_load_all((made / "kubernetes.yaml").read_text()))
    assert set(secrets[0]["stringData"]) == set().union(*ALLOWED_KEYS.values()) - {
        "database-url",
        "knowledge-url",
        "model-key",
    }
    assert {each["metadata"]["name"] for each in secrets[2:]} == {f"soc-{zone}-tls" for zone in ZONES}
    assert secrets[1]["metadata"]["name"] == values()["state"]["gatewaySecret"]
    gateway = tmp_path / "gateway"
    gateway.mkdir()
    for name, text in secrets[1]["data"].items():
        (gateway / name).write_bytes(base64.b64decode(text))
        (gateway / name).chmod(0o600)
    assert SigningKey.open(gateway).public.fingerprint
    assert read_pepper(gateway / "keys.pepper") is not None
    for zone in ZONES:
        leaf = x509.load_pem_x509_certificate((made / "tls" / zone / "tls.crt").read_bytes())
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert {zone, f"soc-{zone}", f"soc-{zone}.blue.svc"} <= set(names.get_values_for_type(x509.DNSName))
        assert (made / "tls" / zone / "tls.key").stat().st_mode & 0o077 == 0
        for line in (made / f"{zone}.env").read_text().splitlines():
            assert line.partition("=")[0] in SETTINGS
    (made / "ca.key").rename(tmp_path / "kept-elsewhere")  # as the script itself advises
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    again = subprocess.run(script, capture_output=True, text=True)
    assert again.returncode == 1
    assert "holds an authority already" in again.stderr
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before, "the pepper stays"
