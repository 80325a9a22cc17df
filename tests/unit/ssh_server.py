"""An ssh server in a thread: it lets one key in and runs what it is told to, by the local sh."""

import socket
import subprocess
import threading
from pathlib import Path

import paramiko


class SshServer:
    """A server on a loopback port; use as a context.

    ``commands`` is every command that it was told to run, ``connections`` how often somebody
    connected. A silent server takes the connection and says nothing.
    """

    def __init__(self, login_key: paramiko.PKey, silent: bool = False) -> None:
        self.host_key = paramiko.ECDSAKey.generate()
        self.commands: list[str] = []
        self._login_key = login_key
        self._silent = silent
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def known_hosts(self, path: Path, key: paramiko.PKey | None = None) -> Path:
        """A known_hosts file at ``path`` with this server's key, or with ``key`` for it."""
        found = key or self.host_key
        entry = f"[127.0.0.1]:{self.port} {found.get_name()} {found.get_base64()}\n"
        path.write_text(entry)
        return path

    @property
    def connections(self) -> int:
        return len(self._taken)

    def __enter__(self) -> "SshServer":
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        for taken in self._taken:
            taken.close()

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._socket.accept()
            except OSError:
                return
            self._taken.append(taken)
            if not self._silent:
                threading.Thread(target=self._talk, args=(taken,), daemon=True).start()

    def _talk(self, taken: socket.socket) -> None:
        transport = paramiko.Transport(taken)
        transport.add_server_key(self.host_key)
        try:
            transport.start_server(server=_Session(self._login_key, self.commands))
        except (paramiko.SSHException, EOFError):
            return


class _Session(paramiko.ServerInterface):
    def __init__(self, login_key: paramiko.PKey, commands: list[str]) -> None:
        self._login_key = login_key
        self._commands = commands

    def get_allowed_auths(self, _username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        right = username == "root" and key == self._login_key
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_channel_request(self, _kind: str, _chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._commands.append(command.decode())
        threading.Thread(target=_run, args=(channel, command.decode()), daemon=True).start()
        return True


def _run(channel: paramiko.Channel, command: str) -> None:
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    channel.sendall(done.stdout)
    channel.sendall_stderr(done.stderr)
    channel.send_exit_status(done.returncode)
    channel.close()
