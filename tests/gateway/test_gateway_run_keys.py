"""Keys of one run stand beside those of the store, and neither opens what the other may."""

from __future__ import annotations

from pathlib import Path

from sentinel_rag.gateway.store import KeyState, KeyStore, Principal, RefusedKey, RunKeys, Scope, run_principal


def test_handed_over_and_stored_keys_are_both_known(tmp_path: Path) -> None:
    stored = KeyStore(tmp_path / "keys.sqlite")
    key, info = stored.create([Scope.AUDIT])
    ring = RunKeys({"chosen by the user": Principal("agent", frozenset({Scope.EXECUTE}))}, stored=stored)
    run, kept = ring.verify("chosen by the user"), ring.verify(key)
    assert run is not None
    assert kept is not None
    assert (run.key_id, run.scopes) == ("agent", {Scope.EXECUTE})
    assert (kept.key_id, kept.scopes) == (info.key_id, {Scope.AUDIT})
    for wrong in (None, "", "chosen", "chosen by the user ", "Chosen by the user", key[:-1]):
        assert ring.verify(wrong) is None
    assert ring.check("chosen") == RefusedKey(KeyState.UNKNOWN)
    stored.revoke(info.key_id)
    assert ring.check(key) == RefusedKey(KeyState.REVOKED, info.key_id)
    stored.close()


def test_a_run_key_reads_under_the_names_it_was_handed_and_a_stored_one_under_its_own(tmp_path: Path) -> None:
    stored = KeyStore(tmp_path / "keys.sqlite")
    _, info = stored.create([Scope.EXECUTE], readers=["hr"])
    person = run_principal({"key_id": "user", "scopes": ["user"], "clearance": "HIGH", "readers": ["tier2"]})
    ring = RunKeys({"secret": person}, stored=stored)
    assert ring.readers_of("user") == {"tier2"}
    assert ring.readers_of(info.key_id) == {"hr"}
    assert ring.readers_of("agent") == frozenset()
    stored.close()
