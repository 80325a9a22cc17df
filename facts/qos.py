"""RoCE's QoS on the ports of a node: DCB, pause, ECN, rdma_cm, lldpad, and the units that keep it.

DCB is read by ``dcb``, and by NVIDIA's ``mlnx_qos`` where a node has no ``dcb``.
"""

import re
from typing import ClassVar, TypeVar

from facts import dcb, mlnx_qos
from facts.answers import Answer, parse_answers
from facts.dcb import App, Buffer, Dcbx, Ets, Pfc, parse_dcb
from facts.ethtool import Pause, parse_pause
from facts.ethtool import Refusal as PauseRefusal
from facts.mlnx_qos import Report, parse_mlnx_qos
from facts.probe import Section, SnapshotFact
from facts.units import Unit, parse_units
from railwright.model import Model
from railwright.owned_unit import OwnedUnit
from railwright.snapshot import Snapshot

DATA_DIR = "/etc/railwright/qos"
SCRIPT_PATH = "/usr/local/sbin/railwright-qos"
WATCH_SCRIPT_PATH = "/usr/local/sbin/railwright-qos-watch"
UNIT_PATH = "/etc/systemd/system/railwright-qos@.service"
WATCH = OwnedUnit(name="railwright-qos-watch.service", target="multi-user.target")
RULES_PATH = "/etc/udev/rules.d/90-railwright-qos.rules"
LLDPAD = "lldpad.service"
CM = "/sys/kernel/config/rdma_cm"


def traffic_class_path(device: str, port: int = 1) -> str:
    return f"/sys/class/infiniband/{device}/tc/{port}/traffic_class"


def rdma_cm_path(device: str, attribute: str, port: int = 1) -> str:
    return f"{CM}/{device}/ports/{port}/{attribute}"


PORTS = Section(
    name="qos_ports",
    for_rails=True,
    deadline_s=30,
    script=r"""
for port in $(ports); do
    if command -v dcb >/dev/null || ! command -v mlnx_qos >/dev/null; then
        for object in dcbx app pfc ets buffer; do
            answer "$port" "$object" dcb -j "$object" show dev "$port"
        done
    else
        answer "$port" mlnx_qos mlnx_qos -i "$port" -a
    fi
    # Not as JSON: that of ethtool 6.1 says true for whatever is off.
    answer "$port" pause ethtool -a "$port"
done
true
""",
)
KERNEL = Section(
    name="qos_kernel",
    for_rails=True,
    # In configfs and debugfs nothing is made, and nothing is mounted.
    script=r"""
line='
'
for folder in /sys/class/net/*/ecn /sys/kernel/debug/mlx5/*/cc_params /sys/kernel/config/rdma_cm; do
    [ ! -d "$folder" ] || echo "folder $folder"
done
for file in /sys/class/net/*/ecn/roce_*p/enable/* /sys/class/net/*/ecn/roce_np/cnp_* \
    /sys/kernel/debug/mlx5/*/cc_params/np_cnp_* \
    /sys/kernel/config/rdma_cm/*/ports/*/default_roce_* \
    /sys/class/infiniband/*/tc/*/traffic_class; do
    [ -e "$file" ] || continue
    # The traffic class has no line at all until one is set. Not by head, which seeks back: files
    # of debugfs refuse it.
    if { IFS= read -r value <"$file"; } 2>/dev/null; then told=value
    elif value=$(cat "$file" 2>&1); then told=value
    else told=refused; fi
    echo "$told $file ${value%%"$line"*}"
done
true
""",
)
SECTIONS = (
    PORTS,
    KERNEL,
    Section(
        name="qos_files",
        script=f"""
files {DATA_DIR}/*.conf {SCRIPT_PATH} {WATCH_SCRIPT_PATH} {UNIT_PATH} {WATCH.path} {RULES_PATH}
meta {WATCH.link}
""",
    ),
    Section(
        name="qos_units",
        for_rails=True,
        script=f"""
set -- {WATCH.name} {LLDPAD}
for file in {DATA_DIR}/*.conf; do
    [ -e "$file" ] || continue
    name=${{file##*/}}
    set -- "$@" "railwright-qos@${{name%.conf}}.service"
done
units "$@"
""",
    ),
    Section(
        name="qos_lldpad",
        for_rails=True,
        script=r"""
systemctl is-active --quiet lldpad.service || return 0
for port in $(ports); do
    for tlv in PFC ETS-CFG; do
        answer "$port" "$tlv" lldptool -t -i "$port" -V "$tlv" -c willing
    done
done
true
""",
    ),
)

T = TypeVar("T", bound=Model)


class Problem(Model):
    """What a tool does not tell of a port; ``unsupported`` where the driver has no such thing."""

    reason: str
    unsupported: bool = False


class PortQos(Model):
    """What the tools tell of one port."""

    dcbx: Dcbx | Problem
    app: App | Problem
    pfc: Pfc | Problem
    ets: Ets | Problem
    buffer: Buffer | Problem
    pause: Pause | Problem


class KernelFiles(Model):
    """Files of sysfs, debugfs and configfs by path; ``refused`` are there and cannot be read."""

    folders: frozenset[str]
    values: dict[str, str]
    refused: dict[str, str]

    def forced_class(self, device: str, port: int = 1) -> int | None:
        """The traffic class that NVIDIA's driver gives all packets, whatever is asked of it.

        A class for single addresses ("tclass=106 src_ip=...") is none.
        """
        value = self.values.get(traffic_class_path(device, port), "")
        found = re.fullmatch(r"Global tclass=([0-9]+)", value)
        return int(found[1]) if found else None

    def cma_tos(self, device: str, port: int = 1) -> int | None:
        """The ToS byte of connections of rdma_cm."""
        value = self.values.get(rdma_cm_path(device, "default_roce_tos", port), "")
        return int(value) if value.isdecimal() else None


class QosState(Model):
    """All ports by interface.

    ``willing`` are the TLVs of lldpad by interface in which it takes the switch's word, a Problem
    where it does not tell; it is empty where lldpad does not run.
    """

    ports: dict[str, PortQos]
    kernel: KernelFiles
    willing: dict[str, tuple[str, ...] | Problem]


def read_qos(snapshot: Snapshot) -> QosState:
    """What the sections say. Raises ValueError where they were cut short."""
    return QosState(
        ports=read_port_qos(snapshot),
        kernel=read_kernel_files(snapshot),
        willing=_willing(parse_answers(snapshot.text("qos_lldpad"), snapshot.marker)),
    )


def read_port_qos(snapshot: Snapshot) -> dict[str, PortQos]:
    """What the tools tell, by interface. Raises ValueError where an answer breaks off."""
    by_port: dict[str, dict[str, Answer]] = {}
    for answer in parse_answers(snapshot.text(PORTS.name), snapshot.marker):
        by_port.setdefault(answer.port, {})[answer.what] = answer
    return {port: _port(found) for port, found in by_port.items()}


def read_kernel_files(snapshot: Snapshot) -> KernelFiles:
    """Raises ValueError."""
    return parse_kernel_files(snapshot.text(KERNEL.name))


def read_qos_units(snapshot: Snapshot) -> dict[str, Unit]:
    """lldpad and the units that the node has data for, by name; none where systemd is silent."""
    return parse_units(snapshot.text("qos_units"))


def parse_kernel_files(text: str) -> KernelFiles:
    """Read the section ``qos_kernel``. Raises ValueError for a line of another kind."""
    folders: set[str] = set()
    values, refused = {}, {}
    for line in filter(None, text.splitlines()):
        kind, _, rest = line.partition(" ")
        path, _, value = rest.partition(" ")
        if kind == "folder":
            folders.add(path)
        elif kind == "value":
            values[path] = value
        elif kind == "refused":
            refused[path] = value.rpartition(": ")[2] or "no reason given"
        else:
            raise ValueError(f"expected folder, value or refused, got {line[:80]!r}")
    return KernelFiles(folders=frozenset(folders), values=values, refused=refused)


def _port(found: dict[str, Answer]) -> PortQos:
    pause = _pause(found.get("pause"))
    report = found.get("mlnx_qos")
    if report is not None:
        return _of_report(report, pause)
    return PortQos(
        dcbx=_dcb(found.get("dcbx"), Dcbx),
        app=_dcb(found.get("app"), App),
        pfc=_dcb(found.get("pfc"), Pfc),
        ets=_dcb(found.get("ets"), Ets),
        buffer=_dcb(found.get("buffer"), Buffer),
        pause=pause,
    )


def _dcb(answer: Answer | None, kind: type[T]) -> T | Problem:
    if answer is None:
        return Problem(reason="dcb was not asked")
    try:
        # DCBX in nobody's hands names no flag, as an empty table names no entry.
        empty = kind is Dcbx and answer.text.strip() == "{}"
        read = Dcbx(flags=()) if empty else parse_dcb(answer.text, answer.rc)
    except ValueError as error:
        return Problem(reason=str(error))
    if isinstance(read, dcb.Refusal):
        lacks = read.error in ("dcb_not_supported", "attribute_missing")
        detail = "there is no dcb (package iproute2)" if read.error == "not_installed" else None
        return Problem(reason=detail or read.detail, unsupported=lacks)
    return read if isinstance(read, kind) else Problem(reason=f"dcb told another object: {read}")


def _pause(answer: Answer | None) -> Pause | Problem:
    if answer is None:
        return Problem(reason="ethtool was not asked")
    try:
        read = parse_pause(answer.text, answer.rc)
    except ValueError as error:
        return Problem(reason=str(error))
    if isinstance(read, PauseRefusal):
        return Problem(reason=read.message, unsupported=read.error == "not_supported")
    return read


def _of_report(answer: Answer, pause: Pause | Problem) -> PortQos:
    """The report of mlnx_qos in the shape of dcb's objects."""
    try:
        read = parse_mlnx_qos(answer.text, answer.rc)
    except ValueError as error:
        return _without(Problem(reason=str(error)), pause)
    if isinstance(read, mlnx_qos.Refusal):
        reason = f"mlnx_qos: {read.error.replace('_', ' ')}"
        return _without(Problem(reason=reason, unsupported=read.error != "not_installed"), pause)
    return PortQos(
        dcbx=Dcbx(flags=("host", "ieee") if read.dcbx == "os" else ("ieee",))
        if read.dcbx
        else Problem(reason="mlnx_qos does not tell the DCBX mode"),
        app=App(dscp2prio=read.dscp2prio)
        if read.trust
        else Problem(reason="mlnx_qos does not tell the trust state", unsupported=True),
        pfc=Pfc(pfc_enabled=read.pfc_enabled, delay=read.cable_len),
        ets=_ets_of(read),
        buffer=Buffer(
            prio_buffer=dict(enumerate(read.prio2buffer)),
            buffer_size=dict(enumerate(read.buffers)),
        )
        if read.prio2buffer is not None and read.buffers is not None
        else Problem(reason="mlnx_qos does not tell the buffers", unsupported=True),
        pause=pause,
    )


def _without(problem: Problem, pause: Pause | Problem) -> PortQos:
    return PortQos(dcbx=problem, app=problem, pfc=problem, ets=problem, buffer=problem, pause=pause)


def _ets_of(report: Report) -> Ets | Problem:
    if report.tc is None or report.tc_tsa is None or report.tc_bw is None:
        return Problem(reason="mlnx_qos does not number the traffic classes")
    prio_tc = {priority: tc for tc, priorities in report.tc.items() for priority in priorities}
    return Ets(prio_tc=prio_tc, tc_tsa=dict(report.tc_tsa), tc_bw=report.tc_bw)


# What lldptool says of a port that lldpad leaves alone. Source: lldpad, lldptool.c.
_LEFT_ALONE = re.compile(r"not found or inactive|Agent instance for device not found")


def _willing(found: list[Answer]) -> dict[str, tuple[str, ...] | Problem]:
    states: dict[str, tuple[str, ...] | Problem] = {}
    for answer in found:
        state = states.setdefault(answer.port, ())
        told = re.search(r"willing\s*=\s*(yes|no)", answer.text)
        if isinstance(state, Problem) or _LEFT_ALONE.search(answer.text):
            continue
        if told is None:
            reason = f"lldptool: {' '.join(answer.text.split())[:80] or 'no answer'}"
            states[answer.port] = Problem(reason=reason)
        elif told[1] == "yes":
            states[answer.port] = (*state, answer.what)
    return states


class Qos(SnapshotFact):
    """``pyinfra INVENTORY fact facts.qos.Qos``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS

    def read(self, snapshot: Snapshot) -> QosState:
        return read_qos(snapshot)
