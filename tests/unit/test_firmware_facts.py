"""What the firmware section asks and prints, run by the real sh with a stub tool; its ledger."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nic_firmware import CONFIG, STORAGE, parse_nic_firmware, read_nic_firmware, remembers
from facts.probe import Focus, script
from railwright.files import FileRecord
from railwright.ledger import (
    FIRMWARE_PATH,
    FirmwareLedger,
    FirmwareNote,
    Ledger,
    read_firmware_ledger,
    read_ledger,
)
from railwright.snapshot import Section, Snapshot, parse_probe

HEAD = "Configurations:      Default   Current   Next Boot"
# It knows A and B, and gives up at the first key that it does not know, as mstconfig does.
TOOL = f"""\
#!/bin/sh
[ "$1" = -d ] && [ "$3 $4" = "-e q" ] || exit 9
case $2 in
    *:1b:*) echo "-E- Failed to open the device"; exit 3 ;;
esac
printf '\\nDevice #1:\\n----------\\n\\nDevice type:    ConnectX7\\n'
printf 'Device:   %s\\n\\n{HEAD}\\n' "$2"
shift 4
for key; do
    case $key in
        A) row="$row        A   0   1   1
" ;;
        B) row="$row*       B   x(0)   x(0)   y(1)
" ;;
        *) echo "-E- The Device doesn't support $key parameter"; exit 3 ;;
    esac
done
printf '%s' "$row"
"""


def pci(root: Path, address: str, vendor: str = "0x15b3", kind: str = "0x020000") -> Path:
    device = root / "sys/bus/pci/devices" / address
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n", encoding="utf-8")
    (device / "class").write_text(f"{kind}\n", encoding="utf-8")
    return device


def probe(root: Path, asked: str, tools: tuple[str, ...] = ("mstconfig",)) -> Snapshot:
    tree = root / "bin"
    tree.mkdir(exist_ok=True)
    for name in tools:
        (tree / name).write_text(TOOL, encoding="utf-8")
        (tree / name).chmod(0o755)
    text = CONFIG.script.replace("/sys/", f"{root}/sys/")
    body = f"RW_FIRMWARE='{asked}'\nPATH={tree}:$PATH\n{text}"
    section = CONFIG.model_copy(update={"script": body})
    ran = subprocess.run(
        ["sh", "-c", script([section], Focus())], capture_output=True, text=True, check=True
    )
    return parse_probe(ran.stdout, "n1")


def test_nothing_asked_for_asks_nothing(tmp_path: Path) -> None:
    pci(tmp_path, "0000:1a:00.0")
    seen = probe(tmp_path, "")
    assert seen.text(CONFIG.name) == ""
    with pytest.raises(ValueError, match="expected the tool"):
        read_nic_firmware(seen)


def test_each_card_is_asked_once_for_all_its_functions(tmp_path: Path) -> None:
    pci(tmp_path, "0000:1a:00.0")
    pci(tmp_path, "0000:1a:00.1")
    pci(tmp_path, "0000:1a:00.2").joinpath("physfn").mkdir()
    pci(tmp_path, "0000:1c:00.0", vendor="0x8086")
    pci(tmp_path, "0000:1d:00.0", kind="0x080100")
    pci(tmp_path, "0000:1e:00.1", kind="0x020700")
    found = read_nic_firmware(probe(tmp_path, "auto A B"))
    assert found.tool == "mstconfig"
    assert sorted(found.cards) == ["0000:1a:00.0", "0000:1e:00.1"]
    card = found.cards["0000:1a:00.0"]
    assert (card.params["A"].default, card.params["A"].next) == (0, 1)
    assert (card.params["B"].next_name, card.params["B"].next) == ("y", 1)
    assert (card.absent, card.problem) == (frozenset(), None)
    assert found.card("0000:1a:00.1") == "0000:1a:00.0"
    assert found.card("0000:1f:00.0") is None


def test_a_key_that_is_not_there_does_not_hide_the_others(tmp_path: Path) -> None:
    pci(tmp_path, "0000:1a:00.0")
    card = read_nic_firmware(probe(tmp_path, "auto A NO_KEY B")).cards["0000:1a:00.0"]
    assert sorted(card.params) == ["A", "B"]
    assert (card.absent, card.problem) == ({"NO_KEY"}, None)


def test_a_card_that_cannot_be_opened_does_not_hide_the_others(tmp_path: Path) -> None:
    pci(tmp_path, "0000:1a:00.0")
    pci(tmp_path, "0000:1b:00.0")
    security = tmp_path / "sys/kernel/security"
    security.mkdir(parents=True)
    (security / "lockdown").write_text("none [integrity] confidentiality\n", encoding="utf-8")
    found = read_nic_firmware(probe(tmp_path, "auto A"))
    assert found.lockdown == "integrity"
    assert found.cards["0000:1b:00.0"].problem == "Failed to open the device"
    assert found.cards["0000:1a:00.0"].params["A"].next == 1


@pytest.mark.parametrize(
    ("asked", "tools", "tool"),
    [
        ("auto A", (), None),
        ("auto A", ("mstconfig", "mlxconfig"), "mlxconfig"),
        ("mstconfig A", ("mstconfig", "mlxconfig"), "mstconfig"),
        ("mlxconfig A", ("mstconfig",), None),
    ],
)
def test_which_tool_is_asked(
    tmp_path: Path, asked: str, tools: tuple[str, ...], tool: str | None
) -> None:
    pci(tmp_path, "0000:1a:00.0")
    found = read_nic_firmware(probe(tmp_path, asked, tools))
    assert found.tool == tool
    assert sorted(found.cards) == ["0000:1a:00.0"]


@pytest.mark.parametrize("line", ["x", "answer 0000:1a:00.0 0", "| text"])
def test_a_line_of_another_kind_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="expected an answer"):
        parse_nic_firmware(f"tool mstconfig\n{line}\n")


@given(st.lists(st.sampled_from(["card a", "answer a 0", "| x", "| -E- y", "lockdown z", "q"])))
def test_whatever_is_printed_is_cards_or_a_value_error(lines: list[str]) -> None:
    try:
        found = parse_nic_firmware("tool mstconfig\n" + "\n".join(lines))
    except ValueError:
        return
    assert set(found.cards) <= {"a"}


@pytest.mark.parametrize(
    ("kind", "expected"), [("ext2/ext3", True), ("xfs", True), ("tmpfs", False), ("", False)]
)
def test_a_file_system_in_memory_remembers_nothing(kind: str, expected: bool) -> None:
    sections = {STORAGE.name: Section(stdout=f"var={kind}\n", rc=0)}
    assert remembers(Snapshot(host="n1", marker="m", sections=sections)) is expected


def test_the_file_system_of_this_machine_is_told() -> None:
    ran = subprocess.run(
        ["sh", "-c", script([STORAGE], Focus(rails=True))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert parse_probe(ran.stdout, "n1").facts(STORAGE.name)["var"]


def record(content: str) -> list[FileRecord]:
    return [FileRecord(path=FIRMWARE_PATH, kind="file", content=content)]


@given(st.dictionaries(st.text(min_size=1), st.booleans()))
def test_what_is_noted_is_read(keys: dict[str, bool]) -> None:
    notes = {k: FirmwareNote(value="1", boot_id="b", reset=reset) for k, reset in keys.items()}
    ledger = FirmwareLedger(notes=notes)
    assert read_firmware_ledger(record(ledger.text)) == ledger
    # Each ledger is read from its own file.
    assert read_ledger(record(ledger.text)) == Ledger()


def test_notes_that_cannot_be_read_are_told() -> None:
    assert read_firmware_ledger([]) == FirmwareLedger()
    with pytest.raises(ValueError, match=f"^{FIRMWARE_PATH}"):
        read_firmware_ledger(record('{"format": 1, "notes": {"a": 1}}'))
