"""The pages in docs/: what is run of each stands in the test that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_with_code_has_a_test_that_reads_it(page: Path) -> None:
    if "\n```" in page.read_text(encoding="utf-8"):
        tests = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
        assert any(f'"{page.name}"' in text for text in tests)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_tells_to_install_is_offered(page: Path) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in re.findall(r"loopwarden\[([\w-]+)\]", page.read_text(encoding="utf-8")):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
