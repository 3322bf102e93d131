import pytest


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python 3.0.12 reads its schemas with importlib.resources.read_text, which Python 3.11 and 3.12 deprecate.
    config.addinivalue_line("filterwarnings", "ignore:(read_text|open_text) is deprecated:DeprecationWarning")
