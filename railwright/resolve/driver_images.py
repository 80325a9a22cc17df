"""Initramfs images that hold drivers: one with older modules would load those first."""

from collections.abc import Iterable, Iterator, Mapping

from facts.drivers import Drivers
from railwright.actions import Run
from railwright.drivers.dkms_order import Build, due
from railwright.drivers.images import first_image, make_image
from railwright.files import FileRecord
from railwright.resolve.initramfs import may_load
from railwright.settings import NOTHING, Setting, Standing, State, persists

_KEY = "initramfs for "
_NEW, _OLD = "of the drivers on disk", "of older drivers"


def image_settings(
    component: str,
    drivers: Drivers,
    kernels: Iterable[str],
    builds: Iterable[Build],
    images: Mapping[str, FileRecord],
) -> Iterator[Setting]:
    """Whether the image of each kernel was made after the drivers that it may hold.

    Drivers of the kernel's own come with it, and so does their image. One that is missing beside
    those of other kernels is made where drivers are built for its kernel: dpkg makes none while a
    module does not build.
    """
    built = {build.kernel for build in due(builds)}
    for kernel in kernels:
        image, disk = images.get(kernel), drivers.kernels[kernel].disk
        own = [f for f in disk.files.values() if not f.is_inbox and may_load(f.path)]
        written = max((disk.written.get(file.name, 0) for file in own), default=0)
        holds_own = image is not None and bool(own)
        if not images or not (holds_own or kernel in built):
            continue
        yield Setting(
            component=component,
            key=f"{_KEY}{kernel}",
            desired=_NEW,
            persisted=_state(image, stale=kernel in built, written=written),
            running=NOTHING,
        )


def _state(image: FileRecord | None, *, stale: bool, written: int) -> State:
    """``written`` is when the newest of the drivers was; ``stale`` that some are built anew."""
    if image is None:
        return State(standing=Standing.ABSENT)
    if stale or (image.mtime or 0) < written:
        return State(standing=Standing.STALE, value=_OLD, decider=image.path)
    return State(standing=Standing.RIGHT, value=_NEW, decider=image.path)


def image_actions(images: Mapping[str, FileRecord], settings: Iterable[Setting]) -> Iterator[Run]:
    """Makes the images anew that are not right."""
    for setting in settings:
        if setting.key.startswith(_KEY) and persists(setting):
            kernel = setting.key.removeprefix(_KEY)
            if kernel in images:
                yield make_image(images[kernel].path, kernel)
            else:
                other, image = next(iter(images.items()))
                yield first_image(image.path.replace(other, kernel), kernel)
