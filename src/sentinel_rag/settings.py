"""Settings: the only reader of the environment and of `.env`.

Filled in by the house; see `Settings`.
"""
