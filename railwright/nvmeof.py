"""Volumes over a fabric as one node has them: names, files, and what a connection is given.

Connections are made by a unit of ours for each volume, through the kernel's own /dev/nvme-fabrics,
and neither by nvme-cli's nvmf-autoconnect.service nor from its config.json:

- of config.json libnvme takes neither ctrl_loss_tmo nor tos, so that a target's reboot of more than
  600 s would end a mounted file system (seen with nvme-cli 2.3: ``nvme config --dump`` leaves both
  out; json_update_attributes() in libnvme 1.x). nvme-cli 3 reads no config.json at all, but
  nvme-fabrics.conf;
- ``nvme connect-all`` connects what a target's discovery offers, be it asked for or not;
- the unit tries once: a target that is away at boot is never tried again. In Debian 12 its
  condition is inverted too, and it does not run where both of its files are there;
- a key in an argument of ``nvme connect`` is seen by every user of the node.

The kernel's interface is the same for all releases. A connection, once made, is kept by the kernel.
"""

from facts.nvme import FOLDER, LINKS, UNIT_PREFIX
from railwright.model import Model
from railwright.mounts import OwnedMount, unit_name
from railwright.owned import HEADER
from railwright.owned_unit import OwnedUnit
from railwright.rails import planned
from railwright.schema import Node
from railwright.schema.mounted import Secret
from railwright.schema.nvmeof import NvmeofPortal, NvmeofVolume
from railwright.secrets import SecretFile


class Portal(Model):
    """An address of the target, and the one of this node that connections to it leave from."""

    portal: NvmeofPortal
    host: str | None = None

    @property
    def traddr(self) -> str:
        return str(self.portal.address)

    @property
    def place(self) -> tuple[str, str]:
        return self.traddr, str(self.portal.port)


class Volume(Model):
    """A volume of a node; ``where`` is the directory that it is mounted on."""

    where: str
    spec: NvmeofVolume
    portals: tuple[Portal, ...]

    @property
    def name(self) -> str:
        """What its files are called. Directories have no ``:``, so that no two share a name."""
        return name_of(self.where)

    @property
    def unit(self) -> OwnedUnit:
        return unit_of(self.name)

    @property
    def conf_path(self) -> str:
        return f"{FOLDER}/{self.name}.conf"

    @property
    def link(self) -> str:
        """The namespace's device, by a link of ours that udev makes."""
        return f"{LINKS}/{self.name}"

    @property
    def keys(self) -> SecretFile | None:
        """The file of its keys; None where the target asks for none."""
        return _keys(self.where, self.spec)

    @property
    def options(self) -> str:
        """Options of the connection, as the kernel takes them."""
        spec = self.spec
        loss = -1 if spec.ctrl_loss_s == "never" else spec.ctrl_loss_s
        given = {
            "nr_io_queues": spec.io_queues,
            "keep_alive_tmo": spec.keep_alive_s,
            "reconnect_delay": spec.reconnect_delay_s,
            "ctrl_loss_tmo": loss,
            "tos": spec.tos,
        }
        return ",".join(f"{key}={value}" for key, value in given.items() if value is not None)

    def conf(self) -> str:
        """What the unit's script reads."""
        spec = self.spec
        keys = self.keys
        lines = [
            f"nqn {spec.nqn}",
            f"transport {spec.transport}",
            f"options {self.options}",
            *(f"portal {p.traddr} {p.portal.port} {p.host or '-'}" for p in self.portals),
            f"namespace {spec.namespace.kind} {spec.namespace.value}",
            f"link {self.link}",
            f"mount {unit_name(self.where)}",
            *([f"keys {keys.path}"] if keys else []),
        ]
        return HEADER + "".join(f"{line}\n" for line in lines)

    def mount(self, device: str | None) -> OwnedMount:
        """Its mount; ``device`` is what the link leads to, None where there is none."""
        return OwnedMount(
            where=self.where,
            what=self.link,
            fstype=self.spec.filesystem,
            options=self.spec.options,
            # Its unit is neither required nor waited for: the mount waits for the device alone,
            # and a restart of the unit leaves it mounted.
            after=(self.unit.name,),
            timeout_s=self.spec.timeout_s,
            source=device and f"/dev/{device}",
        )

    def udev_match(self) -> str:
        """What udev tells the namespace by, as sysfs shows it."""
        value = self.spec.namespace.value
        shown = {
            "uuid": value,
            "nsid": value,
            "nguid": "-".join((value[:8], value[8:12], value[12:16], value[16:20], value[20:])),
            "eui64": " ".join(value[at : at + 2] for at in range(0, 16, 2)),
        }
        kind = self.spec.namespace.kind
        attribute = "eui" if kind == "eui64" else kind
        return f'ATTR{{{attribute}}}=="{shown[kind]}"'


def name_of(where: str) -> str:
    return where.strip("/").replace("/", ":")


def unit_of(name: str) -> OwnedUnit:
    """The unit that connects the volume ``name`` and keeps it connected."""
    return OwnedUnit(name=f"{UNIT_PREFIX}{name}.service", target="multi-user.target")


def keys_path(name: str) -> str:
    return f"{FOLDER}/{name}.keys"


def _keys(where: str, spec: NvmeofVolume) -> SecretFile | None:
    if spec.host_key is None:
        return None
    content: tuple[str | Secret, ...] = ("dhchap_secret=", spec.host_key, "\n")
    if spec.controller_key is not None:
        content += ("dhchap_ctrl_secret=", spec.controller_key, "\n")
    field = f"storage.mounts {where} host_key"
    return SecretFile(path=keys_path(name_of(where)), content=content, field=field)


def volumes_of(node: Node) -> tuple[Volume, ...]:
    """The volumes of ``node`` by their directory. Raises PlanError where a rail has no room."""
    specs = node.storage.of(NvmeofVolume)
    asked = any(portal.rail is not None for spec in specs.values() for portal in spec.portals)
    rails = {rail.rail: rail for rail in planned(node)} if asked else {}
    found = []
    for where, spec in specs.items():
        portals = []
        for portal in spec.portals:
            rail = rails.get(portal.rail) if portal.rail is not None else None
            address = rail.address if rail else None
            portals.append(Portal(portal=portal, host=str(address.ip) if address else None))
        found.append(Volume(where=where, spec=spec, portals=tuple(portals)))
    return tuple(found)


def secret_files(node: Node) -> list[SecretFile]:
    """The files of keys that ``node`` is to have."""
    found = (_keys(where, spec) for where, spec in node.storage.of(NvmeofVolume).items())
    return [keys for keys in found if keys is not None]
