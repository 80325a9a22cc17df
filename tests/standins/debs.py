"""A stand-in package: its control data, its files of the payload, its maintainer scripts, its deb.

Which there are is in debs_doca, debs_cuda, debs_lustre, debs_beegfs and debs_lab.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

from pydantic import Field

from railwright.model import Model
from tests.standins.marks import Marks, copy

MAINTAINER = "railwright tests <railwright@example.invalid>"
NOTE = "stand-in of railwright's tests"

HEADERS = "linux-headers-amd64 | linux-headers-generic | linux-headers"


_DATE = "1759276800"
"""Of all files, 2025-10-01: older than any node that they come to."""


class Deb(Model):
    """One package. ``parts`` are folders of the payload to where in the root they lie.

    ``relations`` are fields of the control file that name other packages. ``scripts`` are
    maintainer scripts without their first line.
    """

    name: str
    version: str
    about: str
    marks: Marks = Marks("", "")
    architecture: Literal["all", "amd64"] = "amd64"
    relations: dict[str, str] = Field(default={})
    parts: dict[str, str] = Field(default={})
    conffiles: tuple[str, ...] = ()
    scripts: dict[str, str] = Field(default={})

    @property
    def file(self) -> str:
        """Its name in a repository; the epoch is not part of it."""
        return f"{self.name}_{self.version.rpartition(':')[2]}_{self.architecture}.deb"

    @property
    def control(self) -> str:
        fields = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": MAINTAINER,
            "Section": "kernel" if self.name.endswith("-dkms") else "misc",
            "Priority": "optional",
            **self.relations,
            "Description": f"{NOTE}: {self.about}\n No device is driven by it.",
        }
        return "".join(f"{key}: {value}\n" for key, value in fields.items())


def build(deb: Deb, target: Path, work: Path) -> Path:
    """The package's file in ``target``; the same input makes the same bytes.

    Raises CalledProcessError where dpkg-deb fails.
    """
    root = work / deb.name
    shutil.rmtree(root, ignore_errors=True)
    control = root / "DEBIAN"
    control.mkdir(parents=True, mode=0o755)
    for part, place in deb.parts.items():
        copy(part, root / place, deb.marks)
    (control / "control").write_text(deb.control)
    if deb.conffiles:
        (control / "conffiles").write_text("".join(f"{path}\n" for path in deb.conffiles))
    for name, body in deb.scripts.items():
        script = control / name
        script.write_text(f"#!/bin/sh\n# {NOTE}.\nset -e\n{body}exit 0\n")
        script.chmod(0o755)
    file = target / deb.file
    command = ["dpkg-deb", "--root-owner-group", "--build", "-Zgzip", str(root), str(file)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _DATE}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return file


def dkms_scripts(name: str, package: str, version: str) -> dict[str, str]:
    """Scripts that dh_dkms writes: all that is built of the package is built and taken away."""
    return {
        "postinst": f"""case $1 in
    configure)
        [ ! -x /usr/lib/dkms/common.postinst ] ||
            /usr/lib/dkms/common.postinst {name} {version} /usr/share/{package} '' "$2"
        ;;
esac
""",
        "prerm": f"""case $1 in
    remove | upgrade | deconfigure)
        if [ -n "$(dkms status -m {name} -v {version} 2>/dev/null)" ]; then
            dkms remove -m {name} -v {version} --all || true
        fi
        ;;
esac
""",
    }


def service_scripts(unit: str) -> dict[str, str]:
    """Scripts that dh_installsystemd writes: the unit is enabled, and started where it can be."""
    return {
        "postinst": f"""case $1 in
    configure)
        deb-systemd-helper unmask {unit} >/dev/null || true
        deb-systemd-helper enable {unit} >/dev/null || true
        if [ -d /run/systemd/system ]; then
            systemctl --system daemon-reload >/dev/null || true
            if [ -n "$2" ]; then action=restart; else action=start; fi
            deb-systemd-invoke "$action" {unit} >/dev/null || true
        fi
        ;;
esac
""",
        "prerm": f"""if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop {unit} >/dev/null || true
fi
""",
        "postrm": f"""if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = purge ]; then
    deb-systemd-helper purge {unit} >/dev/null || true
fi
""",
    }


def enabled_scripts(unit: str) -> dict[str, str]:
    """Scripts that dh_installsystemd --no-start writes: the unit is enabled, and boots start it."""
    scripts = service_scripts(unit)
    scripts["postinst"] = f"""case $1 in
    configure)
        deb-systemd-helper unmask {unit} >/dev/null || true
        deb-systemd-helper enable {unit} >/dev/null || true
        if [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || true; fi
        ;;
esac
"""
    return scripts


def alternative_scripts(name: str, link: str, path: str, priority: int) -> dict[str, str]:
    """Scripts of a file that several releases have, one of which ``link`` leads to."""
    return {
        "postinst": f"""if [ "$1" = configure ]; then
    echo 'Setting alternatives'
    update-alternatives --install {link} {name} {path} {priority}
fi
""",
        "prerm": f"""if [ "$1" = remove ]; then
    update-alternatives --remove {name} {path}
fi
""",
    }
