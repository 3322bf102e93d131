"""What keeps the sidecar from starting, beside what keeps any service from it."""

from loopwarden.serving import ServingError


class CannotSpool(ServingError):
    """Nothing can be written in the spool's folder."""
