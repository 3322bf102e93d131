"""What a user got wrong, where no other module has a name for it."""

from __future__ import annotations


class Mistake(Exception):
    """Its text says what is wrong and the way out; the command ends with exit code 2."""
