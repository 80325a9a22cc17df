"""Shell functions by which what a probe runs on a node ends when nobody is left to be told.

Without a terminal sshd ends no process when the connection goes: it only is no parent any more.
"""

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
