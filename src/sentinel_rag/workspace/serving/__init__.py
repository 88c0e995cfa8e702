"""The HTTP side of the embedded workspace, one module for each partner: query clients, identity, operators.

`workspace.server` puts them together; nobody else imports from here.
"""
