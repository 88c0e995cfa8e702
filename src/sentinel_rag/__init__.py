"""Sentinel RAG: questions about Microsoft Sentinel, answered through a gateway that labels, decides and records.

The package imports nothing by itself, so that `sentinel --help` stays instant; start reading at `contracts`.
"""

__version__ = "0.1.0"
