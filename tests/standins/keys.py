"""Keys of the stand-in repositories: one that signs them, and another one that must be refused."""

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

SIGNERS = ("doca", "cuda", "lustre", "beegfs", "other")
"""Each repository has a key of its own; ``other`` signs what nodes must not take."""


class Key(NamedTuple):
    """A key in GnuPG's home ``home``; ``public`` is its armoured public part."""

    home: Path
    fingerprint: str
    public: Path

    def sign(self, release: Path) -> None:
        """Writes InRelease and Release.gpg beside ``release``."""
        for option, name in (("--clearsign", "InRelease"), ("--detach-sign", "Release.gpg")):
            target = release.parent / name
            armour = () if option == "--clearsign" else ("--armor",)
            gpg(self.home, *armour, "--output", str(target), option, str(release))


def gpg(home: Path, *arguments: str) -> bytes:
    """Output of gpg on the keys in ``home``. Raises CalledProcessError where it fails."""
    command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--yes", *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def make(folder: Path, homes: Path) -> dict[str, Key]:
    """The keys by name, made where ``folder`` has them not yet.

    Their public parts are in ``folder`` (NAME.asc) with fingerprints.json, the secret ones in
    GnuPG's homes under ``homes``, whose path has to be short: gpg-agent has a socket there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    homes.mkdir(parents=True, exist_ok=True)
    keys = {name: _key(name, folder / f"{name}.asc", homes / name) for name in SIGNERS}
    fingerprints = {name: key.fingerprint for name, key in keys.items()}
    (folder / "fingerprints.json").write_text(json.dumps(fingerprints, indent=2) + "\n")
    return keys


def _key(name: str, public: Path, home: Path) -> Key:
    if not home.is_dir():
        home.mkdir(mode=0o700)
        who = f"railwright stand-in {name}"
        # rpm of EL 8 knows no elliptic curves.
        gpg(home, "--passphrase", "", "--quick-gen-key", who, "rsa3072", "sign", "never")
    public.write_bytes(gpg(home, "--armor", "--export"))
    listed = gpg(home, "--list-keys", "--with-colons").decode().splitlines()
    found = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
    return Key(home=home, fingerprint=found, public=public)


def stop_agent(key: Key) -> None:
    """Ends the agent that gpg has started for the key's home."""
    subprocess.run(["gpgconf", "--homedir", str(key.home), "--kill", "all"], check=False)
