"""What a node's cufile.json must say: the inventory's keys, and what follows from them."""

from collections.abc import Iterator, Sequence
from typing import Any

from railwright.gds.addresses import rdma_addresses
from railwright.gds.choice import Mode
from railwright.gds.cufile import Cufile, Path, Value
from railwright.model import Model
from railwright.schema import Node
from railwright.schema.base import Spec
from railwright.schema.cufile import UNIFORM_BUFFERS

_SLABS: Path = ("properties", "gpu_bounce_buffer_slab_config")
_P2PDMA: Path = ("properties", "use_pci_p2pdma")
# Newer files have it beside the other; it is set where it stands. Source: GDS 1.20's cufile.json.
_BLOCK_P2PDMA: Path = ("block", "nvme", "use_pci_p2pdma")


class Edit(Model):
    """A key of the file and its value, None for a key that must not stand there.

    ``error`` says why there is no value to write.
    """

    path: Path
    value: Value | None = None
    error: str | None = None


def edits(node: Node, mode: Mode | None, file: Cufile) -> tuple[Edit, ...]:
    """All keys that are asked for, after those that stand in their way in ``file``."""
    asked = tuple(_asked(node))
    paths = frozenset(edit.path for edit in asked)
    ways = [Edit(path=path) for path in in_the_way(paths, file)]
    # What is given of a key itself counts before what follows for it.
    follows = (edit for edit in _mode(mode, file) if edit.path not in paths)
    return (*ways, *asked, *follows)


def _asked(node: Node) -> Iterator[Edit]:
    for path, value in _leaves(node.gds.cufile, ()):
        if path[-1] != "rdma_dev_addr_list":
            yield Edit(path=path, value=value)
            continue
        try:
            yield Edit(path=path, value=rdma_addresses(node, value))
        except ValueError as error:
            yield Edit(path=path, error=str(error))


def _leaves(spec: Spec, above: Path) -> Iterator[tuple[Path, Any]]:
    for name in type(spec).model_fields:
        value, path = getattr(spec, name), (*above, name)
        if isinstance(value, Spec):
            yield from _leaves(value, path)
        elif name == "mount_table":
            for mount, below in sorted(value.items()):
                yield from _leaves(below, (*path, mount))
        elif name == "other":
            yield from ((tuple(key.split(".")), one) for key, one in sorted(value.items()))
        elif value is not None:
            yield path, value


def in_the_way(asked: frozenset[Path], file: Cufile) -> Iterator[Path]:
    """Keys of ``file`` that libcufile refuses beside one that is asked for.

    Bounce buffers are either of one size or of several, and addresses are either those of a file
    system or of its mounts. Source: NVIDIA GDS configuration guide; overview guide on routing.
    """
    uniform = [("properties", name) for name in UNIFORM_BUFFERS]
    if asked.intersection(uniform):
        yield from _there([_SLABS], file)
    if any(path[:2] == _SLABS for path in asked):
        yield from _there(uniform, file)
    for name in sorted({path[1] for path in asked if path[0] == "fs" and len(path) > 2}):
        common, mounts = ("fs", name, "rdma_dev_addr_list"), ("fs", name, "mount_table")
        if any(path[:3] == mounts for path in asked):
            yield from _there([common], file)
        elif common in asked:
            yield from _there([mounts], file)


def _there(paths: Sequence[Path], file: Cufile) -> Iterator[Path]:
    """Those that say something: an empty list or section stands in no way."""
    for path in paths:
        found = file.find(path)
        if found is not None and found.value not in ([], {}):
            yield path


def _mode(mode: Mode | None, file: Cufile) -> Iterator[Edit]:
    if mode == "p2pdma":
        yield Edit(path=_P2PDMA, value=True)
    for path in (_P2PDMA, _BLOCK_P2PDMA):
        # Without the key it is off, in every release.
        if mode == "nvidia-fs" and file.find(path) is not None:
            yield Edit(path=path, value=False)
    if mode == "p2pdma" and file.find(_BLOCK_P2PDMA) is not None:
        yield Edit(path=_BLOCK_P2PDMA, value=True)
