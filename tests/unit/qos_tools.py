"""dcb, mlnx_qos, ethtool and rdma over one port, which is a JSON file: ``QOS_PORT``.

Run as ``qos_tools.py TOOL ARGUMENTS...`` it stands in for a tool. It behaves as mlx5 does
(drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c), and checks what dcb itself checks
(iproute2, dcb/dcb_ets.c). What changes the port is noted in ``done``.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

Port = dict[str, Any]

MAPS = {"prio-pfc": 2, "prio-tc": 0, "tc-tsa": 0, "tc-bw": 0, "prio-buffer": 0, "buffer-size": 0}


def mlx5(**changed: Any) -> Port:
    """A port as the driver leaves it."""
    port: Port = {
        "dcbx": ["host", "cee", "ieee"],
        "willing": False,
        "app": [],
        "prio-pfc": [False] * 8,
        "delay": 7,
        "prio-tc": [1, 0, 2, 3, 4, 5, 6, 7],
        "tc-tsa": ["vendor"] * 8,
        "tc-bw": [100] * 8,
        "prio-buffer": [0] * 8,
        "buffer-size": [20016, 156096, 0, 0, 0, 0, 0, 0],
        "pause": [True, True],
        "rdma": "mlx5_0",
        "toggles": 0,
        "done": [],
    }
    return {**port, **changed}


class RefusedError(Exception):
    """What the tool says on stderr before it exits 1."""


def dcb(port: Port, words: list[str]) -> str:
    as_json = "-j" in words
    thing, command, _, _, *rest = [word for word in words if not word.startswith("-")]
    if port.get("dcb") is False:
        raise RefusedError("Attribute read: Operation not supported")
    if command == "show":
        answer = _shown(port, thing)
        return json.dumps(answer) if as_json else _text(thing, answer, rest)
    port["done"].append(" ".join([thing, command, *rest]))
    if thing == "dcbx":
        port["dcbx"] = rest
    elif thing == "app":
        for pair in rest[1:]:
            _app(port, command, [int(number) for number in pair.split(":")])
    else:
        _set(port, thing, rest)
    return ""


def _shown(port: Port, thing: str) -> dict[str, Any]:
    if thing == "dcbx":
        return {flag.replace("-", "_"): True for flag in port["dcbx"]}
    if thing == "app":
        entries = [[dscp, priority, " "] for dscp, priority in sorted(port["app"])]
        return {"dscp_prio": entries} if entries else {}
    if thing == "pfc":
        return {"pfc_cap": 8, "delay": port["delay"], "prio_pfc": port["prio-pfc"]}
    if thing == "buffer":
        return {"prio_buffer": port["prio-buffer"], "buffer_size": port["buffer-size"]}
    ets = {key.replace("-", "_"): port[key] for key in ("tc-bw", "tc-tsa", "prio-tc")}
    return {"willing": port["willing"], "ets_cap": 8, **ets}


def _text(thing: str, answer: dict[str, Any], rest: list[str]) -> str:
    """What dcb prints without -j; every list ends in a blank."""
    if thing == "dcbx":
        return "".join(f"{key.replace('_', '-')} " for key in answer) + "\n"
    if thing == "app":
        entries = "".join(
            f"{dscp}:{priority} " for dscp, priority, _ in answer.get("dscp_prio", [])
        )
        return f"dscp-prio {entries}\n" if entries else ""
    lines, first = [], ""
    for key, value in answer.items():
        name, shown = key.replace("_", "-"), {True: "on", False: "off"}
        if isinstance(value, list):
            pairs = [f"{i}:{shown[v] if isinstance(v, bool) else v} " for i, v in enumerate(value)]
            lines.append(f"{name} {''.join(pairs)}")
        else:
            first += f"{name} {shown[value] if isinstance(value, bool) else value} "
    return "\n".join(filter(None, [first, *lines])) + "\n"


def _app(port: Port, command: str, entry: list[int]) -> None:
    if command == "add":
        # mlx5 takes the old entry of the DSCP out; a driver without such code keeps both.
        port["app"] = [e for e in port["app"] if port.get("generic") or e[0] != entry[0]]
        port["app"].append(entry)
    elif entry in port["app"]:
        port["app"].remove(entry)
    else:
        raise RefusedError("Attribute write: No such file or directory")


def _set(port: Port, thing: str, rest: list[str]) -> None:
    before = list(port["prio-pfc"])
    key = ""
    for word in rest:
        if ":" in word:
            index, _, value = word.partition(":")
            port[key][int(index)] = value == "on" if key == "prio-pfc" else _value(value)
        elif key in ("willing", "delay"):
            port[key] = word == "on" if key == "willing" else int(word)
        if ":" not in word:
            key = word
    port["toggles"] += port["prio-pfc"] != before
    if thing == "ets":
        if sum(port["tc-bw"]) != 100:
            raise RefusedError("Bandwidth percentages in tc-bw do not sum to 100%")
        # What is not ets has all of the bandwidth, and is shown so.
        port["tc-bw"] = [
            share if tsa == "ets" else 100
            for share, tsa in zip(port["tc-bw"], port["tc-tsa"], strict=True)
        ]
    if thing == "buffer":
        port["buffer-size"] = [size // 144 * 144 for size in port["buffer-size"]]


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def mlnx_qos(port: Port, words: list[str]) -> str:
    option, *rest = [*words[2:], ""]
    if option in ("", "-a"):
        return _report(port)
    port["done"].append(" ".join(words[2:]))
    value = rest[0].split(",")
    if option == "--trust":
        port["app"] = [[dscp, dscp >> 3] for dscp in range(64)] if rest[0] == "dscp" else []
    elif option == "--dscp2prio":
        _app(port, "add", [int(value[1]), int(value[2])])
    elif option == "-d":
        port["dcbx"] = ["host", "ieee"]
    elif option == "--cable_len":
        port["delay"] = int(value[0])
    elif option == "-p":
        ets = dict(zip(words[2::2], words[3::2], strict=True))
        given = {"prio-tc": ets["-p"], "tc-tsa": ets["-s"], "tc-bw": ets["-t"]}
        _set(port, "ets", [w for k, v in given.items() for w in (k, *_pairs(v.split(",")))])
    else:
        key = {"--pfc": "prio-pfc", "--prio2buffer": "prio-buffer", "--buffer_size": "buffer-size"}
        pairs = _pairs(["on" if v == "1" else "off" for v in value] if option == "--pfc" else value)
        _set(port, "pfc" if option == "--pfc" else "buffer", [key[option], *pairs])
    return ""


def _pairs(values: list[str]) -> list[str]:
    return [f"{index}:{value}" for index, value in enumerate(values)]


def _report(port: Port) -> str:
    lines = [f"DCBX mode: {'OS' if 'host' in port['dcbx'] else 'Firmware'} controlled"]
    lines.append(f"Priority trust state: {'dscp' if port['app'] else 'pcp'}")
    for priority in range(8):
        dscps = [f"{d:02}," for d, p in sorted(port["app"], reverse=True) if p == priority]
        for start in range(0, len(dscps), 8):
            lines.append(f"\tprio:{priority} dscp:{''.join(dscps[start : start + 8])}")
    sizes = ",".join(map(str, port["buffer-size"]))
    lines.append(f"Receive buffer size (bytes): {sizes},max_buffer_size=4151808")
    lines += [f"Cable len: {port['delay']}", "PFC configuration:"]
    lines.append("\tpriority    0   1   2   3   4   5   6   7")
    lines.append("\tenabled     " + "".join(f"{int(on)}   " for on in port["prio-pfc"]))
    lines.append("\tbuffer      " + "".join(f"{buffer}   " for buffer in port["prio-buffer"]))
    # Without an order: the class of the first priority comes first.
    order = list(dict.fromkeys([*port["prio-tc"], *range(8)]))
    for tc in order:
        tsa = port["tc-tsa"][tc]
        share = f", bw: {port['tc-bw'][tc]}%" if tsa == "ets" else ""
        lines.append(f"tc: {tc} ratelimit: unlimited, tsa: {tsa}{share}")
        lines += [f"\t priority:  {p}" for p in range(8) if port["prio-tc"][p] == tc]
    return "\n".join(lines) + "\n"


def ethtool(port: Port, words: list[str]) -> str:
    if port["pause"] is None:
        raise RefusedError("netlink error: Operation not supported")
    if words[0] == "-A":
        port["done"].append(" ".join(words))
        port["pause"] = [words[5] == "on", words[7] == "on"]
        return ""
    rx, tx = port["pause"]
    if words[0] == "--json":
        # What ethtool 6.1 says of any port.
        return json.dumps([{"ifname": words[2], "autonegotiate": True, "rx": True, "tx": True}])
    shown = {True: "on", False: "off"}
    return (
        f"Pause parameters for {words[1]}:\nAutonegotiate:\toff\n"
        f"RX:\t\t{shown[rx]}\nTX:\t\t{shown[tx]}\n\n"
    )


def rdma(port: Port, words: list[str]) -> str:
    if port["rdma"] is None:
        return ""
    return f"link {port['rdma']}/1 state ACTIVE physical_state LINK_UP netdev rail0 \n"


def main(tool: str, words: list[str]) -> int:
    path = Path(os.environ["QOS_PORT"])
    port = json.loads(path.read_text())
    try:
        print(globals()[tool](port, words), end="")
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return 1
    finally:
        path.write_text(json.dumps(port))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
