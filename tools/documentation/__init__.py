"""Makes what of the documentation is made and not written: the reference, the cookbook's answers, the site.

`python -m tools.documentation reference | cookbook | site`. Above everything: it may import any part of the product,
and no part imports it. It is not shipped.
"""
