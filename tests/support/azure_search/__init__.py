"""A double of Azure AI Search on loopback: its wire, its refusals and its delays, as far as the store uses them.

What the double does not know it answers with 501, so that nothing is proven against a guess. `docs/knowledge.md` lists
what is proven against it only.
"""

from tests.support.azure_search.service import AzureSearchDouble, running_azure_search

__all__ = ["AzureSearchDouble", "running_azure_search"]
