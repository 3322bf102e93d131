"""docs/post-mortem.md: every command of it, in its order, says what the page shows. Only times may differ."""

from __future__ import annotations

import re
import secrets
import shlex
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .newcomer import HANG_S, ROOT, Newcomer
from .pages import blocks, commands_in, files, told

if TYPE_CHECKING:
    from .conftest import SharedBroker

DOCS = ROOT / "docs"
PAGE = (DOCS / "post-mortem.md").read_text(encoding="utf-8")
FIRST_WORDS, UP = blocks(PAGE, "sh")
COLUMNS = 80
LARGEST_PICTURE = 150_000

TIMES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?|[\d,]+ events/s")


@pytest.fixture(scope="module")
def newcomer(broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """All that the page's `loopwarden up` starts, but on the broker of all tests, with topics of its own."""
    (up,) = commands_in(UP)
    newcomer = Newcomer(
        tmp_path_factory.mktemp("post-mortem"),
        [*shlex.split(up)[1:], "--broker", f"kafka://{broker.bootstrap_servers}"],
        LOOPWARDEN_BOOTSTRAP_SERVERS=broker.bootstrap_servers,
        LOOPWARDEN_TOPIC_PREFIX=f"t{secrets.token_hex(4)}-",
    )
    try:
        newcomer.wait_for("Loopwarden is up")
        yield newcomer
        assert newcomer.stop() == 0, newcomer.log.read_text(encoding="utf-8")
    finally:
        newcomer.kill()


def plain(newcomer: Newcomer, shown: str) -> str:
    """Return what a terminal shows without times, and as on a cluster of one's own."""
    shown = shown.replace(newcomer.environment["LOOPWARDEN_BOOTSTRAP_SERVERS"], "127.0.0.1:9092")
    shown = shown.replace(newcomer.environment["LOOPWARDEN_TOPIC_PREFIX"], "")
    return TIMES.sub("TIME", "\n".join(line.rstrip() for line in shown.splitlines()))


def wait_until_judged(newcomer: Newcomer) -> None:
    """Wait as long as a person takes to type the next command, or longer."""
    deadline = time.monotonic() + HANG_S
    while "not judged yet" in (done := newcomer.run("loopwarden replay")).stdout + done.stderr:
        assert time.monotonic() < deadline, done
    assert done.returncode == 0, done


def test_every_command_says_what_the_page_shows(newcomer: Newcomer) -> None:
    for language in ("json5", "python"):
        for name, text in files(PAGE, language).items():
            (newcomer.folder / name).write_text(text, encoding="utf-8")
    steps = told(PAGE)
    assert len(steps) > 10
    for command, shown in steps:
        code, came = newcomer.type(command, COLUMNS)
        assert plain(newcomer, came) == plain(newcomer, shown), command
        assert code == 0, command
        if command.startswith("loopwarden publish"):
            wait_until_judged(newcomer)


def test_what_is_typed_at_3_am_is_what_the_page_then_explains() -> None:
    assert set(commands_in(FIRST_WORDS)) <= {command for command, _ in told(PAGE)}


def test_no_block_of_the_page_is_left_out() -> None:
    known = {"sh", "console", "json5", "python"}
    assert set(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)) == known
    assert len(blocks(PAGE, "json5")) + len(blocks(PAGE, "python")) == 2
    assert set(files(PAGE, "json5")) | set(files(PAGE, "python")) == {"stricter.json5", "again.py"}


def test_its_pictures_are_small() -> None:
    pictures = [DOCS / link for link in re.findall(r"\]\((\S+\.png)\)", PAGE)]
    assert len(pictures) == 2
    for picture in pictures:
        content = picture.read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) <= LARGEST_PICTURE
