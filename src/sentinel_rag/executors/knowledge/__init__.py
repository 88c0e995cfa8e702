"""The executor of knowledge: what its process reads of Sentinel into the store."""
