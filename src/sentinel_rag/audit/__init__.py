"""The journal: intent and outcome of each call in a hash chain."""
