"""What a component does to a node, as data, and the one shell script that does it.

Components decide on actions in pure functions; the script is one command for the whole
component, so that a run costs one round trip where there is something to do.
"""

import shlex
from collections.abc import Iterable
from typing import Literal

from railwright.model import Model
from railwright.secrets import SecretFile


class InstallFile(Model):
    """Put ``content`` at ``path`` by rename, owned by root.

    ``check`` is a command that is given the path of the new file before it takes its place; if it
    fails, so does the component, and the old file stays as it was.
    """

    action: Literal["install"] = "install"
    path: str
    content: str
    mode: Literal["644", "755", "600"] = "644"
    check: tuple[str, ...] | None = None


class RemoveFile(Model):
    """Remove a file of ours; not an error where it is not there."""

    action: Literal["remove"] = "remove"
    path: str


class Run(Model):
    """Run one command, its arguments as they are: no shell reads them.

    The script goes on when it fails, and fails at its end, so that one value that the kernel
    refuses does not keep the others out of force.
    """

    action: Literal["run"] = "run"
    command: tuple[str, ...]


class RunScript(Model):
    """Run a POSIX sh script that is not left on the node; ``name`` stands for it in errors.

    Fails as ``Run`` does.
    """

    action: Literal["script"] = "script"
    name: str
    script: str
    arguments: tuple[str, ...] = ()


class WriteValue(Model):
    """Write ``value`` to a file of the kernel (under /proc/sys or /sys).

    ``line`` is the line that persists it: where the kernel refuses the value, files that are
    installed after it in the same script go without that line. A value whose file is not there
    cannot be judged, and its line stays.
    """

    action: Literal["write"] = "write"
    path: str
    value: str
    line: str | None = None


class InstallSecret(Model):
    """Put a file of secrets in place by rename, owned by root and never readable by others.

    The script reads its content, base64 in one line, from standard input: it is in no argument.
    """

    action: Literal["secret"] = "secret"
    file: SecretFile


Action = InstallFile | InstallSecret | RemoveFile | Run | RunScript | WriteValue

_HEAD = """\
PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 022
failed=0
refused='railwright: refused lines'
fail() { failed=1; printf 'railwright: %s\\n' "$*" >&2; }
spoiled() { rm -f "$new"; fail "cannot write $1"; return 1; }
install() {
    [ -d "${1%/*}" ] || mkdir -p "${1%/*}" || { fail "cannot create ${1%/*}"; return 1; }
    new=$(mktemp "${1%/*}/.railwright-XXXXXX") || { fail "cannot write $1"; return 1; }
    grep -avxF -e "$refused" >"$new" && chmod "$2" "$new" && chown root:root "$new" || spoiled "$1"
}
secret() {
    IFS= read -r line && [ -n "$line" ] || { fail "$1: its secret did not come"; return 1; }
    [ -d "${1%/*}" ] || mkdir -p "${1%/*}" || { fail "cannot create ${1%/*}"; return 1; }
    new=$(mktemp "${1%/*}/.railwright-XXXXXX") || { fail "cannot write $1"; return 1; }
    printf '%s\\n' "$line" | base64 -d >"$new" && chmod "$2" "$new" && chown root:root "$new" ||
        spoiled "$1"
}
place() {
    sync "$new" && mv -f "$new" "$1" || { rm -f "$new"; fail "cannot put $1 in place"; }
}"""


def render(actions: Iterable[Action]) -> str:
    """The script for ``actions``; it exits 1 where one of them failed, and names each on stderr."""
    return "\n".join([_HEAD, *(_render(action) for action in actions), 'exit "$failed"'])


def _render(action: Action) -> str:
    if isinstance(action, InstallFile):
        return _render_install(action)
    if isinstance(action, RemoveFile):
        path = shlex.quote(action.path)
        return f"rm -f {path} || fail {shlex.quote(f'cannot remove {action.path}')}"
    if isinstance(action, WriteValue):
        return _render_write(action)
    if isinstance(action, InstallSecret):
        path = shlex.quote(action.file.path)
        return f"secret {path} {action.file.mode} && place {path}"
    if isinstance(action, RunScript):
        return _render_script(action)
    command = shlex.join(action.command)
    return f"{command} </dev/null >&2 || fail {shlex.quote(f'failed: {command}')}"


def _end_of(text: str) -> str:
    """A here-document's delimiter that does not occur in ``text``."""
    end = "RAILWRIGHT_END"
    while end in text:
        end += "_"
    return end


def _render_script(action: RunScript) -> str:
    if not action.script.endswith("\n"):
        raise ValueError(f"{action.name}: expected a last line that ends")
    failed = shlex.quote(f"failed: {shlex.join((action.name, *action.arguments))}")
    end = _end_of(action.script)
    run = shlex.join(("sh", "-s", "--", *action.arguments))
    return f"{run} >&2 <<'{end}' || fail {failed}\n{action.script}{end}"


def _render_write(action: WriteValue) -> str:
    path, value = shlex.quote(action.path), shlex.quote(action.value)
    what = shlex.quote(f"{action.path}: the kernel refuses {action.value}")
    write = f"{{ printf '%s\\n' {value} >{path}; }} 2>/dev/null"
    if action.line is None:
        return f"{write} || fail {what}"
    line = shlex.quote(f"\n{action.line}")
    return f"{write} || {{ fail {what}; [ ! -e {path} ] || refused=$refused{line}; }}"


def _render_install(action: InstallFile) -> str:
    if not action.content.endswith("\n"):
        raise ValueError(f"{action.path}: expected a last line that ends")
    path = shlex.quote(action.path)
    end = _end_of(action.content)
    put = f"install {path} {action.mode} <<'{end}'\n{action.content}{end}\n"
    if action.check is None:
        return f"{put}[ $? -ne 0 ] || place {path}"
    check = shlex.join(action.check)
    refused = shlex.quote(f"{action.path}: refused by {check}, left as it was")
    return (
        f"{put}"
        f'if [ $? -eq 0 ]; then if {check} "$new" >&2; then place {path}\n'
        f'else rm -f "$new"; fail {refused}; fi; fi'
    )
