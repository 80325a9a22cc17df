"""The ledger on the node: read, written, lost, broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.files import FileRecord
from railwright.ledger import PATH, Ledger, read_ledger


def record(content: str | None, kind: str = "file") -> list[FileRecord]:
    fields = {"path": PATH, "kind": kind, "content": content}
    return [FileRecord.model_validate(fields)]


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_is_written_is_read(held: dict[str, str]) -> None:
    ledger = Ledger(held=held)
    assert read_ledger(record(ledger.text)) == ledger


def test_one_ledger_has_one_text() -> None:
    assert Ledger(held={"b": "1", "a": "2"}).text == Ledger(held={"a": "2", "b": "1"}).text
    assert Ledger().text.endswith("}\n")


def test_a_lost_ledger_remembers_nothing() -> None:
    assert read_ledger([]) == Ledger()
    other = FileRecord(path="/var/lib/railwright/other.json", kind="file", content="{")
    assert read_ledger([other]) == Ledger()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("", "file"),
        ("{", "file"),
        ('{"format": 2, "held": {}}', "file"),
        ('{"format": 1, "held": {"a": 1}}', "file"),
        ('{"format": 1, "kept": {}}', "file"),
        (None, "directory"),
        (None, "unreadable"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_told(content: str | None, kind: str) -> None:
    with pytest.raises(ValueError, match=f"^{PATH}"):
        read_ledger(record(content, kind))
