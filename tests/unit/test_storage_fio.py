"""What is made of ``fio --output-format=json``. test_parse.py reads the corpus."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.fio import FioIo, FioRun, parse_fio

CORPUS = Path(__file__).parents[1] / "corpus/fio"
COUNTS = st.integers(0, 2**53)
IO = st.builds(FioIo, io_bytes=COUNTS, bw_bytes=COUNTS, runtime_ms=COUNTS)


def io(found: FioIo) -> dict[str, Any]:
    return {
        "io_bytes": found.io_bytes,
        "bw_bytes": found.bw_bytes,
        "bw": found.bw_bytes // 1024,
        "iops": 1.0,
        "runtime": found.runtime_ms,
    }


def document(*jobs: tuple[FioIo, FioIo], error: int = 0) -> str:
    """As fio 3.16 has it, which names options of all jobs apart."""
    rows = [
        {"jobname": "x", "error": error, "read": io(read), "write": io(write)}
        for read, write in jobs
    ]
    whole = {"fio version": "fio-3.16", "global options": {"size": "1g"}, "jobs": rows}
    return json.dumps(whole, indent=2)


@given(IO, IO, st.integers(0, 133), st.sampled_from(["", "note: both\n", "\nfio: pid=1 {x}\n"]))
def test_what_is_printed_is_read(read: FioIo, write: FioIo, error: int, before: str) -> None:
    found = parse_fio(before + document((read, write), error=error) + "\n")
    assert found == FioRun(version="fio-3.16", error=error, read=read, write=write)


@given(st.lists(st.tuples(IO, IO), min_size=1, max_size=4))
def test_jobs_that_are_told_apart_add_up(jobs: list[tuple[FioIo, FioIo]]) -> None:
    found = parse_fio(document(*jobs))
    assert found.write.bw_bytes == sum(write.bw_bytes for _, write in jobs)
    assert found.read.runtime_ms == max(read.runtime_ms for read, _ in jobs)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected JSON of fio, got ''"),
        ("fio: engine libaio not loadable\n", "got 'fio: engine libaio not loadable'"),
        ("{\n}\n", "expected 'fio version'"),
        ('{\n"fio version": "fio-3.33", "jobs": []\n}', "expected a job, got none"),
        ('{\n"fio version": "fio-3.33", "client_stats": []\n}', "expected a list, got NoneType"),
        ('{\n"fio version": "fio-3.33", "jobs": [{"error": true}]\n}', "expected a number"),
        ('{\n"fio version": "fio-3.33", "jobs": [{"error": 0}]\n}', "fio read: expected an object"),
        ('{\n"fio version": "fio-3.33",\n}', "expected JSON"),
    ],
)
def test_what_is_no_result_is_an_error_in_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_fio(text)


def test_a_document_that_breaks_off_is_no_result() -> None:
    text = (CORPUS / "01-write.txt").read_text()
    assert parse_fio(text).write.bw_bytes == 2675172999
    for end in range(0, text.rindex("\n}"), 97):
        with pytest.raises(ValueError, match="expected"):
            parse_fio(text[:end])


@given(st.text())
def test_no_text_is_more_than_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_fio(text)
