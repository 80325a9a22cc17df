"""What ``railwright parse`` prints of drivers and GPUDirect Storage."""

from facts.cufile_log import parse_cufile_log
from facts.dkms import parse_dkms
from facts.gdscheck import COMPAT, parse_gdscheck
from facts.nvidia_fs import parse_stats
from facts.nvidia_fs_peers import PeerDistances, parse_peer_distance
from facts.nvidia_smi import SmiReport, parse_query
from facts.nvidia_throttle import parse_throttle
from facts.ofed import parse_ofed_info
from railwright.gds.meaning import findings
from railwright.gds.proof import by_log, parse_gpu_stats
from railwright.model import Model

Json = dict[str, object]


def ofed_info(text: str, rc: int) -> Model:
    return parse_ofed_info(text, rc)


def dkms_status(text: str, rc: int) -> Json:
    """Versions and kernels by module, and those that are broken as MODULE/VERSION."""
    found = parse_dkms(text, rc)
    modules: dict[str, list[Json]] = {}
    for entry in found.modules:
        modules.setdefault(entry.module, []).append(entry.to_json())
    broken = [f"{m.module}/{m.version}" for m in found.modules if m.state == "broken"]
    return {
        **modules,
        "installed": found.installed,
        "broken": broken,
        "problems": list(found.problems),
    }


def nvidia_smi_query(text: str, rc: int, fields: tuple[str, ...]) -> Json:
    """GPUs in their order, each under gpuN too; of one alone its values at the top."""
    found = parse_query(text, fields, rc)
    rows = [_asked(found, at) for at in range(len(found.gpus))]
    problem = found.problem.to_json() if found.problem else {}
    named: Json = {f"gpu{at}": row for at, row in enumerate(rows)}
    only = rows[0] if len(rows) == 1 else {}
    return {
        **only,
        "count": len(rows),
        "rows": rows,
        **named,
        "warnings": list(found.warnings),
        **problem,
    }


def _asked(found: SmiReport, at: int) -> Json:
    """What was asked of a GPU, null where it had no value."""
    gpu = found.gpus[at]
    return gpu.model_dump(mode="json", include=gpu.model_fields_set)


def nvidia_smi_throttle(text: str, rc: int) -> Json:
    """GPUs by PCI address."""
    return {pci: gpu.to_json() for pci, gpu in parse_throttle(text, rc).gpus.items()}


def nvidia_fs(text: str, rc: int) -> Json:
    """The counters, or the distances where that file was recorded."""
    if text.lstrip().startswith("gpu") and "peerrank" in text:
        return _distances(parse_peer_distance(text))
    return parse_stats(text, rc).to_json()


def _distances(found: PeerDistances) -> Json:
    pairs = []
    for peer in found.peers:
        pair = peer.to_json()
        pairs.append({**pair, "class": pair.pop("kind")})
    return {"rows": len(pairs), "pairs": pairs}


def cufile_log(text: str, rc: int) -> Json:  # noqa: ARG001 a file has no exit code
    """What the log tells, and which way the process' IO took by it."""
    found = parse_cufile_log(text)
    # Counters stand there only where the process was told to keep them.
    stats = parse_gpu_stats(text) if "Read: bw=" in text else None
    return {**found.to_json(), **by_log(found, stats).to_json()}


def gdscheck(text: str, rc: int) -> Json:
    """The report, what of it is direct, and what its bad lines mean."""
    found = parse_gdscheck(text, rc)
    told = {**found.to_json(), "findings": [f.to_json() for f in findings(found)]}
    if found.error is not None:
        return told
    direct = {name: found.direct(name) for name in found.storages}
    pinned = found.properties.get("properties.max_device_pinned_mem_size_kb", "")
    return {
        **told,
        "drivers": {n: s.supported for n, s in found.storages.items() if s.routes is None},
        "routes": {n: s.routes for n, s in found.storages.items() if s.routes is not None},
        "direct": direct,
        "effective": "direct" if any(direct.values()) else COMPAT,
        "env": found.environment,
        "gpus": len(found.gpus),
        "open_driver": found.open_driver,
        "compat_allowed": found.compat_allowed,
        "p2pdma_blockers": list(found.p2pdma_blockers),
        "pinned_kb": int(pinned) if pinned.isdecimal() else None,
        "warnings": len(found.warnings),
    }
