"""Shipped fakes for people who test against Sentinel RAG."""
