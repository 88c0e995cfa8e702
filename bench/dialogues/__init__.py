"""Dialogues about things that were shown, and how they are judged; see `bench_dialogues`."""
