"""``python -m tests.standins [FOLDER]``: builds the stand-in repositories, and prints their folder.

Without FOLDER they are in the lab's cache. dpkg-deb and gpg make them; the repositories of dnf are
left out where the tools of rpm are missing.
"""

import sys
from pathlib import Path

from tests.lab.layout import layout
from tests.standins.build import RPM_TOOLS, ensure, has_rpm_tools


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0]) if arguments else layout("bookworm").cache / "standins"
    if not has_rpm_tools():
        print(f"no repositories of dnf without {', '.join(RPM_TOOLS)}", file=sys.stderr)
    print(ensure(folder.absolute()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
