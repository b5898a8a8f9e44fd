"""What the README and the other pages claim can be done."""

import re
import subprocess
import sys

import pytest

from .reading import REPO, ROOMS

PAGES = sorted(path for folder in (REPO, REPO / "docs", REPO / "native") for path in folder.glob("*.md"))
README = (REPO / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_first_example_runs(tmp_path):
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    script = tmp_path / "readme.py"
    script.write_text(example[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    accuracy = next(line for line in done.stdout.splitlines() if re.fullmatch(r"[01]\.\d+", line))
    assert float(accuracy) > 0.9


def test_every_make_target_named_in_a_page_exists():
    targets = set(re.findall(r"^([a-z]+):", (REPO / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        target for page in PAGES for target in re.findall(r"`make ([a-z]+)", page.read_text(encoding="utf-8"))
    }
    assert {"demo", "test", "check", "bench", "dev", "sanitize"} <= targets
    assert named <= targets


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_map_names_every_package():
    building = README[README.index("## A map of the building") :]
    assert [room for room in ROOMS if room not in building] == []


def test_the_index_of_docs_lists_every_page():
    index = (REPO / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (REPO / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in index} == set()
