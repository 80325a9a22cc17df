"""How the QoS of one port stands to what it must be."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from facts.dcb import Buffer, Dcbx, Ets
from facts.nics import RdmaDevice
from facts.qos import (
    CM,
    KernelFiles,
    PortQos,
    Problem,
    QosState,
    rdma_cm_path,
    traffic_class_path,
)
from railwright import qos as text
from railwright.qos import Name
from railwright.schema import RoceQos
from railwright.settings import Standing, State

_NO_RDMA = "there is no RDMA device on it yet"

_UNKNOWN = Problem(reason="no tool was asked about this port")
_NOT_ASKED = PortQos(
    dcbx=_UNKNOWN, app=_UNKNOWN, pfc=_UNKNOWN, ets=_UNKNOWN, buffer=_UNKNOWN, pause=_UNKNOWN
)

T = TypeVar("T")


class View(NamedTuple):
    """One port, and all that was read of the node."""

    interface: str
    pci: str
    driver: str
    rdma: RdmaDevice | None
    qos: RoceQos
    state: QosState

    @property
    def port(self) -> PortQos:
        return self.state.ports.get(self.interface, _NOT_ASKED)


def is_left_out(name: Name, view: View) -> bool:
    """Whether the inventory leaves it out: ECN of the kernel's driver, which has no switch."""
    inbox = view.qos.backend == "inbox" and not _has_switch(view)
    return name == "ecn" and inbox and not view.qos.ecn_in_firmware


def running(name: Name, desired: str, view: View) -> State:
    """How ``name`` is in force on the port. What cannot be read is unreadable, never right."""
    return _READERS[name](desired, view)


def not_applicable(name: Name, view: View) -> str | None:
    """Why the port can have no such thing, and who decides in its place."""
    if name == "traffic class" and view.qos.backend == "inbox":
        value = view.qos.traffic_class
        return (
            f"the inbox driver cannot force it: the application must set NCCL_IB_TC={value}, "
            f"UCX_IB_TRAFFIC_CLASS={value}, or --tclass={value}"
        )
    if _has_switch(view) or view.qos.backend == "nvidia":
        return None
    if name == "ecn":
        return "the inbox driver has no switch for it: ROCE_CC_PRIO_MASK in the firmware decides"
    has_parameters = _parameters(view) in view.state.kernel.folders
    if name in ("cnp dscp", "cnp priority") and view.driver != "mlx5_core" and not has_parameters:
        return f"the driver {view.driver} has no parameters of congestion control"
    return None


def ets_text(found: Ets) -> str:
    """ETS as it is desired. The share of a class that is not ets says nothing: mlx5 shows 100."""
    shares = [
        f"{found.tc_bw.get(tc, 0)}%" if tsa == "ets" else tsa or "unknown"
        for tc, tsa in sorted(found.tc_tsa.items())
    ]
    prio_tc = tuple(found.prio_tc[priority] for priority in sorted(found.prio_tc))
    return str(text.Ets(prio_tc=prio_tc, shares=tuple(shares)))


def dcbx_text(dcbx: Dcbx, ets: Ets | Problem) -> str:
    """Who decides: ``host``, ``firmware`` or ``agent``, and whether it is willing."""
    owner = text.HOST if "host" in dcbx.flags else "firmware"
    if "lld_managed" in dcbx.flags:
        owner = "agent"
    return f"{owner}, willing" if isinstance(ets, Ets) and ets.willing else owner


def _told(value: str, desired: str, detail: str | None = None) -> State:
    right = value == desired
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=value,
        detail=None if right else detail,
    )


def _unread(reason: str) -> State:
    return State(standing=Standing.UNREADABLE, detail=reason)


def _has_switch(view: View) -> bool:
    return f"/sys/class/net/{view.interface}/ecn" in view.state.kernel.folders


def _shown(part: T | Problem, desired: str, show: Callable[[T], str]) -> State:
    return _unread(part.reason) if isinstance(part, Problem) else _told(show(part), desired)


def _dcbx(desired: str, view: View) -> State:
    return _shown(view.port.dcbx, desired, lambda dcbx: dcbx_text(dcbx, view.port.ets))


def _trust(desired: str, view: View) -> State:
    return _shown(view.port.app, desired, lambda app: "dscp" if app.dscp2prio else "pcp")


def _dscp_map(desired: str, view: View) -> State:
    return _shown(view.port.app, desired, lambda app: text.mapped(app.dscp2prio))


def _pfc(desired: str, view: View) -> State:
    return _shown(view.port.pfc, desired, lambda pfc: text.listed(pfc.pfc_enabled))


def _ets(desired: str, view: View) -> State:
    return _shown(view.port.ets, desired, ets_text)


def _cable(desired: str, view: View) -> State:
    # mlx5 tells the length in metres as the delay of PFC (en_dcbnl.c, mlx5e_dcbnl_ieee_getpfc).
    return _shown(view.port.pfc, desired, lambda pfc: str(pfc.delay))


def _buffer(desired: str, view: View) -> State:
    return _shown(view.port.buffer, desired, lambda found: _buffers_text(found, view.qos))


def _buffers_text(found: Buffer, qos: RoceQos) -> str:
    asked = text.receive_buffers(qos)
    sizes = tuple(found.buffer_size[buffer] for buffer in sorted(found.buffer_size))
    shown: tuple[int, ...] | None = sizes
    if asked is not None and (asked.sizes is None or text.same_sizes(asked.sizes, sizes)):
        shown = asked.sizes
    prio_buffer = tuple(found.prio_buffer[priority] for priority in sorted(found.prio_buffer))
    return str(text.ReceiveBuffers(prio_buffer=prio_buffer, sizes=shown))


def _pause(desired: str, view: View) -> State:
    pause = view.port.pause
    if isinstance(pause, Problem):
        if pause.unsupported:
            return State(standing=Standing.RIGHT, value="off", detail="the driver has no pause")
        return _unread(pause.reason)
    if pause.rx is None or pause.tx is None:
        return _unread("ethtool -a does not tell it")
    told = {True: "on", False: "off"}
    both = told[pause.rx] if pause.rx == pause.tx else f"rx {told[pause.rx]} tx {told[pause.tx]}"
    return _told(both, desired)


def _file(path: str, desired: str, files: KernelFiles, absent: str) -> State:
    if path in files.refused:
        return _unread(f"{path}: {files.refused[path]}")
    if path not in files.values:
        return State(standing=Standing.ABSENT, detail=absent)
    return _told(files.values[path], desired)


def _ecn(desired: str, view: View) -> State:
    """Both points for each priority that is asked for.

    The live value alone counts: the firmware's mask is of the next boot. Source: ROCm/mori#658.
    """
    tree, files = f"/sys/class/net/{view.interface}/ecn", view.state.kernel
    if not _has_switch(view):
        return State(standing=Standing.ABSENT, detail=f"there is no {tree}: not NVIDIA's driver")
    on: dict[str, list[int]] = {"np": [], "rp": []}
    for side, priorities in on.items():
        for priority in sorted(view.qos.ecn):
            path = f"{tree}/roce_{side}/enable/{priority}"
            if path in files.refused or path not in files.values:
                return _unread(f"{path}: {files.refused.get(path, 'there is no such file')}")
            if files.values[path] == "1":
                priorities.append(priority)
    half = bool(on["np"]) != bool(on["rp"])
    detail = "with one of the two points there is no congestion control" if half else None
    return _told(text.both_points(on["np"], on["rp"]), desired, detail)


def _cnp_dscp(desired: str, view: View) -> State:
    return _cnp(desired, view, tree="cnp_dscp", parameter="np_cnp_dscp")


def _cnp_priority(desired: str, view: View) -> State:
    state = _cnp(desired, view, tree="cnp_802p_prio", parameter="np_cnp_prio")
    mode = f"{_parameters(view)}/np_cnp_prio_mode"
    if _has_switch(view) or view.state.kernel.values.get(mode, "0") == "0":
        return state
    # Then a CNP has the priority of the packet that it answers.
    value = f"{state.value}, not in use (np_cnp_prio_mode)"
    return State(standing=Standing.WRONG, value=value)


def _parameters(view: View) -> str:
    return f"/sys/kernel/debug/mlx5/{view.pci}/cc_params"


def _cnp(desired: str, view: View, tree: str, parameter: str) -> State:
    files = view.state.kernel
    if _has_switch(view) or view.qos.backend == "nvidia":
        path = f"/sys/class/net/{view.interface}/ecn/roce_np/{tree}"
        return _file(path, desired, files, f"there is no {path}: not NVIDIA's driver")
    folder = _parameters(view)
    if folder not in files.folders:
        if view.rdma is None:
            return State(standing=Standing.LATE, detail=_NO_RDMA)
        return _unread(f"there is no {folder}: debugfs is not mounted, or the firmware refuses it")
    return _file(f"{folder}/{parameter}", desired, files, f"there is no {folder}/{parameter}")


def _rdma_cm_tos(desired: str, view: View) -> State:
    return _with_landing(_rdma_cm("default_roce_tos", desired, view), view)


def _rdma_cm_mode(desired: str, view: View) -> State:
    return _rdma_cm("default_roce_mode", desired, view)


def _rdma_cm(attribute: str, desired: str, view: View) -> State:
    """What connections by rdma_cm get; shown below a directory that has to be made.

    Our unit makes it and leaves it there. Without it nobody can tell the value.
    Source: drivers/infiniband/core/cma_configfs.c.
    """
    if view.rdma is None:
        return State(standing=Standing.LATE, detail=_NO_RDMA)
    absent = f"{CM}/{view.rdma.name} is not there, which shows it; our unit makes it"
    if CM not in view.state.kernel.folders:
        absent = "rdma_cm is not loaded, or configfs is not mounted"
    path = rdma_cm_path(view.rdma.name, attribute)
    return _file(path, desired, view.state.kernel, absent)


def _traffic_class(desired: str, view: View) -> State:
    if view.rdma is None:
        return State(standing=Standing.LATE, detail=_NO_RDMA)
    files = view.state.kernel
    path = traffic_class_path(view.rdma.name)
    state = _file(path, desired, files, f"there is no {path}: not NVIDIA's driver")
    if state.value is None:
        return state
    forced = files.forced_class(view.rdma.name)
    value = "not set" if forced is None else str(forced)
    return _with_landing(_told(value, desired), view)


def _with_landing(state: State, view: View) -> State:
    """With what becomes of the packets, where they do not land on a lossless priority."""
    app, pfc = view.port.app, view.port.pfc
    if isinstance(app, Problem) or isinstance(pfc, Problem) or state.standing is Standing.RIGHT:
        return state
    if state.value is None:
        return state
    number = int(state.value) if state.value.isdecimal() else 0
    lost = text.landing(number, app.dscp2prio, pfc.pfc_enabled)
    return state.model_copy(update={"detail": lost or state.detail})


Reader = Callable[[str, View], State]
_READERS: Mapping[Name, Reader] = {
    "dcbx": _dcbx,
    "trust": _trust,
    "dscp map": _dscp_map,
    "pfc": _pfc,
    "ets": _ets,
    "buffer": _buffer,
    "cable": _cable,
    "pause": _pause,
    "ecn": _ecn,
    "cnp dscp": _cnp_dscp,
    "cnp priority": _cnp_priority,
    "rdma_cm tos": _rdma_cm_tos,
    "rdma_cm mode": _rdma_cm_mode,
    "traffic class": _traffic_class,
}
