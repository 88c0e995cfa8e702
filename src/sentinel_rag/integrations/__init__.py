"""Adapters that other people's agents import: the tools of a gateway as tools of their framework.

They live in a process that is not ours, beside code we do not know, so they know contracts and the gateway's wire and
nothing else of this product. They decide nothing: what an adapter sends, the gateway judges. See docs/langchain.md.
"""
