"""What keeps a sidecar from starting. The texts are for the user: what is wrong, and the way out."""


class SidecarError(Exception):
    """Any of the causes below."""


class MissingExtra(SidecarError):
    """The packages of the extra `sidecar` are not installed."""


class TokenMissing(SidecarError):
    """It is to listen where others can reach it, and anybody could speak for every run."""


class WrongToken(SidecarError):
    """The token cannot be read, or is none that fits a header."""


class CannotListen(SidecarError):
    """The address or the socket is not to be had."""


class CannotSpool(SidecarError):
    """Nothing can be written in the spool's folder."""
