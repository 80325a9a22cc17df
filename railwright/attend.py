"""Shell functions by which what a probe runs on a node ends when nobody is left to be told.

Without a terminal sshd ends no process when the connection goes: it only is no parent any more.
"""

from facts.answers import Answer, parse_answers
from railwright.snapshot import Snapshot

TERMINATED = 143
"""Exit code of what is not begun, as the one who asked is gone already (128 + SIGTERM)."""

ASKER = f"""
# asker: the processes that this one descends from, up to that which holds the ssh connection.
asker() {{
    pid=$$
    chain=
    while [ "$pid" -gt 1 ]; do
        chain="$chain $pid"
        name=
        parent=1
        while read -r key value; do
            case $key in Name:) name=$value ;; PPid:) parent=$value && break ;; esac
        done <"/proc/$pid/status"
        case $name in sshd*) break ;; esac
        pid=$parent
    done 2>/dev/null
    echo "$chain"
}}
asker=$(asker)
[ "$asker" != " $$" ] || return {TERMINATED}
"""
"""Sets ``$asker``; as long as ``asker`` prints the same, somebody waits for the answer."""

TELL = r"""
# tell SUBJECT NAME...: the files of these names in $work, as answer of the probe prints, with the
# exit code that is in NAME.rc. Of a long one both ends are told.
tell() {
    subject=$1
    shift
    for name in "$@"; do
        [ -e "$work/$name" ] || continue
        rc=0
        [ ! -e "$work/$name.rc" ] || read -r rc <"$work/$name.rc"
        printf '\n%s port %s %s\n' "$N" "$subject" "$name"
        if [ "$(wc -c <"$work/$name")" -gt 131072 ]; then
            head -c 65536 "$work/$name"
            printf '\n'
            tail -c 65536 "$work/$name"
        else
            cat "$work/$name"
        fi
        printf '\n%s exit %s\n' "$N" "$rc"
    done
}
"""
"""Needs ``$work``, the directory in which a test keeps what it tells at its end."""


def answers_of(snapshot: Snapshot, section: str) -> dict[str, Answer]:
    """What a test told by ``tell``, by name.

    Raises ValueError where it was not run, did not come to its end, or its answer breaks off.
    """
    said = snapshot.section(section)
    if said.rc == TERMINATED:
        raise ValueError("the test was terminated (SIGTERM)")
    if said.rc is None:
        raise ValueError(f"the test hangs ({said.ended})")
    if said.rc != 0:
        raise ValueError(said.stderr or f"the test's script ended with exit {said.rc}")
    return {answer.what: answer for answer in parse_answers(said.stdout, snapshot.marker)}


def left_by(told: dict[str, Answer]) -> tuple[str, ...]:
    """What a test could not put back: the lines ``left ...`` of its file ``left``."""
    lines = told["left"].text.splitlines() if "left" in told else []
    return tuple(line.removeprefix("left ") for line in lines if line)


def last_words(text: str) -> str:
    """The last two lines of what a tool said, as one."""
    return " / ".join([line.strip() for line in text.splitlines() if line.strip()][-2:])[:300]
