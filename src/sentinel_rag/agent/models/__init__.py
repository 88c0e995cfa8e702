"""Models that answer: the port, its adapter for the OpenAI wire, retries, tiers and what an answer costs.

Nothing here runs a tool, reads a setting or imports a provider's library before the first request.
"""
