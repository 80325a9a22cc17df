"""What ``railwright parse`` prints of mounts: by their directory, with what their source says."""

from facts.mounts import MountEntry, parse_mounts

Json = dict[str, object]


def proc_mounts(text: str) -> Json:
    """/proc/mounts by directory; of two on one directory the last, which lies on top."""
    return {entry.target: _mount(entry) for entry in parse_mounts(text)}


def _mount(entry: MountEntry) -> Json:
    found: Json = {"source": entry.source, "fstype": entry.fstype}
    for option in entry.options:
        name, equals, value = option.partition("=")
        found[name] = (int(value) if value.isdecimal() else value) if equals else True
    if entry.fstype == "lustre":
        found |= _lustre(entry.source)
        found["flock"] = "flock" in entry.options
    return found


def _lustre(source: str) -> Json:
    """``NID,NID:NID:/fsname/subdirectory``. Raises ValueError."""
    nodes, slash, path = source.partition(":/")
    if not slash:
        raise ValueError(f"expected NIDS:/FSNAME of a Lustre mount, got {source[:80]!r}")
    nids = nodes.replace(":", ",").split(",")
    fsname, below, rest = path.partition("/")
    return {
        "nids": nids,
        "net": nids[0].partition("@")[2],
        "fsname": fsname,
        "subdir": f"/{rest}" if below else None,
    }
