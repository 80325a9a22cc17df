"""Packages of a node with dnf: what is decided, and what the script is told."""

import subprocess
from hashlib import sha256

from railwright.actions import InstallFile, RunScript
from railwright.owned import HEADER
from railwright.repositories import source_file
from railwright.settings import Verdict, verdict
from tests.unit.packages_host import (
    CUDA,
    INSTALL,
    LIVE,
    OFED,
    RPM,
    SERVICE,
    VERSIONS,
    cuda,
    doca,
    done,
    drivers,
    found,
    host,
    ok,
    script_of,
    verdicts,
)
from tests.unit.records import records
from tests.unit.test_openpgp import ARMOURED

RPM_KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-doca"


REPO = "/etc/yum.repos.d/railwright-doca.repo"


def test_a_repository_of_dnf(key: str) -> None:
    asked = drivers(cuda(key, module_hotfixes=True, priority=10))
    first, second, script = done(asked, host(**RPM))
    assert first == InstallFile(path=RPM_KEY, content=ARMOURED.decode())
    assert second == InstallFile(
        path=REPO,
        content=(
            f"{HEADER}[railwright-doca]\nname=railwright doca\nbaseurl={CUDA}\nenabled=1\n"
            f"gpgcheck=1\nrepo_gpgcheck=0\ngpgkey=file://{RPM_KEY}\nmodule_hotfixes=1\n"
            "priority=10\nexcludepkgs=dkms\n"
        ),
    )
    assert isinstance(script, RunScript)
    key_file = f"key:{RPM_KEY}={sha256(ARMOURED).hexdigest()}"
    assert script.arguments == (key_file, "source:railwright-doca", "refresh", *INSTALL)
    assert "apt-get" not in script.script
    rows = "".join(f"{n}\t{v}\tinstall\tinstalled\n" for n, v in VERSIONS.items())
    written = records({RPM_KEY: ARMOURED.decode(), REPO: second.content})
    settled = host(written, **{**RPM, "packages": ok(f"manager rpm\n{rows}")})
    assert set(verdicts(asked, settled).values()) == {Verdict.OK}
    assert done(asked, settled) == []


def test_a_section_of_somebody_else_for_the_same_repository_decides(key: str) -> None:
    entry = f"/etc/yum.repos.d/cuda.repo:1:[cuda]\n/etc/yum.repos.d/cuda.repo:2:baseurl={CUDA}/\n"
    source = found(drivers(cuda(key)), host(entries=entry, **RPM))[REPO]
    assert verdict(source, LIVE) is Verdict.OVERRIDDEN
    assert source.persisted.decider == "/etc/yum.repos.d/cuda.repo:2"


def test_the_scripts_are_what_shellcheck_accepts(key: str) -> None:
    for script in (script_of(host(), doca(key)), script_of(host(**RPM), cuda(key))):
        checked = subprocess.run(
            ["shellcheck", "-s", "sh", "-"], input=script, capture_output=True, text=True
        )
        assert checked.returncode == 0, checked.stdout


def test_what_dnf_left_off_is_made_whole_with_all_that_came_with_it(key: str) -> None:
    both = "".join(f"{OFED}\t{v}\tinstall\tinstalled\n" for v in ("3.1.0-1", VERSIONS[OFED]))
    others = {name: version for name, version in VERSIONS.items() if name != OFED}
    rows = "".join(f"{n}\t{v}\tinstall\tinstalled\n" for n, v in others.items())
    left = f"manager rpm\nleft Upgrade {OFED}-{VERSIONS[OFED]}\nleft Upgrade tools-0:2-1\n"
    left += f"left Upgraded {OFED}-3.1.0-1\nleft Upgraded tools-0:1-1\n"
    asked, source = drivers(cuda(key)), script_source(key)
    seen = host(source, packages_audit=ok(left), packages=ok(f"manager rpm\n{both}{rows}"))
    stand = found(asked, seen, SERVICE)
    assert stand["dnf"].persisted.value == f"{OFED} {VERSIONS[OFED]}, tools 2-1"
    assert stand[f"package {OFED}"].persisted.value == f"3.1.0-1, {VERSIONS[OFED]} left off by dnf"
    (script,) = [one for one in done(asked, seen, SERVICE) if isinstance(one, RunScript)]
    assert script.arguments[-2:] == ("again:tools=2-1", f"install:{OFED}={VERSIONS[OFED]}")


def test_what_dnf_left_off_of_others_packages_alone_is_theirs(key: str) -> None:
    rows = "".join(f"{n}\t{v}\tinstall\tinstalled\n" for n, v in VERSIONS.items())
    left = ok("manager rpm\nleft Upgrade bash-0:5.1.8-9.el9\n")
    seen = host(script_source(key), packages_audit=left, packages=ok(f"manager rpm\n{rows}"))
    asked = drivers(cuda(key))
    assert set(verdicts(asked, seen).values()) == {Verdict.OK}
    assert done(asked, seen) == []


def script_source(key: str) -> str:
    """Our files of the repository as they must be."""
    content = source_file("doca", cuda(key)).content or ""
    return records({RPM_KEY: ARMOURED.decode(), REPO: content})
