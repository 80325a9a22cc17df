"""Which driver modules an initramfs image holds, and when it was made.

Listing an image takes a second or more of the node, so it is asked for where a reboot is decided
on, and not with every look.
"""

import re

from facts.driver_kernels import MODULES
from facts.probe import Section
from railwright.model import Model
from railwright.schema.base import module_name
from railwright.snapshot import Snapshot

_NAMES = "|".join(name.replace("_", "[-_]") for name in MODULES)

IMAGES = Section(
    name="initramfs_modules",
    for_drivers=True,
    deadline_s=120,
    script=rf"""
for image in /boot/initrd.img-* /boot/initramfs-*.img; do
    [ -r "$image" ] || continue
    case $image in
        # Neither boots into the system itself (dracut's rescue image, kdump's).
        *-rescue-* | *kdump.img) continue ;;
        */initrd.img-*) kernel=${{image#*/initrd.img-}} list=lsinitramfs ;;
        *) kernel=${{image#*/initramfs-}} list=lsinitrd ;;
    esac
    echo "image ${{kernel%.img}} $(stat -L -c %Y "$image") $image"
    found=$("$list" "$image") || continue
    echo listed
    printf '%s\n' "$found" |
        sed -nE 's#.*lib/modules/[^/ ]+/(([^ ]*/)?({_NAMES})\.ko[^ /]*)$#inside \1#p'
done
true
""",
)


class Initramfs(Model):
    """An image and when it was made (seconds since the epoch); ``modules`` is module to its path
    in the image below /lib/modules/VERSION, None where the image was not listed."""

    path: str
    mtime: int
    modules: dict[str, str] | None = None


def parse_images(text: str) -> dict[str, Initramfs]:
    """Read section ``initramfs_modules``: kernel version to its image.

    Raises ValueError for a line of another kind.
    """
    images: dict[str, Initramfs] = {}
    kernel, inside = "", dict[str, str]()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        words = rest.split(" ")
        if kind == "image" and len(words) == 3 and re.fullmatch("[0-9]+", words[1]):
            kernel, inside = words[0], {}
            images[kernel] = Initramfs(path=words[2], mtime=int(words[1]))
        elif kind == "inside" and kernel and rest:
            inside[module_name(rest.rpartition("/")[2].partition(".ko")[0])] = rest
            images[kernel] = images[kernel].model_copy(update={"modules": inside})
        elif line == "listed" and kernel:
            images[kernel] = images[kernel].model_copy(update={"modules": inside})
        else:
            raise ValueError(f"expected an initramfs image, got {line[:80]!r}")
    return images


def read_images(snapshot: Snapshot) -> dict[str, Initramfs]:
    """Images by kernel version. Raises ValueError where the listing ran out of time."""
    return parse_images(snapshot.text(IMAGES.name))
