"""What keeps a service from starting. The texts are for the user: what is wrong, and the way out."""


class ServingError(Exception):
    """Any of the causes below."""


class MissingExtra(ServingError):
    """The packages of the service's extra are not installed."""


class TokenMissing(ServingError):
    """It is to listen where others can reach it, and anybody could use it."""


class WrongToken(ServingError):
    """The token cannot be read, or is none that fits a header."""


class CannotListen(ServingError):
    """The address or the socket is not to be had."""
