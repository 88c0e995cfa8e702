"""What crosses a border between zones: frozen values and ports, without I/O.

Every other package may import these modules; they import only each other and the standard library. A name that two
zones must agree on (a tool's parameter, a field of a result, a reason code) is declared here and nowhere else.
"""
