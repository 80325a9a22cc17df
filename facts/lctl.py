"""What ``lctl dl`` and ``lctl get_param`` print.

Format: obd_device_list in lustre/obdclass/class_obd.c; do_param_op() in lustre/utils.
"""

import re

from pydantic import Field, computed_field

from railwright.model import Model


class Device(Model):
    """One device of the client; ``status`` is UP where it is in use."""

    status: str
    kind: str
    name: str


_LINE = re.compile(
    r"\s*(?P<index>\d+)\s+(?P<status>[A-Z]{2})\s+(?P<kind>\w+)\s+(?P<name>\S+)\s+\S+\s+\d+\s*"
)
_TARGET = re.compile(r"(?P<fs>\S{1,8})-(?P<what>MDT|OST)(?P<index>[0-9a-f]{4})-(mdc|osc)-\S+")


class Devices(Model):
    """The devices that ``lctl dl`` lists."""

    devices: tuple[Device, ...]

    def _targets(self, what: str) -> list[re.Match[str]]:
        found = (_TARGET.fullmatch(device.name) for device in self.devices)
        return [one for one in found if one is not None and one["what"] == what]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def filesystems(self) -> list[str]:
        names = {found["fs"] for what in ("MDT", "OST") for found in self._targets(what)}
        return sorted(names)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fsname(self) -> str | None:
        """The file system, where there is one alone."""
        return self.filesystems[0] if len(self.filesystems) == 1 else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mgs(self) -> list[str]:
        """NIDs by which the MGSs are reached."""
        return sorted(d.name.removeprefix("MGC") for d in self.devices if d.kind == "mgc")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mgs_nid(self) -> str | None:
        return self.mgs[0] if len(self.mgs) == 1 else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mdt(self) -> int:
        return len(self._targets("MDT"))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ost(self) -> int:
        return len(self._targets("OST"))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ost_index(self) -> dict[str, list[int]]:
        """Indices of OSTs by file system; names have them in hexadecimal."""
        found: dict[str, list[int]] = {}
        for target in self._targets("OST"):
            found.setdefault(target["fs"], []).append(int(target["index"], 16))
        return found

    @computed_field  # type: ignore[prop-decorator]
    @property
    def not_up(self) -> list[str]:
        return [device.name for device in self.devices if device.status != "UP"]


def parse_devices(text: str, rc: int = 0) -> Devices:
    """Read ``lctl dl``; nothing printed is no device. Raises ValueError for a line of another kind,
    and where the tool failed."""
    if rc != 0:
        raise ValueError(f"lctl dl exited {rc}: {text.strip()[:80] or 'no word'}")
    found = []
    for line in filter(str.strip, text.splitlines()):
        row = _LINE.fullmatch(line)
        if row is None:
            raise ValueError(f"expected a device of lctl dl, got {line[:80]!r}")
        found.append(Device(status=row["status"], kind=row["kind"], name=row["name"]))
    return Devices(devices=tuple(found))


_PARAMETER = re.compile(r"(?P<name>[a-z]\w*(?:\.[\w.@:*-]+)*)=(?P<value>.*)")
_ERROR = re.compile(
    r"error: get_param: (?:param_path '(?P<path>[^']+)'|(?P<other>[^:]+)): (?P<why>.+)"
)
_CURRENT = re.compile(r"\[(\S+)\]")


class Parameters(Model):
    """``values`` by the whole name of a parameter; ``errors`` are why others were not told, by the
    name that was asked for, its dots as slashes."""

    values: dict[str, str] = Field(default={})
    errors: dict[str, str] = Field(default={})


def parse_parameters(text: str) -> Parameters:
    """Read what ``lctl get_param`` said on both streams.

    Of a value of many lines that is kept which repeats the parameter's own name (max_cached_mb),
    else its first; of a choice in brackets (checksum_type) the one that is chosen. Raises
    ValueError for another text.
    """
    values: dict[str, str] = {}
    errors: dict[str, str] = {}
    name: str | None = None
    for line in filter(str.strip, text.splitlines()):
        error, parameter = _ERROR.fullmatch(line), _PARAMETER.fullmatch(line)
        if error is not None:
            errors[(error["path"] or error["other"]).strip()] = error["why"]
        elif parameter is not None:
            name = parameter["name"]
            values[name] = _chosen(parameter["value"])
        elif name is not None:
            key, colon, value = line.strip().partition(":")
            if not values[name] or (colon and key == name.rpartition(".")[2]):
                values[name] = value.strip() if colon else line.strip()
        else:
            raise ValueError(f"expected NAME=VALUE of lctl get_param, got {line[:80]!r}")
    return Parameters(values=values, errors=errors)


def _chosen(value: str) -> str:
    found = _CURRENT.search(value)
    return found[1] if found else value.strip()
