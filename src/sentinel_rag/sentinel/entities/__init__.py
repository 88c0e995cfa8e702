"""Accounts, hosts, addresses and the rest that an alert names: read from its JSON, merged, and shown."""
