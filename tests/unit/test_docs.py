"""What the documentation shows is what the code takes."""

import re
from pathlib import Path

import pytest

from railwright.cli import main
from railwright.compat.judge import judge
from railwright.compat.rows import read_table, tables
from railwright.schema.drivers_compat import facts_of
from railwright.site import load_inventory

ROOT = Path(__file__).parents[2]
INVENTORY = """
from railwright.site import inventory

globals().update(inventory(__file__, {GROUP: "gpu[001-002]"}))
"""


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page, one after the other."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def group_files(page: str) -> dict[str, str]:
    """The files of group_data that a page shows, by group."""
    named = (re.match(r"# group_data/(\w+)\.py\n", block) for block in blocks(page, "python"))
    return {found[1]: found.string for found in named if found is not None}


def site(tmp_path: Path, group: str, text: str) -> Path:
    (tmp_path / "inventories").mkdir()
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data" / f"{group}.py").write_text(text)
    path = tmp_path / "inventories" / "site.py"
    path.write_text(INVENTORY.replace("GROUP", repr(group)))
    return path


@pytest.mark.parametrize(
    ("page", "group"),
    [
        ("docs/drivers.md", "hgx_h100"),
        ("docs/storage.md", "training"),
        ("README.md", "roce"),
    ],
)
def test_a_group_file_of_the_documentation_is_valid(
    page: str, group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site(tmp_path, group, group_files(page)[group])
    assert main(["validate", str(path)]) == 0, capsys.readouterr().out
    assert "2 nodes" in capsys.readouterr().out


def test_the_warning_that_is_shown_of_the_example_is_one_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "validate",
                str(site(tmp_path, "hgx_h100", group_files("docs/drivers.md")["hgx_h100"])),
            ]
        )
        == 0
    )
    told = {line.partition("]: ")[2] for line in capsys.readouterr().err.splitlines()}
    page = (ROOT / "docs/drivers.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    warning: gpu\S+: (.*)$", page, re.MULTILINE)
    assert shown
    assert set(shown) <= told


def test_the_example_asks_for_each_of_the_four_and_is_known_to_be_bad_by_nothing(
    tmp_path: Path,
) -> None:
    path = site(tmp_path, "hgx_h100", group_files("docs/drivers.md")["hgx_h100"])
    node = load_inventory(path).nodes["gpu001"]
    assert node.ofed.kind == "doca_ofed"
    assert node.gpu_driver.fabric_manager
    assert node.gds.mode == "nvidia-fs"
    assert {"doca-ofed", "nvidia-open-580", "linux-image-generic"} <= node.held.keys()
    assert {one.verdict for one in judge(facts_of(node.drivers))} <= {"unknown"}


def test_the_row_that_is_shown_is_one_of_the_table() -> None:
    (block,) = blocks("docs/drivers.md", "yaml")
    (row,) = read_table("kernel-driver", block).rows
    (table,) = [table for table in tables() if table.name == "kernel-driver"]
    assert row in table.rows


def test_all_components_are_named_in_the_readme_and_on_the_page_of_drift() -> None:
    from deploys.components import COMPONENTS

    for page in ("README.md", "docs/drift.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [c.name for c in COMPONENTS if f"`{c.name}`" not in text] == [], page


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in ("README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))):
        text = (ROOT / page).read_text(encoding="utf-8")
        links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
        broken = [link for link in links if not ((ROOT / page).parent / link).exists()]
        assert broken == [], page
