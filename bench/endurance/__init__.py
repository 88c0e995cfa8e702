"""A day of the product in minutes, in four parts: `python -m bench endurance`.

`steady` makes calls at one gateway that is never restarted; `kills` ends gateways under load, with clocks that
jump; `faults` takes away the tool server, the disk and the database; `zones` kills each process of `sentinel up` in
turn. Each returns what it measured, with `violations`: sentences, of which there must be none.
"""
