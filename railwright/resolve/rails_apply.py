"""What the script on the node is told to do for the settings that are due, in order."""

from collections.abc import Iterator

from railwright.netconfig import WRITERS
from railwright.netconfig.networkmanager import profile_of
from railwright.resolve.network import generated_profile
from railwright.resolve.rails_view import RailsView, RailView


def operations(view: RailsView, due: set[str]) -> list[str]:
    """The script's arguments: renames first, then what the managers do, then what ``ip`` does."""
    names = [
        f"rename {rail.port} {rail.config.name}"
        for rail in view.rails
        if f"{rail.key} name" in due and rail.key in view.renamed
    ]
    managed = [rail for rail in view.rails if _is_managed(view, rail, due)]
    whole = {rail.key for rail in managed}
    by_hand = [
        line for rail in view.rails if rail.key not in whole for line in _by_hand(view, rail, due)
    ]
    return [*names, *_by_manager(view, managed), *by_hand]


def _is_managed(view: RailsView, rail: RailView, due: set[str]) -> bool:
    """Whether the manager's own command may bring the rail into force.

    It drops what the interface has and sets all of it anew (link_reconfigure_impl of networkd,
    and so does a profile that is activated), so only where there is nothing to drop.
    """
    manager, interface = view.manager, rail.interface
    if manager is None or interface is None or f"{rail.key} address" not in due:
        return False
    if interface.addresses:
        return False
    if manager.name == "networkd":
        return _may_reload(view)
    if manager.name == "netplan" and manager.renderer == "networkd":
        # generate writes every .network file anew, and a reload then reconfigures every
        # interface, that of ssh too (network_reload compares inode and mtime).
        return False
    if manager.name in ("netplan", "ifupdown"):
        return rail.config.name == interface.name or rail.key in view.renamed
    return True


def _may_reload(view: RailsView) -> bool:
    """Whether a reload of networkd reaches no interface but rails that have no address.

    It reconfigures each interface whose .network file is another one than networkd has read. One
    that is younger than networkd may have been read since; that is not known.
    """
    since = view.network.networkd_since
    if since is None:
        return False
    network = WRITERS["networkd"].path
    bare = {network(rail.key) for rail in view.rails if not rail.addresses}
    young = any(
        file.name.endswith(".network") and (file.mtime or 0) >= since and file.path not in bare
        for file in view.network.files
    )
    now = {file.path: file.content for file in view.network.files}
    written = [owned for rail in view.rails for owned in view.owned(rail)]
    changed = {
        owned.path
        for owned in (*written, *view.stale())
        if owned.path.endswith(".network") and now.get(owned.path) != owned.content
    }
    return not young and changed <= bare


def _by_manager(view: RailsView, managed: list[RailView]) -> Iterator[str]:
    manager = view.manager
    if manager is None or not managed:
        return
    if manager.name == "networkd":
        yield "reload"
    elif manager.name == "netplan":
        yield "generate"
    for rail in managed:
        if manager.name == "networkd":
            yield f"reconfigure {rail.port} {rail.config.address} {rail.config.table}"
        elif manager.name == "ifupdown":
            yield f"ifup {rail.port}"
        elif manager.name == "NetworkManager":
            path = WRITERS["NetworkManager"].path(rail.key)
            yield f"profile {rail.port} {path} {profile_of(rail.key)}"
        else:
            yield f"profile {rail.port} {' '.join(generated_profile(rail.config))}"


def _by_hand(view: RailsView, rail: RailView, due: set[str]) -> Iterator[str]:
    config = rail.config
    if f"{rail.key} mtu" in due:
        yield f"mtu {rail.port} {config.mtu}"
    if f"{rail.key} up" in due:
        yield f"up {rail.port}"
    if config.address is None:
        return
    source = str(config.address.ip)
    if f"{rail.key} address" in due:
        yield f"address {rail.port} {config.address}"
    if f"{rail.key} rule" in due:
        wanted = (str(config.table), config.rule_priority)
        found = [rule for rule in view.network.rules if rule.source == source and rule.plain]
        for rule in found:
            if (rule.table, rule.priority) != wanted:
                yield f"unrule {source} {rule.table} {rule.priority}"
        if not any((rule.table, rule.priority) == wanted for rule in found):
            yield f"rule {source} {config.table} {config.rule_priority}"
    # An interface that is set down to be renamed loses its routes.
    renamed = f"{rail.key} name" in due and rail.key in view.renamed
    there = f"{rail.key} address" in due or str(config.address) in rail.addresses
    if f"{rail.key} routes" in due or (renamed and there):
        for route in config.routes:
            via = "" if route.via is None else f" {route.via}"
            yield f"route {rail.port} {config.table} {route.to}{via}"
