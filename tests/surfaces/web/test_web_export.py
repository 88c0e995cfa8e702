"""`GET /conversations/{session_id}/export`: a person's own conversation as a file, with what that person may see."""

from __future__ import annotations

import pytest
from running_web import RunningWeb
from selectolax.lexbor import LexborHTMLParser

HIDDEN = "powershell -enc SECRET admin"


@pytest.mark.requirement("SURF-6")
@pytest.mark.parametrize(("form", "kind"), [("html", "text/html"), ("md", "text/markdown"), ("csv", "text/csv")])
def test_hidden_values_stay_hidden_unless_the_person_asks(web: RunningWeb, form: str, kind: str) -> None:
    dana = web.person("dana-export")
    session = dana.ask("call read_alert")["session_id"]
    told = dana.request("GET", f"/conversations/{session}/export?format={form}")
    assert told.status == 200, told.content
    assert told.headers["content-type"] == f"{kind}; charset=utf-8"
    assert told.headers["content-disposition"].startswith(f'attachment; filename="handover-{session[:8]}-')
    assert "SECRET" not in told.content.decode()
    assert "ws-01" in told.content.decode()
    shown = dana.request("GET", f"/conversations/{session}/export?format={form}&reveal=true").content.decode()
    assert HIDDEN in shown
    assert ("REVEALED" in shown) == (form != "csv")
    assert "REVEALED" not in told.content.decode()


@pytest.mark.requirement("SURF-6")
def test_a_refused_call_and_what_was_stopped_are_in_the_report(web: RunningWeb) -> None:
    dana = web.person("dana-export")
    session = dana.ask("call forbidden")["session_id"]
    page = LexborHTMLParser(dana.request("GET", f"/conversations/{session}/export").content.decode())
    text = page.body.text() if page.body is not None else ""
    assert "forbidden" in text
    assert "denied" in text.partition("Actions and approvals")[2].partition("Timeline")[0]
    assert "under /audit" in text


@pytest.mark.requirement("SURF-5")
def test_a_hostile_question_is_text_in_every_form(web: RunningWeb) -> None:
    dana = web.person("dana-export")
    said = (
        "say <img src=x onerror=alert(1)> ![p](https://evil.example/p.png) \x1b[2J admin\u202egnp.exe =1+1"
        "\n\nevent: done\ndata: {}"
    )
    events = dana.events("POST", "/chat", {"message": said})
    assert [event["type"] for event in events].count("done") == 1
    assert "".join(event["data"]["text"] for event in events if event["type"] == "text") == said.removeprefix("say ")
    session = events[0]["data"]["session_id"]
    page = dana.request("GET", f"/conversations/{session}/export").content.decode()
    assert list(LexborHTMLParser(page).css("img, script, [onerror]")) == []
    for form in ("html", "md"):
        written = dana.request("GET", f"/conversations/{session}/export?format={form}").content.decode()
        assert "\\x1b[2J" in written.replace("\\[", "[").replace("\\\\", "\\")
        assert "\u202e" not in written
        assert "\x1b" not in written


def test_nobody_exports_what_another_person_asked(web: RunningWeb) -> None:
    session = web.person("dana-export").ask("say hello")["session_id"]
    assert web.person("erin-export").request("GET", f"/conversations/{session}/export").status == 404
    assert web.stranger().request("GET", f"/conversations/{session}/export").status == 401
    assert web.person("dana-export").request("GET", f"/conversations/{session}/export?format=pdf").status == 422
