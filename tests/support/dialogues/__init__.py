"""Dialogues in which people point at things that were shown, to try an analyst on.

`people` makes them up from what the screen shows, two files hold some that were written by hand, `running` has them
with an analyst and judges each reference from outside: by the footnote and by the calls that reach the gateway.
"""
