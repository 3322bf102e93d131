"""The import rules of design.md ("Where the code lives") and of the map in CONTRIBUTING.md, read off the code."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "schemas", ROOT / "streams")

CONTRACT = "loopwarden_schemas"
JUDGE = "loopwarden.judge"

THIRD_PARTY = {
    CONTRACT: {"pydantic", "pydantic_core", "msgspec", "msgpack", "xxhash", "orjson", "json5"},
    # Structs, and the mark of a field that was not given: both are how the contract's events are spelled.
    JUDGE: {"msgspec"},
}
"""What the contract and the judge may import from others."""

OURS = {
    CONTRACT: set[str](),
    JUDGE: {CONTRACT},
    # How a cluster is reached, and its topics are looked at, is the same for a worker.
    "loopwarden.worker": {CONTRACT, JUDGE, "loopwarden.client"},
    "loopwarden.client": {CONTRACT},
    # A client of the cluster it starts, to know when it is ready: a step sideways, as the runner's.
    "loopwarden.broker": {CONTRACT, "loopwarden.client"},
    "loopwarden.gateway": {CONTRACT, "loopwarden.client"},
    # A runner's refusals and its certainty are about events, which the gateway sends.
    "loopwarden.runner": {CONTRACT, "loopwarden.client", "loopwarden.gateway"},
    # What the HTTP services share.
    "loopwarden.serving": {CONTRACT},
    "loopwarden.sidecar": {
        CONTRACT,
        "loopwarden.client",
        "loopwarden.gateway",
        "loopwarden.runner",
        "loopwarden.serving",
    },
    # What an agent's framework is given inside its process: the sidecar's work, without its HTTP.
    "loopwarden.adapters": {CONTRACT, "loopwarden.client", "loopwarden.gateway", "loopwarden.runner"},
    "loopwarden.importers": {CONTRACT},
    "loopwarden.recordings": set[str](),
    "loopwarden.replay": {CONTRACT, JUDGE},
    "loopwarden.report": {CONTRACT, JUDGE},
    "loopwarden.web": {
        CONTRACT,
        JUDGE,
        "loopwarden.client",
        "loopwarden.replay",
        "loopwarden.report",
        "loopwarden.serving",
    },
    # Told runs are folded as a file's are.
    "loopwarden.testing": {CONTRACT, "loopwarden.replay"},
}
"""What each package may import of ours besides itself. `loopwarden.cli` may import all, and nobody imports it."""

PURE = set(
    "__future__ base64 collections collections.abc dataclasses decimal enum functools itertools math operator re "
    "struct types typing".split()
)
"""Standard library without clock, chance, files, network, environment, threads or log: what the judge may use."""

JUDGED_CONTRACT = set("canonical digests policy state structs verdicts".split())
"""The contract's modules that a fold needs; they are as pure as the judge itself."""

LAYERS = {
    "canonical": set[str](),
    "digests": {"canonical"},
    "events": set[str](),
    "verdicts": set[str](),
    "structs": set[str](),
    "codec": {"events", "structs"},
    "policy": {"digests"},
    "policy_models": {"policy"},
    "policy_effect": {"policy"},
    "json5_text": {"canonical"},
    "policy_own_part": {"policy"},
    "policy_file": {"policy", "policy_models", "policy_effect", "json5_text"},
    "asyncapi": {"topics"},
    "json_schemas": {"asyncapi", "events", "verdicts", "policy_models"},
    "dead_letters": set[str](),
    "state": set[str](),
    "topics": set[str](),
    "topic_differences": {"topics"},
}
"""Which module of the contract may know which."""


def name_of(path: Path) -> str:
    root = next(root for root in SOURCES if root in path.parents)
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of ours by its name."""
    paths = (path for root in SOURCES for path in sorted(root.rglob("*.py")))
    return {name_of(path): ast.parse(path.read_text("utf-8"), str(path)) for path in paths}


def imports(name: str, *, when_loaded: bool = False) -> Iterator[str]:
    """Yield what a module imports, wherever in it, as full names; of `from a import b` it is a.b where b is a module.

    when_loaded: only what is imported as soon as the module is.
    """
    nodes = list(ast.iter_child_nodes(modules()[name]))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else str(node.module)
        elif when_loaded and (isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or is_for_types_only(node)):
            continue
        nodes.extend(ast.iter_child_nodes(node))


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def package_of(name: str) -> str:
    """The package whose rules hold for a module: the contract, or the package right below `loopwarden`."""
    first, *rest = name.split(".")
    return f"{first}.{rest[0]}" if first == "loopwarden" and rest else first


def is_ours(name: str) -> bool:
    return name.split(".")[0] in ("loopwarden", CONTRACT)


def of_package(package: str) -> list[str]:
    return [name for name in modules() if package_of(name) == package]


def test_every_package_has_a_rule() -> None:
    assert {package_of(name) for name in modules()} == {*OURS, "loopwarden", "loopwarden.cli"}


@pytest.mark.parametrize("package", OURS)
def test_a_package_imports_of_ours_only_what_it_may(package: str) -> None:
    for name in of_package(package):
        others = {package_of(imported) for imported in imports(name) if is_ours(imported)} - {package}
        assert others <= OURS[package], name


@pytest.mark.parametrize("package", OURS)
def test_no_step_sideways_is_allowed_that_nobody_takes(package: str) -> None:
    used = {package_of(imported) for name in of_package(package) for imported in imports(name) if is_ours(imported)}
    assert OURS[package] - {CONTRACT, JUDGE} <= used


@pytest.mark.parametrize("package", THIRD_PARTY)
def test_the_contract_and_the_judge_import_of_others_only_what_they_may(package: str) -> None:
    for name in of_package(package):
        foreign = {imported.split(".")[0] for imported in imports(name) if not is_ours(imported)}
        assert foreign - sys.stdlib_module_names <= THIRD_PARTY[package], name


def test_the_judge_has_no_clock_no_chance_no_files_no_network_and_no_log() -> None:
    reached = [*of_package(JUDGE), *(f"{CONTRACT}.{module}" for module in sorted(JUDGED_CONTRACT))]
    for name in reached:
        standard = {imported for imported in imports(name) if imported.split(".")[0] in sys.stdlib_module_names}
        assert standard <= PURE, name


def test_the_judge_prints_opens_and_evaluates_nothing() -> None:
    forbidden = {"open", "print", "input", "eval", "exec", "compile", "__import__", "breakpoint", "id", "hash"}
    for name in of_package(JUDGE):
        called = {node.id for node in ast.walk(modules()[name]) if isinstance(node, ast.Name)}
        assert not called & forbidden, name


def test_the_judge_reaches_only_the_pure_modules_of_the_contract() -> None:
    known = {imported for name in of_package(JUDGE) for imported in imports(name) if imported.startswith(CONTRACT)}
    assert known <= {f"{CONTRACT}.{module}" for module in JUDGED_CONTRACT}


@pytest.mark.parametrize("module", LAYERS)
def test_a_module_of_the_contract_knows_only_those_beneath_it(module: str) -> None:
    known = {imported for imported in imports(f"{CONTRACT}.{module}") if imported.startswith(CONTRACT)}
    assert known <= {f"{CONTRACT}.{beneath}" for beneath in LAYERS[module]}


def test_every_module_of_the_contract_has_its_layer() -> None:
    assert {name for name in modules() if name.startswith(f"{CONTRACT}.")} == {f"{CONTRACT}.{name}" for name in LAYERS}


def test_nobody_imports_the_command_line() -> None:
    for name in modules():
        if package_of(name) != "loopwarden.cli":
            assert not any(package_of(imported) == "loopwarden.cli" for imported in imports(name)), name


def test_only_the_worker_knows_faust() -> None:
    for name in modules():
        if any(imported.split(".")[0] in ("faust", "mode", "aiokafka") for imported in imports(name)):
            # Reading much of a topic at once is the one thing that aiokafka does for others, where it is installed.
            assert package_of(name) == "loopwarden.worker" or name == "loopwarden.client.bulk", name


def test_what_reads_topics_for_others_does_not_need_aiokafka() -> None:
    loaded = {imported.split(".")[0] for imported in imports("loopwarden.client.bulk", when_loaded=True)}
    assert not loaded & {"faust", "mode", "aiokafka"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    beneath = {name: {found for found in imports(name, when_loaded=True) if found in modules()} for name in modules()}
    # A package is loaded before its modules and names what they offer, so that only cycles of modules are cycles.
    packages = {name for name in modules() if any(other.startswith(f"{name}.") for other in modules())}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for found in sorted(beneath[name] - packages):
                visit(found, (*path, name))
            done.add(name)

    for name in sorted(set(modules()) - packages):
        visit(name, ())


def test_the_map_in_contributing_names_every_package_and_every_module_of_the_contract() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = [line for line in text.splitlines() if line.startswith("| ")]
    named = {word for line in table for word in re.findall(r"`([\w.]+)`", line.split("|")[1])}
    assert {*OURS, "loopwarden.cli", *LAYERS} <= named
