"""Driver modules on disk, kernel by kernel: files, builds, and the symbol versions that they need.

All kernels that have modules are read, since any may be the next. Of symbols only those come back
whose version is not the one that vmlinux exports: what is left is to be held against the modules
that export it. module_layout always comes, so that a module without versions can be told.
"""

import re
from typing import Literal

from facts.modinfo import parse_modinfos
from facts.probe import Section
from facts.symvers import Export, parse_modversions, parse_symvers
from railwright.drivers.symbols import KernelSymbols, OnDisk, Table
from railwright.model import Model
from railwright.schema.base import module_name
from railwright.snapshot import Snapshot

MODULES = (
    "mlx_compat",
    "ib_core",
    "ib_cm",
    "iw_cm",
    "ib_uverbs",
    "ib_umad",
    "ib_ipoib",
    "rdma_cm",
    "rdma_ucm",
    "mlx5_core",
    "mlx5_ib",
    "nvidia",
    "nvidia_uvm",
    "nvidia_peermem",
    "nvidia_fs",
    "nvme_core",
    "nvme",
    "nvme_rdma",
    "rpcrdma",
    "libcfs",
    "lnet",
    "ko2iblnd",
    "ksocklnd",
    "obdclass",
    "ptlrpc",
    "fld",
    "fid",
    "lov",
    "lmv",
    "mdc",
    "osc",
    "mgc",
    "lustre",
    "beegfs",
)
"""OFED's, the GPU driver's, and those of storage that moves data by them, each with what it is
built upon. Of Lustre's client not all need be there, and more may be: what dkms has built of one
source is known to belong together (railwright.drivers.symbols)."""

_FILES = "|".join(name.replace("_", "[-_]") for name in MODULES)
_PATHS = rf"s#^(([^:]*/)?({_FILES})\.ko[^:]*):.*#\1#p"
_BELOW = rf"s#^([^:]*/)?({_FILES})\.ko[^:]*: *(.+)#below \2 \3#p"

# Four processes a kernel, and one more where it has any of the modules. The vermagic of the kernel
# itself is that of any module which came with it.
DISK = Section(
    name="drivers_disk",
    for_drivers=True,
    deadline_s=60,
    cap_bytes=1 << 21,
    script=rf"""
command -v modinfo >/dev/null || return 127
for list in /lib/modules/*/modules.dep; do
    [ -r "$list" ] || continue
    folder=${{list%/modules.dep}}
    kernel=${{folder##*/}}
    echo "kernel $kernel"
    modinfo -k "$kernel" {" ".join(MODULES)} 2>/dev/null | sed -nE \
        's/^((filename|name|version|srcversion|vermagic|depends|softdep|signer|license):.*)/modinfo \1/p'
    own=$(sed -n '/^kernel\//{{s/:.*//p;q}}' "$list")
    [ -z "$own" ] || echo "vermagic $(modinfo -F vermagic "$folder/$own")"
    # shellcheck disable=SC2046
    set -- $(sed -nE '{_PATHS}' "$list")
    [ $# -eq 0 ] || (cd "$folder" && stat -L -c 'written %Y %n' -- "$@" 2>/dev/null)
    for built in /var/lib/dkms/*/*/"$kernel"/*/module/*.ko*; do
        [ ! -e "$built" ] || echo "built ${{built#/var/lib/dkms/}}"
    done
done
! target=$(readlink -f /usr/src/ofa_kernel/default) || echo "sources $target"
true
""",  # noqa: E501
)

# A pipe is read as /dev/fd/3 where standard input has the patterns.
SYMBOLS = Section(
    name="drivers_symbols",
    for_drivers=True,
    deadline_s=120,
    cap_bytes=1 << 22,
    script=rf"""
command -v modprobe >/dev/null || return 127
tab=$(printf '\t')
symvers() {{
    case $table in
        *.gz) gzip -dc "$table" ;;
        *.xz) xz -dc "$table" ;;
        ?*) cat "$table" ;;
    esac
}}
needs() {{
    for path in "$@"; do
        name=${{path##*/}}
        echo "needs ${{name%%.ko*}}"
        modprobe --dump-modversions "./$path" 2>/dev/null
    done
}}
named() {{
    {{ printf '%s\n' "$names" | grep -wFf - /dev/fd/3; }} 3<&0
}}
for list in /lib/modules/*/modules.dep; do
    [ -r "$list" ] || continue
    cd "${{list%/modules.dep}}" || continue
    kernel=${{PWD##*/}}
    # shellcheck disable=SC2046
    set -- $(sed -nE '{_PATHS}' "$list")
    [ $# -gt 0 ] || continue
    table=
    for file in build/Module.symvers "/usr/src/kernels/$kernel/Module.symvers" symvers.gz \
        symvers.xz "/boot/symvers-$kernel.gz"; do
        [ ! -r "$file" ] || {{ table=$file; break; }}
    done
    echo "kernel $kernel"
    sed -nE '{_BELOW}' "$list"
    unfit=$(needs "$@" | {{
        symvers | sed -nE "s/^(0x[0-9a-f]+)$tab([^$tab]+)${{tab}}vmlinux$tab.*/\1$tab\2/p" |
            grep -vw module_layout | grep -vxFf - /dev/fd/3
    }} 3<&0)
    printf '%s\n' "$unfit"
    names=$(printf '%s\n' "$unfit" | sed -n "s/^0x[0-9a-f]*$tab//p" | sort -u)
    # The hooks of nvidia-fs are needed by no module: who exports them is asked in any case.
    [ ! -r modules.symbols ] || {{
        echo exporters
        {{
            [ -z "$names" ] || named <modules.symbols
            grep -F _register_nvfs_dma_ops modules.symbols
        }} | sort -u
    }}
    [ -n "$names" ] || continue
    [ -z "$table" ] || {{ echo 'table kernel'; symvers | named; }}
    for table in /usr/src/ofa_kernel/*/"$kernel"/Module.symvers \
        /usr/src/ofa_kernel/"$kernel"/Module.symvers; do
        [ ! -r "$table" ] || {{ echo 'table ofed'; symvers | named; }}
    done
    for path in "$@"; do
        case $path in kernel/*) continue ;; esac
        name=${{path##*/}}
        echo "exports ${{name%%.ko*}}"
        modprobe --show-exports "./$path" 2>/dev/null | named
    done
done
true
""",
)

SECTIONS = (DISK, SYMBOLS)


class DriversOnDisk(Model):
    """What there is for one kernel; ``vermagic`` is that of the kernel itself, None where it has
    no module of its own. ``symbols`` is None where they were not read."""

    kernel: str
    disk: OnDisk
    vermagic: str | None = None
    builtin: frozenset[str] = frozenset()
    symbols: KernelSymbols | None = None


def read_kernels(snapshot: Snapshot) -> dict[str, DriversOnDisk]:
    """Kernels that have modules. Raises ValueError where they cannot be read; without kmod's
    tools, as in a container, there is none."""
    if snapshot.section(DISK.name).rc == 127:
        return {}
    symbols = (
        {}
        if snapshot.section(SYMBOLS.name).rc == 127
        else parse_symbols(snapshot.text(SYMBOLS.name))
    )
    return {
        kernel: found.model_copy(update={"symbols": symbols.get(kernel)})
        for kernel, found in parse_disk(snapshot.text(DISK.name)).items()
    }


def sources_kernel(text: str) -> str:
    """The kernel that /usr/src/ofa_kernel/default is for, "" where there is none.

    OFED's folders are ARCH/KERNEL, of older releases KERNEL.
    """
    found = re.search(r"^sources .*/([0-9][^/\n]*)$", text, re.MULTILINE)
    return found[1] if found else ""


def parse_disk(text: str) -> dict[str, DriversOnDisk]:
    """Read section ``drivers_disk``: files, their times and builds, and the kernel's vermagic.

    Raises ValueError for a line of another kind.
    """
    blocks: dict[str, list[str]] = {}
    for line in filter(None, text.splitlines()):
        kind, _, rest = line.partition(" ")
        if kind == "kernel" and rest:
            blocks[rest] = []
        elif kind in ("modinfo", "written", "built", "vermagic") and blocks:
            blocks[list(blocks)[-1]].append(line)
        elif kind != "sources":
            raise ValueError(f"expected a kernel with its drivers, got {line[:80]!r}")
    return {kernel: _on_disk(kernel, lines) for kernel, lines in blocks.items()}


def _on_disk(kernel: str, lines: list[str]) -> DriversOnDisk:
    files = parse_modinfos("\n".join(_rest(lines, "modinfo")))
    written = {}
    for line in _rest(lines, "written"):
        seconds, _, path = line.partition(" ")
        if not re.fullmatch("[0-9]+", seconds):
            raise ValueError(f"expected the time of a module, got {line[:80]!r}")
        written[_module_of(path)] = int(seconds)
    sources = {_module_of(path): path.partition("/")[0] for path in _rest(lines, "built")}
    return DriversOnDisk(
        kernel=kernel,
        disk=OnDisk(files=files, written=written, sources=sources),
        vermagic=next(filter(None, map(str.strip, _rest(lines, "vermagic"))), None),
        builtin=frozenset(name for name, file in files.items() if file.is_builtin),
    )


def _rest(lines: list[str], kind: str) -> list[str]:
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{kind} ")]


def _module_of(path: str) -> str:
    return module_name(path.rpartition("/")[2].partition(".ko")[0])


def parse_symbols(text: str) -> dict[str, KernelSymbols]:
    """Read section ``drivers_symbols``. Raises ValueError for a line of another kind."""
    found = {}
    for part in re.split(r"^kernel ", text, flags=re.MULTILINE)[1:]:
        kernel, _, rest = part.partition("\n")
        found[kernel] = _symbols(rest)
    if text.strip() and not text.startswith("kernel "):
        raise ValueError(f"expected a kernel with its symbols, got {text[:80]!r}")
    return found


_TITLE = re.compile(r"^(?:(needs|exports|table) (\S+)|(exporters))$", re.MULTILINE)


def _symbols(text: str) -> KernelSymbols:
    needed: dict[str, dict[str, int]] = {}
    tables: dict[Table, dict[str, Export]] = {}
    exporters: dict[str, str] = {}
    below = {}
    for line in text.splitlines():
        if line.startswith("below "):
            _, name, *paths = line.split()
            below[module_name(name)] = frozenset(map(_module_of, paths))
    text = re.sub(r"^below .*\n?", "", text, flags=re.MULTILINE)
    first, *parts = _TITLE.split(text)
    if first.strip():
        raise ValueError(f"expected what a module needs, got {first[:80]!r}")
    for kind, name, listed, body in zip(*(parts[at::4] for at in range(4)), strict=True):
        if listed:
            exporters.update(_exporters(body))
        elif kind == "needs":
            needed[module_name(name)] = parse_modversions(body)
        elif kind == "exports":
            own = {
                symbol: Export(crc=crc, module=name)
                for symbol, crc in parse_modversions(body).items()
            }
            tables.setdefault("own", {}).update(own)
        else:
            tables.setdefault(_table(name), {}).update(parse_symvers(body))
    return KernelSymbols(needed=needed, tables=tables, exporters=exporters, below=below)


def _table(name: str) -> Literal["kernel", "ofed"]:
    if name == "kernel":
        return "kernel"
    if name == "ofed":
        return "ofed"
    raise ValueError(f"expected the table kernel or ofed, got {name[:40]!r}")


def _exporters(body: str) -> dict[str, str]:
    """Lines of modules.symbols, ``alias symbol:NAME MODULE``."""
    found = {}
    for line in filter(str.strip, body.splitlines()):
        row = re.fullmatch(r"alias symbol:(\S+) (\S+)", line)
        if row is None:
            raise ValueError(f"expected a line of modules.symbols, got {line[:80]!r}")
        found[row[1]] = module_name(row[2])
    return found
