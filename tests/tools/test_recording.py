"""The recorded terminal session: a page for each wait of the program, drawn as text that loads nothing."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

from tools.documentation.recording import drawing, screens

PROGRAM = """
input("\\x1b[1;31mBLOCKED\\x1b[0m <b>&amp; café\\n\\nEnter goes on, q leaves. ")
input("\\x1b[2J\\x1b[H\\x1b[7mtwo\\x1b[0m\\nYou are that person. Enter approves exactly this call, once. ")
"""


def test_each_wait_of_the_program_is_one_page_and_is_answered(tmp_path):
    pages = screens([sys.executable, "-c", PROGRAM], tmp_path)
    shown = [["".join(char.data for char in line).rstrip() for line in page] for page in pages]
    assert shown == [
        ["BLOCKED <b>&amp; café", "", "Enter goes on, q leaves."],
        ["two", "You are that person. Enter approves exactly this call, once."],
    ]
    drawn = drawing(pages)
    groups = ET.fromstring(drawn).findall("{http://www.w3.org/2000/svg}g")
    texts = ["".join(group.itertext()) for group in groups]
    assert len(groups) == 2
    assert "<b>&amp; café" in texts[0], "what the program writes is text, whatever it looks like"
    assert "two" in texts[1]
    assert "<script" not in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
