"""Stand-in for a vendor's repository, and a root of apt's own to use it in: nobody has to be root.

Packages, index, signature and installation are real; only the packages are tiny.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from railwright.actions import InstallFile, RemoveFile, RunScript
from railwright.snapshot import Section


class Signer(NamedTuple):
    """A key of GnuPG's, with its home."""

    home: Path
    fingerprint: str

    @property
    def key(self) -> bytes:
        return _gpg(self.home, "--armor", "--export")

    def sign(self, release: Path) -> None:
        _gpg(self.home, "--clearsign", "--output", str(release.parent / "InRelease"), str(release))


def _gpg(home: Path, *arguments: str) -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--yes", *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


@contextmanager
def signer(home: Path) -> Iterator[Signer]:
    """A new key; its agent ends with it."""
    home.mkdir(mode=0o700)
    try:
        _gpg(home, "--passphrase", "", "--quick-gen-key", home.name, "ed25519", "sign", "never")
        lines = _gpg(home, "--list-keys", "--with-colons").decode().splitlines()
        found = next(line.split(":")[9] for line in lines if line.startswith("fpr:"))
        yield Signer(home, found)
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=True)


def build(folder: Path, name: str, version: str, **fields: str) -> Path:
    """A package with one file; ``fields`` are of its control file (``Depends='x (= 1)'``)."""
    tree = folder / f"{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    control = {"Package": name, "Version": version, "Architecture": "all"}
    control |= {"Maintainer": "t <t@example>", "Description": "stand-in", **fields}
    text = "".join(f"{field}: {value}\n" for field, value in control.items())
    (tree / "DEBIAN" / "control").write_text(text)
    (tree / name).write_text(version)
    done = folder / f"{name}_{version}_all.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(done)]
    subprocess.run(command, capture_output=True, check=True)
    return done


def publish(folder: Path, packages: list[Path], key: Signer) -> str:
    """A flat repository of ``packages`` in ``folder``, signed by ``key``; its URL."""
    folder.mkdir(exist_ok=True)
    index = ""
    for package in packages:
        data = package.read_bytes()
        (folder / package.name).write_bytes(data)
        control = subprocess.run(["dpkg-deb", "-f", str(package)], capture_output=True, check=True)
        index += control.stdout.decode() + f"Filename: ./{package.name}\nSize: {len(data)}\n"
        index += f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n"
    (folder / "Packages").write_text(index)
    listed = f" {hashlib.sha256(index.encode()).hexdigest()} {len(index)} Packages\n"
    date = datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S UTC")
    (folder / "Release").write_text(f"Origin: stand-in\nDate: {date}\nSHA256:\n{listed}")
    key.sign(folder / "Release")
    return f"file://{folder}"


class AptRoot:
    """A root of apt and dpkg in ``root``; paths below /etc/apt are those in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("etc/apt/sources.list.d", "etc/apt/preferences.d", "etc/apt/keyrings"):
            (root / folder).mkdir(parents=True)
        for folder in ("apt/lists/partial", "dpkg/updates", "dpkg/info"):
            (root / "var/lib" / folder).mkdir(parents=True)
        for folder in ("var/cache/apt/archives/partial", "var/log/apt", "etc/apt/apt.conf.d"):
            (root / folder).mkdir(parents=True)
        self.status = root / "var/lib/dpkg/status"
        # With no package at all the probe would take it for a machine without dpkg.
        self.status.write_text(
            "Package: base\nStatus: install ok installed\nMaintainer: t <t@example>\n"
            "Architecture: all\nVersion: 1\nDescription: stand-in\n\n"
        )
        (root / "var/lib/dpkg/info/base.list").touch()
        options = f'"--root={root}"; "--force-not-root"; "--force-unsafe-io"; "--log=/dev/null";'
        (root / "apt.conf").write_text(
            f'Dir "{root}";\nDir::State::status "{self.status}";\n'
            f'Dir::Bin::methods "/usr/lib/apt/methods";\nAPT::Architecture "amd64";\n'
            f"Dpkg::Options {{ {options} }};\n"
            f'APT::Sandbox::User "";\nDpkg::Use-Pty "0";\n'
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LC_ALL": "C",
            "APT_CONFIG": str(self.root / "apt.conf"),
            "DPKG_ROOT": str(self.root),
            "DPKG_ADMINDIR": str(self.root / "var/lib/dpkg"),
            "DPKG_FORCE": "not-root,downgrade,security-mac",
        }

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=self.environment, check=False
        )

    def local(self, text: str) -> str:
        """``text`` with apt's files where they are in this root."""
        return text.replace("/etc/apt/", f"{self.root}/etc/apt/")

    def write(self, action: InstallFile) -> None:
        Path(self.local(action.path)).write_text(self.local(action.content))

    def remove(self, action: RemoveFile) -> None:
        Path(self.local(action.path)).unlink()

    def transact(self, action: RunScript) -> subprocess.CompletedProcess[str]:
        arguments = [self.local(argument) for argument in action.arguments]
        return self.run("sh", "-s", "--", *arguments, stdin=action.script)

    def installed(self) -> dict[str, str]:
        """Package to version and state, as dpkg has it (``1.0 hold installed``)."""
        form = "${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\n"
        lines = self.run("dpkg-query", "-W", "-f", form).stdout.splitlines()
        found = dict(line.split(" ", 1) for line in lines)
        del found["base"]
        return found

    def section(self, script: str, packages: Mapping[str, str]) -> Section:
        """A section of the probe, with its paths in this root and its answer without it."""
        names = " ".join(f"{name}={version}" for name, version in packages.items())
        text = self.local(script).replace("/var/lib/dpkg/", f"{self.root}/var/lib/dpkg/")
        body = f"RW_PACKAGES='{names}'\nsection() {{\n{text}\n}}\nsection"
        done = self.run("sh", "-c", body)
        answer = done.stdout.replace(f"{self.root}/etc", "/etc")
        return Section(stdout=answer, stderr=done.stderr, rc=done.returncode)
