"""The network policies of deploy/kubernetes/embedded.yaml, tried out: `python -m bench.deploy_isolation` (as root, on
Linux, with nftables). Each zone runs in a network namespace of its own, as its container would, and between them a
router lets pass what the policies say and nothing else. Then everybody tries to reach everybody and the outside, the
agent as a hijacker would who has its container, and a person asks a question through all of them.

With `--images FOLDER` each zone runs out of its image: FOLDER/agent, /web, /interceptor and /tools are their unpacked
root file systems, read-only, as the user that the Dockerfile names.

Exit code 1 names each connection that is not as the policies say. What this shows is that the product works under these
policies and what they leave to an attacker; that a cluster's network plugin keeps them is for the cluster to show.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml
from tests.support.containers import Container
from tests.support.network_policies import Way, ways
from tests.support.private_authority import Authority

from bench.deploy_rendering import RENDERED
from sentinel_rag.app.roles import FIRST_PORTS
from sentinel_rag.contracts.servers import OWN_SERVERS

ZONES = ("web", "agent", "interceptor", "tools-data", "tools-files", "tools-web")
INGRESS, OUTSIDE, DNS = "metadata.name=ingress-nginx", "outside", "k8s-app=kube-dns,metadata.name=kube-system"
ADDRESSES = {name: f"10.77.{place}.2" for place, name in enumerate((*ZONES, INGRESS, OUTSIDE), start=1)}
PORTS = {
    "web": [FIRST_PORTS["web"]],
    "agent": [FIRST_PORTS["agent"]],
    "interceptor": [FIRST_PORTS["interceptor"]],
    "tools-data": [8451, 8452],
    "tools-files": [8453],
    "tools-web": [8454],
    OUTSIDE: [443],
}
ROUTER = "sentinel-router"
PASSWORD = "a long enough password 7"
TRY = """
import json, socket, sys
found = []
for name, address, port in json.load(sys.stdin):
    try:
        socket.create_connection((address, port), timeout=2).close()
        found.append([name, port])
    except OSError:
        pass
print(json.dumps(found))
"""
SERVE = "import socket; s = socket.create_server(('{}', {})); [s.accept() for _ in iter(int, 1)]"
ASK = """
import json, ssl, sys, urllib.request
url, authority, name, password = sys.argv[1:5]
trusted = ssl.create_default_context(cafile=authority)
def post(path, body, headers):
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, context=trusted, timeout=60)
cookie = post("/sign-in", {"name": name, "password": password}, {}).headers["Set-Cookie"].partition(";")[0]
session = urllib.request.urlopen(urllib.request.Request(url + "/session", headers={"Cookie": cookie}), context=trusted)
csrf = json.load(session)["csrf_token"]
answer = post("/chat", {"message": "how many incidents are there?"}, {"Cookie": cookie, "X-CSRF-Token": csrf})
print(json.dumps(json.load(answer)))
"""


ENTER = """
import os, subprocess, sys
root, folder, _, *arguments = sys.argv[1:]
def mount(*words):
    subprocess.run(["mount", *words], check=True)
subprocess.run(["chown", "-R", "10001:10001", folder], check=True)
mount("--make-rprivate", "/")
mount("--bind", root, root)
mount("-t", "tmpfs", "tmpfs", root + "/tmp")
for place in (folder, "/dev", "/proc"):
    os.makedirs(root + place, exist_ok=True)
    mount("--rbind", place, root + place)
mount("-o", "remount,ro,bind", root)
os.chroot(root)
os.chdir(os.environ["HOME"])
os.setgroups([])
os.setgid(10001)
os.setuid(10001)
os.execv("/opt/sentinel/bin/sentinel", ["sentinel", *arguments])
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=None, help="unpacked root file systems of the images")
    images = parser.parse_args().images
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nft") is None:
        print("This needs root, ip (iproute2) and nft (nftables). As root: apt-get install iproute2 nftables")
        return 2
    manifests = list(yaml.safe_load_all((RENDERED / "embedded.yaml").read_text()))
    allowed = {way for way in ways(manifests) if DNS not in way}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        names = stack.enter_context(namespaces(allowed))
        urls = stack.enter_context(zones_apart(folder, names, images))
        outside = [sys.executable, "-c", SERVE.format(ADDRESSES[OUTSIDE], 443)]
        server = stack.enter_context(subprocess.Popen(["ip", "netns", "exec", names[OUTSIDE], *outside]))
        stack.callback(server.kill)
        faults = [*unanswered(), *compare(names, allowed)]
        print(f"{len(allowed)} ways are open, and every other of {len(ADDRESSES) * len(PORTS)} pairs is shut.")
        answer = asked(names, urls["web"], folder)
        print(f"A person asked through all zones: {answer['outcome']}; {answer['answer'].splitlines()[0]}")
        if answer["outcome"] != "answered":
            faults.append("the question was not answered")
    for fault in faults:
        print(f"NOT AS THE POLICIES SAY: {fault}")
    return 1 if faults else 0


def unanswered() -> list[str]:
    """What does not listen, as the router finds, whom no rule holds: a way is only shut if somebody is behind it."""
    everything = [(far, ADDRESSES[far], port) for far, ports in PORTS.items() for port in ports]
    found = json.loads(inside(ROUTER, [sys.executable, "-c", TRY], json.dumps(everything)))
    return [f"nobody listens at {far} {port}" for far, _, port in everything if [far, port] not in found]


def compare(names: dict[str, str], allowed: set[Way]) -> list[str]:
    """Every pair, tried from inside; what differs from `allowed`."""
    faults = []
    for source in (*ZONES, INGRESS):
        wanted = [(far, ADDRESSES[far], port) for far, ports in PORTS.items() if far != source for port in ports]
        done = inside(names[source], [sys.executable, "-c", TRY], json.dumps(wanted))
        reached = {(source, far, port) for far, port in json.loads(done)}
        expected = {way for way in allowed if way[0] == source}
        faults += [f"{way} is reached" for way in sorted(reached - expected)]
        faults += [f"{way} is not reached" for way in sorted(expected - reached)]
        told = ", ".join(f"{far} {port}" for _, far, port in sorted(reached)) or "nothing"
        print(f"{source:28} reaches {told}")
    return faults


def inside(namespace: str, command: list[str], text: str = "") -> str:
    done = subprocess.run(
        ["ip", "netns", "exec", namespace, *command], input=text, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def asked(names: dict[str, str], url: str, folder: Path) -> dict[str, str]:
    """The answer that a person gets who comes in through the ingress controller's namespace."""
    arguments = [url, str(folder / "ca.crt"), "dana", PASSWORD]
    found: dict[str, str] = json.loads(inside(names[INGRESS], [sys.executable, "-c", ASK, *arguments]))
    return found


@contextmanager
def namespaces(allowed: set[Way]) -> Iterator[dict[str, str]]:
    """A namespace for each zone, the ingress controller and the outside, joined by a router that keeps to `allowed`."""
    router = ROUTER
    names = {name: f"sentinel-{place}" for place, name in enumerate(ADDRESSES)}
    try:
        _ip("netns", "add", router)
        for place, (name, address) in enumerate(ADDRESSES.items()):
            namespace, gateway = names[name], address.rpartition(".")[0] + ".1"
            _ip("netns", "add", namespace)
            _ip("-n", router, "link", "add", f"z{place}", "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _ip("-n", router, "addr", "add", f"{gateway}/24", "dev", f"z{place}")
            _ip("-n", router, "link", "set", f"z{place}", "up")
            _ip("-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", namespace, "link", "set", device, "up")
            _ip("-n", namespace, "route", "add", "default", "via", gateway)
        inside(router, ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"])
        inside(router, ["nft", "-f", "-"], _rules(allowed))
        yield names
    finally:
        for namespace in (router, *names.values()):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True)


def _rules(allowed: set[Way]) -> str:
    lines = [
        f"ip saddr {ADDRESSES[source]} ip daddr {ADDRESSES[far]} tcp dport {port} accept"
        for source, far, port in sorted(allowed)
    ]
    # The router itself is nobody's way in either; a refusal is told, so that trying does not wait.
    return "\n".join(
        [
            "table inet policies {",
            "chain forward { type filter hook forward priority 0; policy drop;",
            "ct state established,related accept",
            *lines,
            "meta l4proto tcp reject with tcp reset",
            "}",
            "chain input { type filter hook input priority 0; policy drop; ct state established accept; }",
            "}",
        ]
    )


@contextmanager
def zones_apart(folder: Path, names: dict[str, str], images: Path | None) -> Iterator[dict[str, str]]:
    """The six zones of the chart, each in its namespace with the settings that its pod gets; their URLs."""
    authority = Authority(folder)
    token = {zone: f"{zone}-token-{'x' * 32}" for zone in ZONES}
    key = f"sr_agent_{'k' * 43}"
    urls = {zone: f"https://{ADDRESSES[zone]}:{PORTS[zone][0]}" for zone in ZONES}
    tools = {name: f"https://{ADDRESSES[_zone_of(name)]}:{8451 + place}" for place, name in enumerate(OWN_SERVERS)}
    given: dict[str, dict[str, str]] = {
        "tools-data": {"SENTINEL_WORKSPACE": "sample", "SENTINEL_ZONE_TOKEN": token["tools-data"]},
        "tools-files": {"SENTINEL_ZONE_TOKEN": token["tools-files"]},
        "tools-web": {"SENTINEL_ZONE_TOKEN": token["tools-web"]},
        "interceptor": {
            "SENTINEL_API_KEY": key,
            "SENTINEL_TOOLS": ",".join(f"{name}={url}" for name, url in tools.items()),
            "SENTINEL_TOOLS_TOKENS": ",".join(f"{name}={token[_zone_of(name)]}" for name in tools),
        },
        "agent": {
            "SENTINEL_URL": urls["interceptor"],
            "SENTINEL_API_KEY": key,
            "SENTINEL_ZONE_TOKEN": token["agent"],
        },
        "web": {
            "SENTINEL_URL": urls["interceptor"],
            "SENTINEL_AGENT_URL": urls["agent"],
            "SENTINEL_AGENT_TOKEN": token["agent"],
            "SENTINEL_WEB_URL": "https://sentinel.example.com",
        },
    }
    with ExitStack() as stack:
        for zone, settings in given.items():
            home = folder / ("interceptor" if zone == "web" else zone)
            home.mkdir(exist_ok=True)
            proof = authority.issue(zone, ADDRESSES[zone])
            role = "tools" if zone.startswith("tools-") else zone
            inside_of = ["ip", "netns", "exec", names[zone]]
            if images is not None:
                inside_of += ["unshare", "--mount", sys.executable, "-c", ENTER, str(images / role), str(folder)]
            made = Container(home, {**proof, **settings}, inside=inside_of)
            options = (
                ["--tools", ",".join(name for name in OWN_SERVERS if _zone_of(name) == zone)] if role == "tools" else []
            )
            if zone == "tools-data":
                _must(made.run("workspace", "generate", "--events", "2000"))
            stack.enter_context(made.serve(role, *options, listen=ADDRESSES[zone]))
            if zone == "interceptor":
                _must(made.run("users", "add", "dana", "--password-stdin", stdin=PASSWORD))
        yield urls


def _zone_of(tool: str) -> str:
    return "tools-data" if tool in ("sentinel", "knowledge") else f"tools-{tool}"


def _must(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise RuntimeError(done.stderr)


def _ip(*words: str) -> None:
    _must(subprocess.run(["ip", *words], capture_output=True, text=True))


if __name__ == "__main__":
    sys.exit(main())
