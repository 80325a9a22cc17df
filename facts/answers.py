"""What a tool says of each port in turn, as ``answer`` of probe.sh prints it."""

import re

from railwright.model import Model


class Answer(Model):
    """What one tool said of one port, on both streams; ``what`` is what it was asked for."""

    port: str
    what: str
    text: str
    rc: int


def parse_answers(text: str, marker: str) -> list[Answer]:
    """The answers in ``text``, in their order. Raises ValueError where one breaks off."""
    found = []
    for part in re.split(f"^{re.escape(marker)} port ", text, flags=re.MULTILINE)[1:]:
        head, _, rest = part.partition("\n")
        said, ended, rc = rest.rpartition(f"\n{marker} exit ")
        port, _, what = head.partition(" ")
        if not ended or not rc.strip().isdecimal():
            raise ValueError(f"what is said of {head[:60]} breaks off")
        found.append(Answer(port=port, what=what, text=said, rc=int(rc)))
    return found
