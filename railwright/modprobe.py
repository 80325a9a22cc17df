"""What railwright writes for kernel modules, and what values of their parameters mean."""

from collections.abc import Iterable

from railwright.owned import HEADER
from railwright.schema import ModulesSpec
from railwright.schema.base import module_name

MODPROBE_PATH = "/etc/modprobe.d/zz-railwright.conf"
"""Sorts last, for of an option given twice the last holds. Not 99-zz-: most files there are named
by a word (nvidia.conf), and a digit sorts before every letter."""
LOAD_PATH = "/etc/modules-load.d/99-zz-railwright.conf"

Value = bool | int | str

_TRUE = frozenset(("y", "yes", "t", "true", "on", "1"))
_FALSE = frozenset(("n", "no", "f", "false", "off", "0"))


def same(desired: Value, found: str) -> bool:
    """Whether ``found`` means ``desired``: a switch as a switch, a number as a number.

    sysfs shows a switch as Y or N, and it may be set by 1 or 0 too; numbers may be written 0x10.
    Source: kernel/params.c, lib/kstrtox.c.
    """
    word = found.strip()
    if isinstance(desired, bool):
        return word.lower() in (_TRUE if desired else _FALSE)
    if isinstance(desired, int):
        return _number(word) == desired or {"Y": 1, "N": 0}.get(word) == desired
    number = _number(desired)
    return desired.split() == word.split() or (number is not None and number == _number(word))


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def text_of(value: Value) -> str:
    """``value`` as it is written to modprobe.d: a switch as 1 or 0.

    Many a module's switch is an int, for which the kernel refuses Y, and with it the module; one
    that is a bool takes 1 as it takes Y. Source: kernel/params.c, lib/kstrtox.c (kstrtobool).
    """
    return str(int(value) if isinstance(value, bool) else value)


def names(listed: Iterable[str]) -> set[str]:
    """Module names as the kernel lists them."""
    return set(map(module_name, listed))


def options_of(spec: ModulesSpec) -> dict[str, dict[str, Value]]:
    """Options by module; those of ``x-y`` and ``x_y`` together."""
    found: dict[str, dict[str, Value]] = {}
    for module, parameters in spec.options.items():
        found.setdefault(module_name(module), {}).update(parameters)
    return found


def modprobe_content(spec: ModulesSpec) -> str | None:
    """Our file of modprobe.d, None where nothing is asked for."""
    lines = [
        f"options {module} " + " ".join(map(_assignment, sorted(parameters.items())))
        for module, parameters in sorted(options_of(spec).items())
        if parameters
    ]
    # The blacklist alone keeps a module from being loaded by an alias, not by its name.
    for name in sorted(names(spec.blacklist)):
        lines += [f"blacklist {name}", f"install {name} /bin/false"]
    return HEADER + "\n".join(lines) + "\n" if lines else None


def _assignment(item: tuple[str, Value]) -> str:
    name, text = item[0], text_of(item[1])
    return f'{name}="{text}"' if " " in text else f"{name}={text}"


def load_content(spec: ModulesSpec) -> str | None:
    """Our file of modules-load.d, None where nothing is asked for."""
    return HEADER + "\n".join(sorted(names(spec.load))) + "\n" if spec.load else None
