"""How an argument is persisted, along the chain that ends in what the boot loader reads."""

from collections.abc import Iterable
from dataclasses import dataclass

from facts.cmdline import found_in
from railwright.files import FileRecord
from railwright.owned import OwnedFile
from railwright.resolve import grub
from railwright.resolve.boot import NextBoot
from railwright.settings import Standing, State


@dataclass(frozen=True)
class Wanted:
    """Arguments that stand and fall together; ``refused`` says why this kernel cannot have them.

    ``key`` is the parameter, or ``hugepages`` for the whole group of huge pages.
    """

    key: str
    words: tuple[str, ...]
    refused: str | None = None

    @property
    def text(self) -> str:
        """The arguments in the notation that found ones are compared in."""
        return found_in(self.words, self.key) or ""

    def compared(self, found: str | None, decider: str | None) -> State:
        """How ``found`` stands to what is wanted."""
        standing = Standing.RIGHT if found == self.text else Standing.WRONG
        return State(
            standing=standing if found is not None else Standing.ABSENT,
            value=found,
            decider=decider,
        )


def with_file(files: Iterable[FileRecord], owned: OwnedFile) -> list[FileRecord]:
    """``files`` as they are once our file is in place."""
    others = [record for record in files if record.path != owned.path]
    if owned.content is None:
        return others
    size = len(owned.content)
    return [*others, FileRecord(path=owned.path, kind="file", content=owned.content, size=size)]


class Chain:
    """From the files that arguments are written in to what the boot loader reads.

    ``dropin`` is ours as it is to be: what the files come to with it in place tells apart what a
    run will put right and what another file decides all the same.
    """

    def __init__(self, boot: NextBoot, files: Iterable[FileRecord], dropin: OwnedFile) -> None:
        records = list(files)
        self.boot = boot
        self.now = grub.resolve(records)
        self.then = grub.resolve(with_file(records, dropin))

    def persisted(self, want: Wanted) -> State:
        """How ``want`` is persisted; the value is what the default entry boots with."""
        if self.boot.entry is None:
            return State(
                standing=Standing.UNREADABLE, decider=self.boot.path, detail=self.boot.problem
            )
        value = found_in(self.boot.entry.arguments, want.key)
        generated = want.compared(value, self.boot.entry.origin)
        if self.boot.kind != "grub" or want.refused:
            return generated
        try:
            then = found_in(self.then.certain(want.key), want.key)
        except ValueError as error:
            return State(standing=Standing.UNREADABLE, value=value, detail=str(error))
        if then != want.text:
            return State(
                standing=Standing.OVERRIDDEN,
                value=value,
                decider=self.then.origin_of(want.key) if then else self.then.last_line,
                detail=f"with {grub.DROPIN} in place it comes to {then or 'nothing'}",
            )
        return self._written(want, generated)

    def _written(self, want: Wanted, generated: State) -> State:
        """How far what is to be written has come: into the files, into what is generated."""
        try:
            now = found_in(self.now.certain(want.key), want.key)
        except ValueError as error:
            return self._unwritten(want, generated, f"cannot be known yet: {error}")
        if now != want.text:
            return self._unwritten(want, generated, self._dropped(want))
        origin = self.now.origin_of(want.key)
        if generated.standing is Standing.RIGHT:
            return generated.model_copy(update={"decider": origin})
        return generated.model_copy(
            update={
                "standing": Standing.STALE,
                "detail": f"{origin} has it, {self.boot.path} was made before",
            }
        )

    def _unwritten(self, want: Wanted, generated: State, detail: str | None) -> State:
        origin = self.now.origin_of(want.key)
        if generated.standing is Standing.RIGHT:
            return State(
                standing=Standing.ABSENT,
                decider=origin or generated.decider,
                detail=detail or f"only in {self.boot.path}, which the next update writes anew",
            )
        return generated.model_copy(
            update={"decider": origin or generated.decider, "detail": detail}
        )

    def _dropped(self, want: Wanted) -> str | None:
        lost = next(filter(None, map(self.now.drop_of, want.words)), None)
        return f"{lost.origin} has it, {lost.dropped_by} drops it" if lost else None
