"""The environment's settings, and what is said of values that cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loopwarden.worker import Settings, SettingsError


def test_what_the_environment_does_not_give_has_its_default() -> None:
    assert Settings.from_environment({}) == Settings()
    assert Settings.from_environment({"LOOPWARDEN_HELD_RUNS": " "}) == Settings(), "empty counts as not given"


def test_every_setting_is_read_from_its_variable(tmp_path: Path) -> None:
    given = {
        "LOOPWARDEN_BOOTSTRAP_SERVERS": "kafka://a:9092,b",
        "LOOPWARDEN_TOPIC_PREFIX": "team-",
        "LOOPWARDEN_CHECKPOINT_SECONDS": "2.5",
        "LOOPWARDEN_CHECKPOINT_EVENTS": "1000",
        "LOOPWARDEN_HELD_RUNS": "50",
        "LOOPWARDEN_SESSION_SECONDS": "10",
        "LOOPWARDEN_DATA_DIR": str(tmp_path),
    }
    assert Settings.from_environment(given) == Settings("a:9092,b", "team-", 2.5, 1000, 50, 10, tmp_path)


@pytest.mark.parametrize("misspelt", ["LOOPWARDEN_STROE", "LOOPWARDEN_STORES", "LOOPWARDEN_STOR"])
def test_a_misspelt_setting_is_refused_and_not_left_out_in_silence(misspelt: str) -> None:
    with pytest.raises(SettingsError, match=rf"{misspelt}: must be .* is LOOPWARDEN_STORE meant\?"):
        Settings.from_environment({misspelt: "rocksdb://"})


def test_variables_of_other_parts_are_let_be() -> None:
    others = ("SIDECAR_TOKEN", "WEB_TOKEN", "CACHE", "SIDECAR_URL", "KAFKA_BOOTSTRAP_SERVERS", "METRICS_PORT_HOST")
    assert Settings.from_environment({f"LOOPWARDEN_{name}": "localhost:9092" for name in others}) == Settings()


def test_the_usual_variable_of_kafka_is_read_where_ours_is_not_given() -> None:
    assert Settings.from_environment({"KAFKA_BOOTSTRAP_SERVERS": "k:1"}).bootstrap_servers == "k:1"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("BOOTSTRAP_SERVERS", "host:port", "must be HOST:PORT"),
        ("BOOTSTRAP_SERVERS", "a:9092,", "must be HOST:PORT"),
        ("BOOTSTRAP_SERVERS", "a:0", "must be HOST:PORT"),
        ("TOPIC_PREFIX", "team/", "must consist of the characters Kafka allows"),
        ("CHECKPOINT_SECONDS", "soon", "must be a number of seconds from 0.01 to 60"),
        ("CHECKPOINT_SECONDS", "nan", "must be a number of seconds from 0.01 to 60"),
        ("CHECKPOINT_EVENTS", "0", "must be a whole number above 0"),
        ("HELD_RUNS", "-5", "must be a whole number above 0"),
        ("SESSION_SECONDS", "86400", "must be a number of seconds from 1 to 1800"),
        ("DATA_DIR", __file__, "must be a folder"),
        ("STORE", "redis://", "must be one of memory://, rocksdb://"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_variables_name(name: str, value: str, rule: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environment({f"LOOPWARDEN_{name}": value})
    message = str(refused.value)
    assert message.startswith(f"LOOPWARDEN_{name}: ")
    assert rule in message
    assert value in message


def test_rocksdb_is_one_setting_and_says_which_extra_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.from_environment({"LOOPWARDEN_STORE": "rocksdb://"}).store == "rocksdb://"
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(SettingsError, match=r"LOOPWARDEN_STORE: needs .* \(pip install 'loopwarden\[rocksdb\]'\)"):
        Settings.from_environment({"LOOPWARDEN_STORE": "rocksdb://"})


def test_without_its_extra_the_worker_says_how_to_install_it() -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('faust', 'aiokafka'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name in ('faust', 'aiokafka') else real(name)\n"
        "try:\n"
        "    import loopwarden.worker\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingExtra")
    assert "pip install 'loopwarden[worker]'" in done.stdout
