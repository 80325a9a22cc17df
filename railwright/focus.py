"""What the probe of one node looks at beyond what is read of every node."""

from facts.probe import Focus
from railwright import nvmeof
from railwright.drivers.options import modules_of
from railwright.resolve import beegfs_wanted
from railwright.schema import Node
from railwright.schema.base import module_name
from railwright.secrets import SecretFile, questions


def focus_of(node: Node) -> Focus:
    """The focus on ``node``; its secrets are read here, on the machine that asks."""
    spec = modules_of(node)
    modules = {module_name(name) for name in (*spec.load, *spec.options, *spec.blacklist)}
    held = {f"{name}={version}" if version else name for name, version in node.held.items()}
    return Focus(
        modules=tuple(sorted(modules)),
        packages=tuple(sorted(held | node.drivers.removes)),
        services=tuple(sorted(node.limits.services)),
        rails=bool(node.rails.nics),
        drivers=node.drivers.is_asked_for,
        firmware=_firmware(node),
        storage=node.wants_storage,
        mounts=tuple(sorted(node.storage.mounts)),
        lustre=tuple(sorted(node.lustre.parameters)),
        secrets=questions(secret_files(node)),
    )


def secret_files(node: Node) -> list[SecretFile]:
    """The files of secrets that ``node`` is to have."""
    return [*beegfs_wanted.secret_files(node), *nvmeof.secret_files(node)]


def _firmware(node: Node) -> tuple[str, ...]:
    if not (node.firmware.keys and node.rails.nics):
        return ()
    return (node.firmware.tool, *sorted(node.firmware.keys))
