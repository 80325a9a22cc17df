"""Repositories, their keys and pins: what is decided, and what is done."""

from pathlib import Path

import pytest

from railwright.actions import InstallFile, RemoveFile, RunScript
from railwright.schema.drivers import DriverSet
from railwright.settings import Standing, Verdict, verdict
from tests.unit.packages_host import (
    DOCA,
    INSTALL,
    KEY,
    LIVE,
    OFED,
    PIN,
    SOURCE,
    VERSIONS,
    cuda,
    doca,
    done,
    drivers,
    found,
    host,
    ours,
    pin,
    words,
)
from tests.unit.records import metadata, record
from tests.unit.test_openpgp import ARMOURED, FINGERPRINT


def test_a_priority_is_a_pin_of_all_that_the_host_has(key: str) -> None:
    every = 'Package: *\nPin: origin "linux.mellanox.com"\nPin-Priority: 700\n\n'
    (written,) = [
        action
        for action in done(drivers(doca(key, priority=700)), host())
        if isinstance(action, InstallFile) and action.path == PIN
    ]
    assert written.content == pin(every)
    none = drivers(doca(key, never=[]))
    assert PIN not in found(none, host())
    # Where none is asked for any more it goes.
    assert RemoveFile(path=PIN) in done(none, host(record(PIN, pin())))


def test_a_pin_that_reaches_another_repository_of_that_host_is_told(key: str) -> None:
    other = "/etc/apt/sources.list:1:deb https://linux.mellanox.com/ubuntu noble main\n"
    setting = found(drivers(doca(key)), host(entries=other))[PIN]
    assert setting.remedy is not None
    assert "/etc/apt/sources.list:1" in setting.remedy
    assert setting.acts
    assert found(drivers(doca(key)), host())[PIN].remedy is None


def test_a_key_with_another_fingerprint_refuses_all_of_its_repository(key: str) -> None:
    asked = drivers(doca(key, fingerprint="A" * 40))
    stand = found(asked, host())
    refused = stand["key doca"].persisted
    assert refused.standing is Standing.UNREADABLE
    assert refused.detail == (
        f"key {key} of repository doca: expected the one key {'A' * 40}, found {FINGERPRINT}"
    )
    assert {name for name, s in stand.items() if s.acts} == {PIN, "dpkg"}
    assert [a.path for a in done(asked, host()) if isinstance(a, InstallFile)] == [PIN]
    assert words(asked, host()) == ()
    remedy = stand[f"package {OFED}"].remedy
    assert remedy is not None
    assert remedy.startswith("no package is changed: repository doca: key ")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (record(KEY, "no key\n"), "no key"),
        (record(KEY, ARMOURED.decode(), mode="666"), f"{FINGERPRINT} root 666"),
        (metadata(KEY).replace("file file", "file directory"), "directory"),
    ],
)
def test_a_key_that_is_not_the_right_one_on_the_node_is_replaced(
    key: str, written: str, value: str
) -> None:
    asked = drivers(doca(key))
    rest = ours(doca(key)).replace(record(KEY, ARMOURED.decode()), "")
    seen = host(rest + written, VERSIONS)
    assert found(asked, seen)["key doca"].persisted.value == value
    install, script = done(asked, seen)
    assert install == InstallFile(path=KEY, content=ARMOURED.decode())
    # The index is then verified anew, and no package is touched.
    assert isinstance(script, RunScript)
    assert script.arguments == (f"source:{SOURCE}", "refresh")


def test_a_key_that_cannot_be_read_is_told_and_stops(tmp_path: Path) -> None:
    asked = drivers(doca(str(tmp_path / "none.asc")))
    setting = found(asked, host())["key doca"]
    assert verdict(setting, LIVE) is Verdict.UNREADABLE
    assert setting.persisted.detail is not None
    assert "cannot be read" in setting.persisted.detail
    assert words(asked, host()) == ()


def test_an_entry_of_somebody_else_decides_and_is_left(key: str) -> None:
    entry = f"/etc/apt/sources.list.d/doca.list:3:deb [trusted=yes] {DOCA}/ ./\n"
    asked = drivers(doca(key))
    for files in ("", ours(doca(key))):
        seen = host(files, entries=entry)
        source = found(asked, seen)[SOURCE]
        assert verdict(source, LIVE) is Verdict.OVERRIDDEN
        assert source.persisted.decider == "/etc/apt/sources.list.d/doca.list:3"
        assert words(asked, seen) == ()
        assert SOURCE not in {getattr(action, "path", "") for action in done(asked, seen)}


@pytest.mark.parametrize(
    "entry",
    [
        f"/etc/apt/sources.list.d/doca.list:1:deb {DOCA} noble main\n",
        f"/etc/apt/sources.list.d/doca.list:1:# deb {DOCA} ./\n",
        "/etc/apt/sources.list.d/doca.list:1:deb https://mirror.example/doca ./\n",
    ],
)
def test_healthy_twin_an_entry_of_another_repository_is_no_rival(key: str, entry: str) -> None:
    asked = drivers(doca(key))
    assert words(asked, host(entries=entry))[-3:] == INSTALL


def test_sources_that_cannot_be_read_are_never_none(key: str) -> None:
    seen = host(entries="unreadable /etc/apt/sources.list.d/doca.list\n")
    with pytest.raises(ValueError, match=r"doca\.list cannot be read"):
        found(drivers(doca(key)), seen)


def test_a_repository_of_another_manager_is_told_and_nothing_comes_from_it(key: str) -> None:
    asked = drivers(cuda(key))
    stand = found(asked, host())
    assert stand["key doca"].remedy == (
        "this node's package manager is dpkg, and the repository is one of dnf"
    )
    assert verdict(stand[f"package {OFED}"], LIVE) is Verdict.WRONG
    assert done(asked, host()) == []


def test_what_is_asked_for_no_more_goes_sources_first(key: str) -> None:
    stand = found(DriverSet(), host(ours(doca(key))))
    assert {s.desired for s in stand.values()} == {"absent"}
    assert done(DriverSet(), host(ours(doca(key)))) == [
        RemoveFile(path=SOURCE),
        RemoveFile(path=PIN),
        RemoveFile(path=KEY),
    ]
