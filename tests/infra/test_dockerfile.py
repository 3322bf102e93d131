"""No container engine runs here: what the image is made of is read from its Dockerfile."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]

NOT_IN_THE_IMAGE = {"local", "langchain", "mcp", "openai-agents", "otel"}
"""The extras that bring Java, for a broker on one's own machine, and what lives in an agent's own process."""


class Instruction(NamedTuple):
    name: str
    arguments: str


def instructions(text: str) -> list[Instruction]:
    """A Dockerfile's instructions in order, continued lines joined, without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def stages() -> list[list[Instruction]]:
    """The Dockerfile's instructions by stage."""
    found: list[list[Instruction]] = []
    for instruction in instructions((ROOT / "infra" / "Dockerfile").read_text()):
        if instruction.name == "FROM":
            found.append([])
        found[-1].append(instruction)
    return found


def arguments(stage: list[Instruction], name: str) -> list[str]:
    return [instruction.arguments for instruction in stage if instruction.name == name]


def pinned(lock: str) -> set[tuple[str, str]]:
    """Names and versions in a file of locked requirements."""
    text = (ROOT / "requirements" / lock).read_text()
    return set(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))


def test_the_image_is_one_python_in_two_stages_pinned_to_its_patch_release() -> None:
    build, final = (arguments(stage, "FROM")[0] for stage in stages())
    build_tag = re.fullmatch(r"python:(3\.\d+\.\d+)-(\w+) AS build", build)
    final_tag = re.fullmatch(r"python:(3\.\d+\.\d+)-slim-(\w+)", final)
    assert build_tag and final_tag
    assert build_tag.groups() == final_tag.groups()


def test_it_runs_as_a_user_that_has_a_number_and_is_not_root() -> None:
    *_, user = arguments(stages()[-1], "USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    assert f"--uid {user.split(':')[0]} " in arguments(stages()[-1], "RUN")[0]


def test_nothing_is_installed_or_built_in_the_final_stage() -> None:
    final = stages()[-1]
    assert arguments(final, "COPY") == ["--from=build /opt/loopwarden /opt/loopwarden"]
    for line in arguments(final, "RUN"):
        assert not re.search(r"pip|apt|gcc|curl|wget", line)


def test_it_runs_loopwarden_and_says_how_where_nothing_is_asked() -> None:
    final = stages()[-1]
    assert arguments(final, "ENTRYPOINT") == ['["loopwarden"]']
    assert arguments(final, "CMD") == ['["--help"]']
    assert arguments(final, "HEALTHCHECK") == ["NONE"]


def test_all_that_is_copied_is_there_and_let_through() -> None:
    let_through = {
        line.removeprefix("!")
        for line in (ROOT / "infra" / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {source for line in arguments(stages()[0], "COPY") for source in line.split()[:-1]}
    assert copied == let_through
    for source in copied:
        assert (ROOT / source).exists()


def test_every_package_from_elsewhere_is_installed_by_its_hash() -> None:
    installs = [part for line in arguments(stages()[0], "RUN") for part in line.split("&&") if " install " in part]
    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or "--no-index" in line


@pytest.mark.parametrize("lock", ["build.txt", "image.txt"])
def test_what_is_installed_is_what_the_tests_run_with(lock: str) -> None:
    assert pinned(lock)
    assert pinned(lock) <= pinned("dev.txt")


def test_the_image_has_the_packages_of_every_extra_but_those_for_a_broker_and_for_agents() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"]]
    for extra in extras.keys() - NOT_IN_THE_IMAGE:
        needed += extras[extra]
    names = {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower() for requirement in needed}
    assert names <= {name for name, _ in pinned("image.txt")}
    backend = {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in project["build-system"]["requires"]}
    assert backend <= {name for name, _ in pinned("build.txt")}
