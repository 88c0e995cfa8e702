"""Who answers a search: the pages that are shipped, or a service of the operator's choice in its own wire format."""
