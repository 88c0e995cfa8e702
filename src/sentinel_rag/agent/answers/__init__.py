"""Answers by citation: results as numbered rows, what a writer cites of them, and the check that compares both.

The check says of each sentence what code can say (`contracts.evidence.SentenceState`); it erases and replaces nothing.
"""
