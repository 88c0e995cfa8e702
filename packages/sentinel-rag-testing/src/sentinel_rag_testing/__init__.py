"""Fakes and suites for people who test their own agent, policy or tool server."""
