"""The `servers` of the policy file: what is read, and every fault with its line and no credential in the message."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.gateway.policy import ServerSpec, parse_policy
from sentinel_rag.gateway.policy.flow_section import unknown_servers

TOOLS = "tools: [{name: list_tables}]\n"


def problems(servers: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_policy(f"{TOOLS}servers:\n{servers}")
    return [problem.removeprefix("policy:") for problem in caught.value.problems]


def test_servers_are_read() -> None:
    policy = parse_policy(f"""{TOOLS}
servers:
  - name: tickets
    url: https://tickets.example.com/mcp
    token_variable: SENTINEL_UPSTREAM_TICKETS
    era: "2025-11-25"
  - {{name: near, url: "http://127.0.0.1:8080/mcp"}}
  - {{name: plain, url: "http://10.0.0.9/mcp", insecure: true}}
  - name: notes
    command: [npx, -y, "@example/notes"]
    environment: {{NOTES_ROOT: /srv/notes}}
    secret_environment: {{NOTES_KEY: SENTINEL_UPSTREAM_NOTES}}
    shared: true
""")
    assert list(policy.server_specs.values()) == [
        ServerSpec(
            "tickets",
            url="https://tickets.example.com/mcp",
            token_variable="SENTINEL_UPSTREAM_TICKETS",
            era="2025-11-25",
            line=4,
        ),
        ServerSpec("near", url="http://127.0.0.1:8080/mcp", line=8),
        ServerSpec("plain", url="http://10.0.0.9/mcp", line=9),
        ServerSpec(
            "notes",
            command=("npx", "-y", "@example/notes"),
            environment={"NOTES_ROOT": "/srv/notes"},
            secret_environment={"NOTES_KEY": "SENTINEL_UPSTREAM_NOTES"},
            shared=True,
            line=10,
        ),
    ]
    assert parse_policy(TOOLS).server_specs == {}


NAMELESS = "here stands the name of a variable such as SENTINEL_UPSTREAM_TOKEN, never the credential itself"


@pytest.mark.requirement("GATE-2")
@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("{name: x}", "3: the server 'x' needs either a url or a command"),
        ("{name: x, url: 'https://a.b', command: [y]}", "3: the server 'x' needs either a url or a command"),
        ("{url: 'https://a.b'}", "3: a server has no name"),
        ("{name: x, ulr: 'https://a.b'}", "3: unknown key 'ulr' in a server; did you mean 'url'?"),
        ("x", "3: a server must be a mapping, not a text"),
        ("{name: sentinel, command: [y]}", "3: the server 'sentinel' is part of the product and needs no entry: "),
        ("{name: web, command: [y]}", "3: the server 'web' is part of the product"),
        ("{name: x, url: 'http://tickets.example.com'}", "3: plain http to another machine: use https"),
        ("{name: x, url: 'http://10.0.0.9'}", "3: plain http to another machine"),
        ("{name: x, url: 'http://localhost.example.com'}", "3: plain http to another machine"),
        ("{name: x, url: 'https://me:hunter2@a.b'}", "3: a URL with a user or password in it is not taken"),
        ("{name: x, url: 'file:///etc/passwd'}", "3: 'file:///etc/passwd' is not an http or https URL"),
        ("{name: x, url: 'https://a.b:99999'}", "3: 'https://a.b:99999' is not a URL"),
        ("{name: x, url: 'https://a.b', token_variable: hunter2-hunter2}", f"3: {NAMELESS}"),
        ("{name: x, url: 'https://a.b', token_variable: HOME}", f"3: {NAMELESS}"),
        ("{name: x, url: 'https://a.b', shared: true}", "3: shared belongs to a server with a command"),
        ("{name: x, command: [y], token_variable: SENTINEL_UPSTREAM_X}", "3: token_variable belongs to a server with"),
        ("{name: x, command: y}", "3: command must be a list, not a text"),
        ("{name: x, command: []}", "3: command must be a list of texts"),
        ("{name: x, command: [y, 1]}", "3: command must be a list of texts"),
        ("{name: x, command: [./y]}", "3: the program './y' must be a name to be found on PATH, or an absolute path"),
        ("{name: x, command: [y], environment: [A]}", "3: environment must be a mapping of names to texts, not a list"),
        ("{name: x, command: [y], environment: {A: 1}}", "3: environment: A must be a text, not a number"),
        ("{name: x, command: [y], environment: {'A=B': c}}", "3: 'A=B' cannot be the name of an environment variable"),
        ("{name: x, command: [y], secret_environment: {A: hunter2}}", f"3: {NAMELESS}"),
        (
            "{name: x, command: [y], environment: {A: b}, secret_environment: {A: SENTINEL_UPSTREAM_A}}",
            "3: A stands in environment and in secret_environment",
        ),
        ("{name: x, command: [y], era: '2024-11-05'}", "3: unknown era '2024-11-05'"),
        ("{name: x, command: [y]}\n  - {name: x, command: [z]}", "4: the server 'x' stands twice; first on line 3"),
    ],
)
def test_a_fault_is_told_with_its_line(server: str, problem: str) -> None:
    found = problems(f"  - {server}\n")
    assert any(line.startswith(problem) for line in found), found
    assert "hunter2" not in " ".join(found)


def test_a_tool_on_a_server_that_nobody_declares_is_found() -> None:
    policy = parse_policy("""
tools: [{name: list_tables}, {name: a, server: tickets}, {name: b, server: tikets}, {name: c, server: web}]
servers: [{name: tickets, command: [x]}]
""")
    assert unknown_servers(policy) == [
        "The tool 'b' is on the server 'tikets', which is not in servers; did you mean 'tickets'?"
    ]
