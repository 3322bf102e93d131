from __future__ import annotations

from pathlib import Path

import pytest

from loopwarden.importers.places import PLACES, Folder, session_files, usual_folders


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ("Claude Code", ".claude/projects/-tmp-x/s.jsonl"),
        ("Claude Code", ".claude/projects/-tmp-x/s/subagents/agent-a1.jsonl"),
        ("Codex", ".codex/sessions/2026/01/01/rollout-2026-s.jsonl"),
        ("opencode", ".local/share/opencode/opencode.db"),
        ("opencode", ".local/share/opencode/storage/part/msg_1/prt_1.json"),
        ("Gemini", ".gemini/tmp/h/chats/session-1.json"),
        ("Gemini", ".gemini/tmp/h/chats/session-1.jsonl"),
        ("OpenClaw", ".openclaw/agents/main/sessions/s.jsonl"),
        ("pi", ".pi/agent/sessions/--tmp-x--/s.jsonl"),
    ],
)
def test_each_agents_sessions_are_found_where_it_keeps_them(agent: str, file: str, home: Path) -> None:
    touch(home, file)
    found = [(folder.agent, path) for folder in usual_folders({}) for path in folder.sessions()]

    assert found == [(agent, home / file)]


def test_what_else_lies_there_is_none_of_our_business(home: Path) -> None:
    touch(
        home,
        ".claude/settings.json",
        ".claude/projects/-tmp-x/sessions-index.json",
        ".codex/auth.json",
        ".codex/sessions/2026/index.json",
        ".local/share/opencode/auth.json",
        ".gemini/oauth_creds.json",
        ".gemini/tmp/h/logs.json",
        ".openclaw/agents/main/agent/auth-profiles.json",
    )

    assert [path for folder in usual_folders({}) for path in folder.sessions()] == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.agent)
def test_the_agents_own_variable_moves_its_place(place: tuple[str, ...], tmp_path: Path) -> None:
    _, variable, _, below, _ = place
    moved = [folder.path for folder in usual_folders({variable: str(tmp_path)})]

    assert tmp_path / below in moved


def test_any_folder_is_searched_by_its_files_names(tmp_path: Path) -> None:
    touch(tmp_path, "b.jsonl", "a/c.json", "a/d.txt", "e.jsonl.gz", "f.md")

    assert [path.relative_to(tmp_path).as_posix() for path in session_files(tmp_path)] == [
        "a/c.json",
        "b.jsonl",
        "e.jsonl.gz",
    ]
    assert list(Folder(tmp_path / "nowhere").sessions()) == []


def test_the_storage_of_opencode_is_one(tmp_path: Path) -> None:
    touch(tmp_path, "storage/part/msg_1/prt_1.json", "storage/session/p/ses_1.json")

    assert list(session_files(tmp_path)) == [tmp_path / "storage"]
