"""What keeps an adapter from being imported."""


class MissingExtra(ImportError):
    """The library that the adapter is for is not installed; the message names the extra."""

    def __init__(self, extra: str, missing: ImportError) -> None:
        super().__init__(f"{missing.msg}: this adapter needs it: pip install 'loopwarden[{extra}]'", name=missing.name)
