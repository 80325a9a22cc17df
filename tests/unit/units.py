"""What ``systemctl show`` says of units, as the probe asks it."""


def unit(name: str, active: str = "active", file: str = "enabled", load: str = "loaded") -> str:
    return f"Id={name}\nLoadState={load}\nActiveState={active}\nUnitFileState={file}\n"
