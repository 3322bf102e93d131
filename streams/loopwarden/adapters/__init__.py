"""Loopwarden inside what people build agents with: a file each, none of which is imported before it is asked for.

Each says what happens, asks before a call, hands a refusal and a warning to the model, ends the run on an abort, and
lets everything pass while the broker or the sidecar is away.
"""
