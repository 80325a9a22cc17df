"""From what a site's files say to validated nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException
from pydantic import TypeAdapter, ValidationError

from railwright.rails import PlanError, planned
from railwright.recommended import recommended
from railwright.schema import Node, Overlay, Spec
from railwright.schema.fabric import fabric_kind
from railwright.schema.node import HostName
from railwright.schema.nvmeof import NvmeofVolume
from railwright.schema.nvmeof_consistency import shared
from railwright.site.merge import Layer, Merged, merge
from railwright.site.problems import Problem, SiteError, complaints, nearest, shown

RANKS = {"recommended": 0, "all": 1, "group": 2, "host": 3}


@dataclass(frozen=True)
class Site:
    """A validated site: its nodes by name, its groups, and who set each field of a node."""

    file: str
    nodes: dict[str, Node]
    groups: dict[str, tuple[str, ...]]
    origins: dict[str, Merged] = field(default_factory=dict, repr=False)


@dataclass
class Description:
    """A site as its file describes it, before anything is made of it.

    ``everyone`` names a group that holds all hosts beside those that ``groups`` gives.
    """

    file: str
    groups: Mapping[str, Any]
    hosts: Mapping[str, Any]
    everyone: str | None = None
    layers: dict[str, Layer] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, where: str, name: str, value: object, expected: str, **more: Any) -> None:
        self.problems.append(
            Problem(
                file=more.pop("file", self.file),
                owner=where,
                field=name,
                value=shown(value),
                expected=expected,
                **more,
            )
        )


def build(description: Description) -> Site:
    """The site that ``description`` asks for. Raises SiteError with all that is wrong with it."""
    members = _members(description)
    names = list(dict.fromkeys(name for hosts in members.values() for name in hosts))
    own = _own_layers(description, names)
    nodes: dict[str, Node] = {}
    origins: dict[str, Merged] = {}
    # Nodes of which the same layers speak are alike but for their names.
    alike: dict[tuple[object, ...], tuple[Merged, Node | None]] = {}
    for name in names:
        groups = tuple(group for group, hosts in members.items() if name in hosts)
        key = (groups, tuple(layer.owner for layer in own.get(name, ())))
        if key not in alike:
            alike[key] = _node(description, name, groups, own.get(name, []))
        merged, node = alike[key]
        origins[name] = merged
        if node is not None:
            nodes[name] = node.model_copy(update={"name": name})
    description.problems += _rail_problems(description, nodes.values(), origins)
    description.problems += _volume_problems(description, nodes.values(), origins)
    if description.problems:
        raise SiteError(description.problems)
    groups_of = {group: tuple(hosts) for group, hosts in members.items()}
    return Site(file=description.file, nodes=nodes, groups=groups_of, origins=origins)


def _members(description: Description) -> dict[str, dict[str, None]]:
    """The hosts of each group, in the order in which the file names them."""
    members: dict[str, dict[str, None]] = {}
    for group, pattern in description.groups.items():
        names = _expand(description, f"group {group}", pattern)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            description.complain(
                f"group {group}", "hosts", pattern, "each host once", hint=f"twice: {twice[0]}"
            )
        members[group] = dict.fromkeys(names)
    if description.everyone and description.everyone not in members:
        every = dict.fromkeys(name for hosts in members.values() for name in hosts)
        members[description.everyone] = every
    return members


def _expand(description: Description, owner: str, pattern: object) -> list[str]:
    """The host names in a range such as ``gpu[001-128]``, or in a list of ranges."""
    parts = [pattern] if isinstance(pattern, str) else pattern
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        description.complain(owner, "hosts", pattern, "a host range such as gpu[001-128]")
        return []
    names: list[str] = []
    for part in parts:
        try:
            found = [part] if part.startswith("@") else list(NodeSet(part))
        except NodeSetException as error:
            description.complain(
                owner, "hosts", part, "a host range such as gpu[001-128]", hint=str(error)
            )
            continue
        if not found:
            description.complain(owner, "hosts", part, "at least one host")
        names += found
    return [name for name in names if _is_host(description, owner, name)]


_HOST: TypeAdapter[str] = TypeAdapter(HostName)


def _is_host(description: Description, owner: str, name: str) -> bool:
    try:
        _HOST.validate_python(name)
    except ValidationError:
        description.complain(owner, "hosts", name, "a host name of letters, digits, - and .")
        return False
    return True


def _own_layers(description: Description, names: Sequence[str]) -> dict[str, list[Layer]]:
    """What the site says of single hosts."""
    own: dict[str, list[Layer]] = {}
    for pattern, says in description.hosts.items():
        overlay = as_overlay(description, f"host {pattern}", says)
        for name in _expand(description, f"host {pattern}", pattern):
            if name not in names:
                description.complain(
                    f"host {pattern}",
                    "hosts",
                    name,
                    "a host that is in a group",
                    hint=nearest(name, names),
                )
            layer = Layer(f"host {pattern}", description.file, RANKS["host"], overlay, pattern)
            own.setdefault(name, []).append(layer)
    return own


def as_overlay(description: Description, owner: str, says: object, file: str = "") -> Overlay:
    """``says`` as an overlay, its faults noted; ``file`` where it is not the site's own."""
    if isinstance(says, Overlay):
        return says
    try:
        return Overlay.model_validate(says)
    except ValidationError as error:
        for found in complaints(Overlay, error):
            description.problems.append(
                Problem(
                    file=file or description.file,
                    owner=owner,
                    field=".".join(found.path) or "the whole",
                    value=found.value,
                    expected=found.expected,
                    hint=found.hint,
                )
            )
        return Overlay()


def _node(
    description: Description, name: str, groups: tuple[str, ...], own: list[Layer]
) -> tuple[Merged, Node | None]:
    layers = [description.layers[g] for g in ("all", *groups) if g in description.layers]
    layers += own
    layers.sort(key=lambda layer: layer.rank)
    kind = fabric_kind(merge(layers).values.get("fabric"))
    if kind is not None:
        layers.insert(0, Layer("recommended defaults", "railwright", 0, recommended(kind)))
    merged = merge(layers)
    description.problems += merged.problems
    try:
        node = Node.model_validate({**_plain(merged.values), "name": name, "groups": groups})
    except ValidationError as error:
        description.problems += _placed(description, name, merged, error)
        return merged, None
    return merged, node


_INDEX = "rails.plan.host_index"


def _rail_problems(
    description: Description, nodes: Iterable[Node], origins: Mapping[str, Merged]
) -> Iterator[Problem]:
    """Hosts for which the rail plan has no address, and addresses that two ports would have."""
    holders: dict[IPv4Address, str] = {}
    for node in nodes:
        try:
            rails = planned(node)
        except PlanError as error:
            yield _of_plan(description, node.name, origins, error.value, error.expected, _INDEX)
            continue
        for rail in rails:
            if rail.address is None:
                continue
            port = f"{node.name} rail {rail.rail}"
            first = holders.setdefault(rail.address.ip, port)
            gateways = {route.via for route in rail.routes}
            if first != port:
                expected = f"another address than that of {first}"
            elif rail.address.ip in gateways:
                expected = "another address than the gateway's"
            else:
                continue
            path = f"rails.nics.{rail.rail}.address"
            yield _of_plan(description, node.name, origins, rail.address, expected, path)


def _volume_problems(
    description: Description, nodes: Iterable[Node], origins: Mapping[str, Merged]
) -> Iterator[Problem]:
    """Volumes that two hosts would mount, and write over each other."""
    volumes = {node.name: node.storage.of(NvmeofVolume) for node in nodes}
    for host, where, first, elsewhere in shared(volumes.items()):
        namespace = volumes[host][where].namespace
        layer = origins[host].origins.get(("storage", "mounts", where))
        yield Problem(
            file=layer.file if layer else description.file,
            owner=layer.owner if layer else f"host {host}",
            field=f"storage.mounts.{where}.namespace",
            value=f"{namespace.kind} {namespace.value}",
            expected=f"a namespace of its own: {first} has this one at {elsewhere}",
        )


def _of_plan(
    description: Description,
    host: str,
    origins: Mapping[str, Merged],
    value: object,
    expected: str,
    field: str,
) -> Problem:
    layer = origins[host].origins.get(("rails", "plan")) or origins[host].origins.get(("rails",))
    return Problem(
        file=layer.file if layer else description.file,
        owner=f"host {host}",
        field=field,
        value=str(value),
        expected=expected,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Spec):
        return {name: _plain(getattr(value, name)) for name in value.model_fields_set}
    if isinstance(value, Mapping):
        return {key: _plain(below) for key, below in value.items()}
    return value


def _placed(
    description: Description, name: str, merged: Merged, error: ValidationError
) -> Iterator[Problem]:
    """What is wrong with a merged node, at the layer that last set the field."""
    for found in complaints(Node, error):
        path = found.path
        while path and path not in merged.origins:
            path = path[:-1]
        layer = merged.origins.get(path)
        yield Problem(
            file=layer.file if layer else description.file,
            owner=layer.owner if layer else f"host {name}",
            field=".".join(found.path),
            value=found.value,
            expected=found.expected,
            hint=found.hint,
        )
