"""Files and the web through all zones, with the installed command: what a person asks, and what a session may send."""

from __future__ import annotations

from typing import Any

from test_e2e_zones import post


def test_general_knowledge_is_answered_from_the_shipped_pages(sample: Any) -> None:
    answer = sample.json("ask", "I want to know what is a panda")
    assert answer["outcome"] == "answered"
    assert "bear" in answer["answer"]
    assert "sample page of this product" in answer["answer"]
    assert [piece["pointer"] for piece in answer["evidence"]] == [
        "/results/0/snippet",
        "/results/0/title",
        "/results/0/url",
    ]
    records = sample.run("audit", "show", answer["tools"][0]["audit_id"], "--json").stdout
    assert "web_search_default" in records


def test_a_public_file_is_shown_and_a_confidential_one_needs_a_person(sample: Any) -> None:
    shown = sample.json("ask", "read the file public/handbook.md")
    assert shown["tables"][0]["rows"][0] == ["# Security handbook of Example Industries (sample)"]
    listed = sample.json("ask", "list the files in public/")
    assert "public/handbook.md" in [row[0] for row in listed["tables"][0]["rows"]]
    denied = sample.run("ask", "--details", "read the file confidential/salaries.csv")
    assert denied.returncode == 4
    assert "waits for a person's yes (rule file_read_confidential)" in denied.stdout
    assert "Sample Person" not in denied.stdout


def test_a_folder_of_the_operators_own_is_served(generated: Any, tmp_path: Any) -> None:
    folder = tmp_path / "mine"
    (folder / "public").mkdir(parents=True)
    (folder / "public" / "note.txt").write_text("written by the operator")
    home = generated.copy(tmp_path / "home").home
    answer = type(generated)(home, {"SENTINEL_FILES_ROOT": str(folder)}).json("ask", "read the file public/note.txt")
    assert answer["tables"][0]["rows"] == [["written by the operator"]]
    assert "sample" not in answer["answer"]


def test_a_session_that_has_read_the_workspace_cannot_search_the_web(sample: Any) -> None:
    status = sample.json("status")
    key = sample.environment["SENTINEL_API_KEY"]

    def execute(session: str, tool: str, **arguments: Any) -> tuple[int, Any]:
        body = {"session_id": session, "tool_name": tool, "args": arguments}
        return post(status["interceptor"]["url"], "/v1/proxy-execute", body, {"X-API-Key": key})

    assert execute("e2e-files-and-web", "query_incidents", limit=1)[0] == 200
    code, body = execute("e2e-files-and-web", "web_search", query="who is m.keller")
    assert (code, body["reason"], body["rule_id"]) == (403, "sink_label", "web_search_default")
    assert execute("e2e-files-and-web", "file_read", file_path="public/handbook.md")[0] == 200
