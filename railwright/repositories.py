"""What is written on a node for a package repository: its key, its source, and its pin."""

from railwright.owned import HEADER, OwnedFile
from railwright.schema.repositories import AptRepository, DnfRepository, Repository

FOLDERS = {
    "/etc/apt/sources.list.d/railwright-": ".sources",
    "/etc/apt/preferences.d/railwright-": ".pref",
    "/etc/apt/keyrings/railwright-": ".asc",
    "/etc/yum.repos.d/railwright-": ".repo",
    "/etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-": "",
}
"""How the files of ours begin and end, with the repository's name between."""


def key_path(name: str, repository: Repository) -> str:
    """Where the key is kept, of no use to any other repository.

    apt takes an armoured key for one only where the file is named .asc (apt-secure(8)).
    """
    if repository.kind == "apt":
        return f"/etc/apt/keyrings/railwright-{name}.asc"
    return f"/etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-{name}"


def source_path(name: str, repository: Repository) -> str:
    if repository.kind == "apt":
        return f"/etc/apt/sources.list.d/railwright-{name}.sources"
    return f"/etc/yum.repos.d/railwright-{name}.repo"


def index_name(name: str, repository: Repository) -> str:
    """By what the package manager is told to fetch the index of this repository alone."""
    return source_path(name, repository) if repository.kind == "apt" else f"railwright-{name}"


def source_file(name: str, repository: Repository) -> OwnedFile:
    """The file by which the package manager knows the repository."""
    path = source_path(name, repository)
    if isinstance(repository, AptRepository):
        return OwnedFile(path=path, content=_deb822(name, repository))
    return OwnedFile(path=path, content=_repo(name, repository))


def pin_file(name: str, repository: AptRepository, host: str) -> OwnedFile | None:
    """apt's preferences for all that comes from ``host``; None where none are asked for.

    Of several records that fit a package the one that names it counts (apt_preferences(5)).
    """
    records = []
    if repository.priority is not None:
        records.append(_pin("*", host, repository.priority))
    if repository.never:
        records.append(_pin(" ".join(sorted(repository.never)), host, -1))
    if not records:
        return None
    path = f"/etc/apt/preferences.d/railwright-{name}.pref"
    return OwnedFile(path=path, content=HEADER + "\n".join(records))


def _pin(packages: str, host: str, priority: int) -> str:
    return f'Package: {packages}\nPin: origin "{host}"\nPin-Priority: {priority}\n'


def _deb822(name: str, repository: AptRepository) -> str:
    components = " ".join(repository.components)
    lines = [
        "Types: deb",
        f"URIs: {repository.url}",
        f"Suites: {repository.suite}",
        *([f"Components: {components}"] if components else []),
        f"Signed-By: {key_path(name, repository)}",
    ]
    return HEADER + "\n".join(lines) + "\n"


def _repo(name: str, repository: DnfRepository) -> str:
    lines = [
        f"[{index_name(name, repository)}]",
        f"name=railwright {name}",
        f"baseurl={repository.url}",
        "enabled=1",
        "gpgcheck=1",
        f"repo_gpgcheck={int(repository.signed_index)}",
        f"gpgkey=file://{key_path(name, repository)}",
        *(["module_hotfixes=1"] if repository.module_hotfixes else []),
        *([f"priority={repository.priority}"] if repository.priority is not None else []),
        *([f"excludepkgs={' '.join(sorted(repository.never))}"] if repository.never else []),
    ]
    return HEADER + "\n".join(lines) + "\n"
