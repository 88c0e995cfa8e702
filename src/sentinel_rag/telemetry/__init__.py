"""Structured logs with scrubbing."""
