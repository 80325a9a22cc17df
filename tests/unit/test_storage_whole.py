"""``railwright storage test`` over a real connector, with fio itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.storage_host import Host

WHOLE = """
import sys
from gevent import monkey

monkey.patch_all()
from dataclasses import dataclass

from railwright.cli import main
from railwright.cli import storage
from railwright.cli.commands import railwright
from railwright.schema.mounted import Throughput
from railwright.storage import sizes

@dataclass(frozen=True)
class Asked:
    kind: str
    expected: Throughput

root, mount, expected = sys.argv[1:]
railwright.commands["storage"] = storage.storage
asked = Asked("scratch", Throughput(read_gb_s=float(expected), write_gb_s=1e-6))
storage.mounts_of = lambda node: {mount: asked}
# A few MiB, whatever is free.
sizes.SHARE, sizes.LEAST_MIB, sizes._MIB_PER_GIB = 1, 4, 8
sys.exit(main(["storage", "test", root + "/site.yaml", "--mount", root + "/storage",
               "--seconds", "1", "--max-gib", "1", "--format", "json"]))
"""


@pytest.mark.parametrize(
    ("expected", "outcome", "code"), [("0.000001", "ok", 0), ("9999", "below", 2)]
)
def test_the_whole_way_over_a_real_connector_with_fio_itself(
    tmp_path: Path, expected: str, outcome: str, code: int
) -> None:
    host = Host(tmp_path)
    (tmp_path / "site.yaml").write_text('groups:\n  rack:\n    hosts: "@local"\n')
    done = subprocess.run(
        [sys.executable, "-c", WHOLE, str(tmp_path), host.mount, expected],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    (found,) = json.loads(done.stdout)["results"]
    assert (found["host"], found["outcome"], found["size_mib"]) == ("@local", outcome, 8)
    assert found["read"]["gb_s"] > 0
    assert list(host.storage.iterdir()) == []
