"""What `loopwarden topics plan`, `apply` and `check` do: differences in words, in a table, and as JSON."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from loopwarden.cli.terminal import plural, say
from loopwarden.client import Connection
from loopwarden.client.errors import TopicsRefused
from loopwarden.client.topics import apply_declarations, find_differences
from loopwarden_schemas.topic_differences import Difference, Wanted, refused, to_do


def show_plan(connection: Connection, wanted: Wanted, as_json: bool) -> int:
    """Print what would be done, and return the exit code."""
    found = find_differences(connection, wanted)
    if as_json:
        print(json.dumps(_as_json(connection, found), indent=2))
    elif found:
        Console().print(_table(found))
        for each in refused(found):
            print(f"refused: {each.in_words()}. The way out: {each.way_out}")
        print(_summary(found))
    else:
        print(_all_well(connection))
    return 1 if found else 0


def apply(connection: Connection, wanted: Wanted) -> int:
    """Create and alter, tell what was done, and return the exit code."""
    try:
        done = apply_declarations(connection, wanted)
    except TopicsRefused as error:
        for line in str(error).splitlines():
            say(f"refused: {line}")
        say("nothing was changed")
        return 1
    for each in done:
        print(_done_in_words(each))
    print(_all_well(connection))
    return 0


def check(connection: Connection, wanted: Wanted) -> int:
    """Print what is otherwise than declared, a line each, and return the exit code."""
    found = find_differences(connection, wanted)
    for each in found:
        stops = " (no worker starts on it)" if each.breaks_guarantees else ""
        print(f"{each.in_words()}{stops}")
    print(_summary(found) if found else _all_well(connection))
    return 1 if found else 0


def _table(found: list[Difference]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("topic", "setting", "found", "wanted", "to do"):
        table.add_column(heading, overflow="fold")
    for each in found:
        setting = "" if each.setting == "topic" else each.setting
        table.add_row(each.topic, setting, each.found or "-", each.rule, _to_do_in_words(each))
    return table


def _to_do_in_words(difference: Difference) -> str:
    return "refused" if difference.change == "none" else difference.change


def _done_in_words(difference: Difference) -> str:
    if difference.change == "create":
        return f"{difference.topic}: created, with {difference.wanted}"
    return f"{difference.topic}: {difference.setting} changed from {difference.found} to {difference.wanted}"


def _summary(found: list[Difference]) -> str:
    changes, refusals = len(to_do(found)), len(refused(found))
    told = [f"{plural(changes, 'change')} to make: `loopwarden topics apply` makes them"] if changes else []
    if refusals:
        told = [f"{plural(refusals, 'thing')} refused, so `loopwarden topics apply` changes nothing"]
    return ", ".join(told)


def _all_well(connection: Connection) -> str:
    topics = connection.topics().all()
    return f"ok: the {len(topics)} topics at {connection.bootstrap_servers} are as declared"


def _as_json(connection: Connection, found: list[Difference]) -> dict[str, object]:
    return {
        "cluster": connection.bootstrap_servers,
        "prefix": connection.topic_prefix,
        "to_do": len(to_do(found)),
        "refused": len(refused(found)),
        "differences": [
            {
                "topic": each.topic,
                "setting": each.setting,
                "found": each.found,
                "wanted": each.rule,
                "change": each.change,
                "why": each.why,
                "way_out": each.way_out or None,
                "breaks_guarantees": each.breaks_guarantees,
            }
            for each in found
        ],
    }
