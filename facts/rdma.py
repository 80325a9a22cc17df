"""RDMA links as iproute2's ``rdma link show`` lists them: JSON, text, and text with details.

Formats: iproute2 rdma/link.c.
"""

import re

from facts.json_text import as_objects, load_json
from railwright.model import Model


class RdmaLink(Model):
    """One port of an RDMA device.

    ``ifname`` is the RDMA device (mlx5_0), ``netdev`` the network interface on the same port;
    None where there is none, as for InfiniBand before Linux 6.7, or where it lives in another
    network namespace. The local identifiers and the subnet prefix are those of InfiniBand.
    """

    ifname: str
    port: int
    state: str
    physical_state: str
    netdev: str | None = None
    lid: int | None = None
    sm_lid: int | None = None
    lmc: int | None = None
    subnet_prefix: str | None = None
    caps: tuple[str, ...] = ()
    """Capabilities of the port; only there where details were asked for (``-d``)."""

    @property
    def name(self) -> str:
        """The port as the rdma tool names it: ``mlx5_0/1``."""
        return f"{self.ifname}/{self.port}"


_START = re.compile(r"^(?:link |\d+/\d+: )", re.MULTILINE)
_HEAD = re.compile(r"(?:link |\d+/\d+: )\s*([^\s/]+)/(\d+):?(?=\s|$)")
_CAPS = re.compile(r"\bcaps: <([^<>]*)>")


def parse_rdma_links(text: str) -> tuple[RdmaLink, ...]:
    """Read ``rdma link show`` or ``rdma -j link show``.

    Nothing at all is what the tool prints where there is no RDMA device. Raises ValueError.
    """
    if text.lstrip().startswith(("[", "{")):
        return _from_json(text)
    starts = [match.start() for match in _START.finditer(text)]
    head = text[: starts[0]] if starts else text
    if head.strip():
        raise ValueError(f"expected rdma link show, got {head.strip()[:80]!r}")
    ends = [*starts[1:], len(text)]
    return tuple(_from_text(text[start:end]) for start, end in zip(starts, ends, strict=False))


def _from_text(block: str) -> RdmaLink:
    head = _HEAD.match(block)
    if head is None:
        raise ValueError(f"expected a link as DEVICE/PORT, got {block.strip()[:80]!r}")
    rest = block[head.end() :]
    caps = _CAPS.search(rest)
    words = _CAPS.sub(" ", rest).split()
    if len(words) % 2:
        raise ValueError(f"link {head[1]}/{head[2]}: expected pairs, got {' '.join(words)[:80]!r}")
    values = dict(zip(words[::2], words[1::2], strict=True))
    return _link(head[1], head[2], values, caps[1].split(", ") if caps and caps[1] else [])


def _from_json(text: str) -> tuple[RdmaLink, ...]:
    what = "rdma -j link show"
    return tuple(_entry(entry) for entry in as_objects(load_json(text, what), what))


def _entry(entry: dict[str, object]) -> RdmaLink:
    caps = entry.get("caps", [])
    if not isinstance(caps, list):
        raise ValueError(f"expected a list of capabilities, got {caps!r}")
    values = {key: str(value) for key, value in entry.items() if value is not None}
    # Older iproute2 has the port in the name too: "mlx5_0/1".
    name = values.get("ifname", "").partition("/")[0]
    return _link(name, values.get("port", ""), values, [str(cap) for cap in caps])


def _link(ifname: str, port: str, values: dict[str, str], caps: list[str]) -> RdmaLink:
    if not ifname or not port.isdecimal():
        raise ValueError(f"expected an RDMA device and a port, got {ifname!r} and {port!r}")
    where = f"link {ifname}/{port}"
    for key in ("state", "physical_state"):
        if key not in values:
            raise ValueError(f"{where}: expected its {key}")
    return RdmaLink(
        ifname=ifname,
        port=int(port),
        state=values["state"],
        physical_state=values["physical_state"],
        netdev=values.get("netdev"),
        lid=_number(where, "lid", values),
        sm_lid=_number(where, "sm_lid", values),
        lmc=_number(where, "lmc", values),
        subnet_prefix=values.get("subnet_prefix"),
        caps=tuple(caps),
    )


def _number(where: str, key: str, values: dict[str, str]) -> int | None:
    value = values.get(key)
    if value is None:
        return None
    if not value.isdecimal():
        raise ValueError(f"{where}: expected a number as {key}, got {value!r}")
    return int(value)
