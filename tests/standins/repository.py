"""A signed flat repository of apt (``deb URL ./``), with several versions of a package in it."""

import gzip
import hashlib
import subprocess
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from tests.standins.keys import Key


def write(folder: Path, debs: Iterable[Path], key: Key, *, origin: str, label: str) -> None:
    """Index and signature of ``debs``, which are in ``folder`` already.

    Raises CalledProcessError where dpkg-deb or gpg fails.
    """
    index = "".join(_entry(deb) for deb in debs).encode()
    indexes = {"Packages": index, "Packages.gz": gzip.compress(index, mtime=0)}
    for name, content in indexes.items():
        (folder / name).write_bytes(content)
    release = folder / "Release"
    release.write_text(_release(indexes, origin, label))
    key.sign(release)


def _entry(deb: Path) -> str:
    command = ["dpkg-deb", "--field", str(deb)]
    control = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    content = deb.read_bytes()
    fields = {
        "Filename": f"./{deb.name}",
        "Size": str(len(content)),
        "SHA256": hashlib.sha256(content).hexdigest(),
    }
    return control + "".join(f"{key}: {value}\n" for key, value in fields.items()) + "\n"


def _release(indexes: dict[str, bytes], origin: str, label: str) -> str:
    date = datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S UTC")
    sums = "".join(
        f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
        for name, content in indexes.items()
    )
    head = {"Origin": origin, "Label": label, "Architectures": "amd64 all", "Date": date}
    return "".join(f"{key}: {value}\n" for key, value in head.items()) + f"SHA256:\n{sums}"
