"""The parsers behind ``railwright parse``, by the name of the tool whose output they read.

Each takes the tool's output and its exit code, and raises ValueError for what it cannot read.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from railwright.model import Model

Parsed = Model | Mapping[str, Any]


def _chronyc(text: str, rc: int) -> Parsed:
    from facts.chrony import parse_tracking

    return parse_tracking(text, rc)


def _dcb(text: str, rc: int) -> Parsed:
    from facts.dcb import parse_dcb

    return parse_dcb(text, rc)


def _ethtool_pause(text: str, rc: int) -> Parsed:
    from facts.ethtool import parse_pause

    return parse_pause(text, rc)


def _ethtool_driver(text: str, rc: int) -> Parsed:
    from facts.ethtool import parse_driver

    return parse_driver(text, rc)


def _ethtool_module(text: str, rc: int) -> Parsed:
    from facts.ethtool import parse_module_eeprom

    return parse_module_eeprom(text, rc)


def _ethtool_statistics(text: str, rc: int) -> Parsed:
    from facts.ethtool import parse_statistics

    return parse_statistics(text, rc)


def _hugepages(text: str, rc: int) -> Parsed:
    from facts.hugepages import parse_hugepages

    return parse_hugepages(text, rc)


def _lldpctl(text: str, rc: int) -> Parsed:
    from facts.lldp import parse_lldp

    return parse_lldp(text, rc)


def _lscpu(text: str, _rc: int) -> Parsed:
    from facts.cpu import parse_lscpu

    return parse_lscpu(text)


def _mlnx_qos(text: str, rc: int) -> Parsed:
    from facts.mlnx_qos import parse_mlnx_qos

    return parse_mlnx_qos(text, rc)


def _numactl(text: str, rc: int) -> Parsed:
    from facts.numa import parse_numactl

    return parse_numactl(text, rc)


def _proc_cmdline(text: str, _rc: int) -> Parsed:
    from facts.cmdline import parse_cmdline

    return parse_cmdline(text)


def _sysctl(text: str, _rc: int) -> Parsed:
    from facts.sysctl import parse_values

    return parse_values(text)


def _ulimit(text: str, _rc: int) -> Parsed:
    from facts.ulimit import parse_ulimit

    return parse_ulimit(text)


def _firmware(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import firmware

    return firmware(text)


def _ibdev2netdev(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import ibdev2netdev

    return ibdev2netdev(text, rc)


def _ibstat(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import ibstat

    return ibstat(text)


def _ibstatus(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import ibstatus

    return ibstatus(text)


def _ibv_devinfo(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import ibv_devinfo

    return ibv_devinfo(text)


def _lspci(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import lspci

    return lspci(text)


def _mlxconfig(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import mlxconfig

    return mlxconfig(text)


def _mst_status(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import mst_status

    return mst_status(text)


def _topology(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import topology

    return topology(text)


def _rdma_link(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import rdma_link

    return rdma_link(text, rc)


def _show_gids(text: str, _rc: int) -> Parsed:
    from railwright.cli.parsed_fabric import show_gids

    return show_gids(text)


def _dkms_status(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_drivers import dkms_status

    return dkms_status(text, rc)


def _cufile_log(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_drivers import cufile_log

    return cufile_log(text, rc)


def _gdscheck(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_drivers import gdscheck

    return gdscheck(text, rc)


def _nvidia_fs(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_drivers import nvidia_fs

    return nvidia_fs(text, rc)


def _nvidia_smi_query(text: str, rc: int, command: str) -> Parsed:
    from facts.nvidia_smi import query_fields
    from railwright.cli.parsed_drivers import nvidia_smi_query

    return nvidia_smi_query(text, rc, query_fields(command))


def _nvidia_smi_throttle(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_drivers import nvidia_smi_throttle

    return nvidia_smi_throttle(text, rc)


def _ofed_info(text: str, rc: int) -> Parsed:
    from railwright.cli.parsed_drivers import ofed_info

    return ofed_info(text, rc)


def _beegfs(text: str, rc: int, command: str) -> Parsed:
    from railwright.cli.parsed_beegfs import beegfs

    return beegfs(text, rc, command)


def _fio(text: str, _: int) -> Parsed:
    from facts.fio import parse_fio

    return parse_fio(text)


def _lctl_devices(text: str, rc: int) -> Parsed:
    from facts.lctl import parse_devices

    return parse_devices(text, rc)


def _lfs_df(text: str, _: int) -> Parsed:
    from facts.lfs import parse_df

    return parse_df(text)


def _lnetctl(text: str, rc: int) -> Parsed:
    from facts.lnetctl import parse_net_show

    return parse_net_show(text, rc)


def _nvme(text: str, rc: int) -> Parsed:
    from facts.nvme_cli import parse_nvme

    return parse_nvme(text, rc)


def _proc_mounts(text: str, rc: int) -> Parsed:
    from facts.proc_mounts import parse_proc_mounts

    return {where: mount.to_json() for where, mount in parse_proc_mounts(text, rc).items()}


TOOLS: Mapping[str, Callable[[str, int], Parsed]] = {
    "chronyc": _chronyc,
    "cufile-log": _cufile_log,
    "dcb": _dcb,
    "dkms-status": _dkms_status,
    "ethtool-S": _ethtool_statistics,
    "ethtool-a": _ethtool_pause,
    "ethtool-i": _ethtool_driver,
    "ethtool-m": _ethtool_module,
    "fio": _fio,
    "firmware": _firmware,
    "gdscheck": _gdscheck,
    "hugepages": _hugepages,
    "ibdev2netdev": _ibdev2netdev,
    "ibdev2netdev-v": _ibdev2netdev,
    "ibstat": _ibstat,
    "ibstatus": _ibstatus,
    "ibv-devinfo": _ibv_devinfo,
    "lctl-dl": _lctl_devices,
    "lfs-df": _lfs_df,
    "lldpctl-json": _lldpctl,
    "lnetctl": _lnetctl,
    "lscpu": _lscpu,
    "lspci": _lspci,
    "mlnx-qos": _mlnx_qos,
    "mlxconfig": _mlxconfig,
    "mst-status": _mst_status,
    "numactl-H": _numactl,
    "nvidia-fs-stats": _nvidia_fs,
    "nvidia-smi-throttle": _nvidia_smi_throttle,
    "nvidia-smi-topo": _topology,
    "nvme": _nvme,
    "ofed-info": _ofed_info,
    "proc-cmdline": _proc_cmdline,
    "proc-mounts": _proc_mounts,
    "rdma-link": _rdma_link,
    "show-gids": _show_gids,
    "sysctl-a": _sysctl,
    "ulimit": _ulimit,
}


QUERIES: Mapping[str, Callable[[str, int, str], Parsed]] = {
    "beegfs": _beegfs,
    "nvidia-smi-query": _nvidia_smi_query,
}
"""Those whose output only the command line tells apart, or whose columns it alone names."""


def parse_output(tool: str, text: str, rc: int, command: str = "") -> str:
    """The JSON of what ``tool``'s parser makes of ``text``. Raises ValueError for rubbish."""
    found = QUERIES[tool](text, rc, command) if tool in QUERIES else TOOLS[tool](text, rc)
    return json.dumps(found.to_json() if isinstance(found, Model) else found, indent=2)
