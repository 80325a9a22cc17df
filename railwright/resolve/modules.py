"""Which line decides over a module's options, its blacklisting, its install command, its loading.

Rules of modprobe.d (modprobe.d(5); kmod's libkmod-config.c and libkmod-module.c):

- of files with one name only that in the first directory counts, and all are read in the order
  of their names over all directories;
- the options of all lines are put one after the other, and those of the kernel command line
  (``module.parameter=value``) after them: of a parameter given twice the last holds;
- blacklist lines add up, with ``modprobe.blacklist=`` of the command line;
- of several install commands the **first** holds.

modules-load.d(5): what the files list adds up; a blacklisted module is not loaded by them.
"""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from railwright.files import FileRecord, effective_files
from railwright.model import Model
from railwright.schema.base import module_name

_PLACES = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
MODPROBE_DIRECTORIES = tuple(f"{place}/modprobe.d" for place in _PLACES)
LOAD_DIRECTORIES = tuple(f"{place}/modules-load.d" for place in _PLACES)

CMDLINE = "/proc/cmdline"
_CAP_BYTES = 65536
_REFUSING = re.compile(r"^(\S*/)?(false|true)$")


class Decided(Model):
    """A value and the line that decides it (``/etc/modprobe.d/x.conf:3``)."""

    value: str
    decider: str


class Line(Model):
    """``verb module rest`` of one line, the module's name with ``_``."""

    verb: str
    module: str
    rest: str
    decider: str


class ModprobeConfig(Model):
    """All of modprobe's configuration, in the order in which it is read."""

    lines: tuple[Line, ...]
    cmdline: str = ""

    def option(self, module: str, parameter: str) -> Decided | None:
        """What ``module`` is given for ``parameter`` when modprobe loads it."""
        found = None
        for line in self.lines:
            if line.verb == "options" and line.module == module:
                for name, value in arguments(line.rest):
                    if name == module_name(parameter):
                        found = Decided(value=value, decider=line.decider)
        return self.argument(module, parameter) or found

    def argument(self, module: str, parameter: str) -> Decided | None:
        """What the kernel command line gives ``module`` for ``parameter``."""
        wanted = f"{module}.{module_name(parameter)}"
        values = [value for name, value in arguments(self.cmdline) if name == wanted]
        return Decided(value=values[-1], decider=CMDLINE) if values else None

    def blacklisting(self, module: str) -> Decided | None:
        """What keeps ``module`` from being loaded by an alias or at boot."""
        for line in self.lines:
            if line.verb == "blacklist" and line.module == module:
                return Decided(value="blacklisted", decider=line.decider)
        return self._listed(module, "modprobe.blacklist") or self.refusal(module)

    def refusal(self, module: str) -> Decided | None:
        """Whether the kernel itself refuses ``module`` (module_blacklist=)."""
        return self._listed(module, "module_blacklist")

    def _listed(self, module: str, argument: str) -> Decided | None:
        for name, value in arguments(self.cmdline):
            if name == argument and module in map(module_name, value.split(",")):
                return Decided(value="blacklisted", decider=f"{CMDLINE} {argument}=")
        return None

    def install(self, module: str) -> Decided | None:
        """The command that is run instead of loading ``module``."""
        for line in self.lines:
            if line.verb == "install" and fnmatchcase(module, line.module):
                return Decided(value=line.rest, decider=line.decider)
        return None

    def is_alias(self, name: str) -> bool:
        """Whether ``name`` stands for a module of another name."""
        return any(line.verb == "alias" and line.module == name for line in self.lines)


def refuses(command: Decided | None) -> bool:
    """Whether an install command loads nothing: /bin/false, /bin/true."""
    return command is not None and bool(_REFUSING.match(command.value))


def modprobe_config(files: Iterable[FileRecord], cmdline: str = "") -> ModprobeConfig:
    """The configuration in ``files``, of whatever directories.

    Raises ValueError for a file that cannot be read whole: it might decide.
    """
    records = effective_files(files, MODPROBE_DIRECTORIES)
    lines = (line for record in records for line in _modprobe_lines(record))
    return ModprobeConfig(lines=tuple(lines), cmdline=cmdline)


def loaded_at_boot(files: Iterable[FileRecord]) -> dict[str, str]:
    """Module to the line of modules-load.d that lists it. Raises as ``modprobe_config`` does."""
    found: dict[str, str] = {}
    for record in effective_files(files, LOAD_DIRECTORIES):
        for number, line in enumerate(_content(record).splitlines(), 1):
            name = line.strip()
            if name and name[0] not in "#;":
                found.setdefault(module_name(name), f"{record.path}:{number}")
    return found


def _content(record: FileRecord) -> str:
    # A directory, and a link that leads nowhere, are passed over by kmod and systemd too.
    if record.kind == "directory" or (record.kind == "link" and record.content is None):
        return ""
    if record.content is None or (record.size or 0) > _CAP_BYTES:
        raise ValueError(f"{record.path} cannot be read whole")
    return record.content


def _modprobe_lines(record: FileRecord) -> Iterator[Line]:
    joined = ""
    start = 0
    for number, line in enumerate(_content(record).splitlines(), 1):
        start = start if joined else number
        joined += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        words = joined.split(maxsplit=2)
        if len(words) >= 2 and not joined.startswith("#"):
            yield Line(
                verb=words[0],
                module=module_name(words[1]),
                rest=words[2].strip() if len(words) == 3 else "",
                decider=f"{record.path}:{start}",
            )
        joined = ""


def arguments(text: str) -> list[tuple[str, str]]:
    """Names, with ``_``, and values in ``a=1 b="x y" c``, as the kernel parts them.

    A name alone is ``Y``: it switches a boolean on. Source: lib/cmdline.c, ``next_arg``.
    """
    found = []
    for word in re.findall(r'(?:[^\s"]|"[^"]*"?)+', text):
        name, equals, value = word.replace('"', "").partition("=")
        found.append((module_name(name), value if equals else "Y"))
    return found
