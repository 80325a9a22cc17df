"""A node as the limits component sees it, built by hand."""

from collections.abc import Mapping

from deploys.limits import actions, settings
from railwright.actions import Action, InstallFile, RemoveFile
from railwright.schema import EffectsSpec, LimitsSpec, Node
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, records

BOOT = 1_800_000_000
DEFAULTS = {
    "STACK": ("8388608", "infinity"),
    "NOFILE": ("1024", "524288"),
    "NPROC": ("11505", "11505"),
    "MEMLOCK": ("8388608", "8388608"),
}
STOCK = {"/etc/debian_version": "12.9\n", "/etc/security/limits.conf": "# nothing\n"}
PAM = "/etc/security/limits.d/99-zz-railwright.conf"
SYSTEM = "/etc/systemd/system.conf.d/99-zz-railwright.conf"
USER = "/etc/systemd/user.conf.d/99-zz-railwright.conf"


def proc_limits(memlock: str = "8388608", nofile: str = "1048576", prefix: str = "") -> str:
    rows = (
        f"{prefix}Max stack size            8388608              unlimited            bytes     ",
        f"{prefix}Max processes             11505                11505                processes ",
        f"{prefix}Max open files            1024                 {nofile:<20} files     ",
        f"{prefix}Max locked memory         {memlock:<20} {memlock:<20} bytes     ",
        f"{prefix}Max nice priority         0                    0                    ",
    )
    return "\n".join(rows) + "\n"


class Host:
    """What there is on a node; ``snapshot`` is what a probe of it brings."""

    def __init__(
        self,
        files: Mapping[str, str] | None = None,
        login: str = "8388608",
        manager: Mapping[str, tuple[str, str]] | None = None,
        services: Mapping[str, str] | None = None,
        units: str = "",
    ) -> None:
        self.files = {**STOCK, **(files or {})}
        self.mtime = BOOT
        self.opener = "sshd"
        self.since = BOOT + 100
        self.login = login
        self.nr_open = 1048576
        self.manager = {**DEFAULTS, **(manager or {})}
        self.services = dict(services or {"cron.service": "8388608"})
        self.units = units
        self.identity = "uid=0\nos=debian\n"
        self.more: dict[str, Section] = {}

    def snapshot(self) -> Snapshot:
        pam = [p for p in self.files if "security" in p or "debian" in p]
        directory = f"\n{MARKER} file directory 755 root {self.mtime} 4096 /etc/security/limits.d\n"
        opened = f"opener={self.opener}\nsince={self.since}\n" if self.opener else ""
        shown = "".join(
            f"DefaultLimit{name}={hard}\nDefaultLimit{name}Soft={soft}\n"
            for name, (soft, hard) in self.manager.items()
        )
        blocks = "".join(
            f"MainPID={pid}\nId={unit}\n\n" for pid, unit in enumerate(self.services, start=100)
        )
        rows = "".join(
            proc_limits(memlock, prefix=f"/proc/{pid}/limits:")
            for pid, memlock in enumerate(self.services.values(), start=100)
        )
        texts = {
            "identity": self.identity,
            "limits_pam": directory + records({p: self.files[p] for p in pam}, self.mtime),
            "limits_manager": records({p: t for p, t in self.files.items() if p not in pam}, BOOT),
            "limits_login": f"nr_open={self.nr_open}\n{opened}{proc_limits(self.login)}",
            "limits_running": f"{shown}\n{blocks}{rows}",
            "limits_units": self.units,
        }
        sections = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
        return Snapshot(host="n1", marker=MARKER, sections={**sections, **self.more})

    def do(self, action: Action) -> None:
        """What ``action`` does to the files, two minutes after the login."""
        if isinstance(action, InstallFile):
            self.files[action.path] = action.content
            self.mtime = self.since + 120
        if isinstance(action, RemoveFile):
            self.files.pop(action.path, None)
            self.mtime = self.since + 120


def node(*allowed: Effect, **limits: object) -> Node:
    default = (Effect.LIVE, Effect.NEW_PROCESSES)
    return Node(
        name="n1",
        limits=LimitsSpec.model_validate(limits),
        effects=EffectsSpec(allow=frozenset(allowed or default)),
    )


def found(node: Node, host: Host) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings(node, host.snapshot())}


def acts(node: Node, host: Host) -> list[Action]:
    snapshot = host.snapshot()
    return list(actions(node, snapshot, settings(node, snapshot)))


def judged(node: Node, host: Host) -> dict[str, Verdict]:
    return {key: verdict(s, node.effects.allow) for key, s in found(node, host).items()}


def unit(
    name: str = "slurmd.service", pid: int = 264, memlock: str = "8388608", own: str = ""
) -> str:
    """The answer of the section ``limits_units``; ``own`` is the unit's LimitMEMLOCK= line."""
    path = f"/usr/lib/systemd/system/{name}"
    drop_in = f"/etc/systemd/system/{name}.d/50-site.conf"
    line = f"{drop_in}:2:{own}\n" if own else ""
    rows = proc_limits(memlock, prefix=f"/proc/{pid}/limits:") if pid else ""
    return (
        f"MainPID={pid}\nId={name}\nNames={name} alias-of-{name}\nLoadState=loaded\n"
        f"FragmentPath={path}\nDropInPaths={drop_in if own else ''}\n\n{rows}"
        f"{path}:7:LimitNOFILE=131072\n{line}"
    )
