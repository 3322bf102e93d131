"""What can become of an event, and of a setting. None of it reaches an agent unless it asks for it (`strict=True`).

GatewayError
  NotSent        the event is not in the log, and will not be
    Dropped      to make room for newer ones, or because the gateway was closed while the broker was away
    Refused      the broker refused it, or it could not be written
  Spooled        the event lies in a file and is sent when the broker is back, perhaps by a later process
"""


class GatewayError(Exception):
    """Any of the causes above."""


class NotSent(GatewayError):
    """The event is not in the log, and will not be."""


class Dropped(NotSent):
    """To make room, or because the gateway was closed while the broker was away."""


class Refused(NotSent):
    """The broker refused the event, or it could not be written."""


class Spooled(GatewayError):
    """The event lies in a file and is sent when the broker is back, perhaps by a later process."""
