# shellcheck shell=sh
# Read-only, at the lowest priority, with a PATH of our own.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
# By exec: around a group the shell would keep the old streams open in the jobs it abandons.
exec </dev/null 2>/dev/null
renice -n 19 -p $$ >/dev/null 2>&1
ionice -c 3 -p $$ >/dev/null 2>&1
read -r N </proc/sys/kernel/random/uuid || N=railwright-$$-$(date +%s)

# section NAME DEADLINE CAP: run s_NAME. The background job alone holds the pipe, so that the
# reader, and with it the probe, goes on when the job hangs in the kernel and cannot be killed.
section() {
    printf '\n%s begin %s\n' "$N" "$1"
    {
        (
            exec 3>&1
            err=$("s_$1" 2>&1 >&3)
            rc=$?
            printf '\n%s rc %s\n' "$N" "$rc"
            [ -z "$err" ] || printf '%s\n' "$err" | head -c 4000 | sed "s/^/$N err /"
        ) &
    } | timeout "$2" head -c "$3"
    printf '\n%s end %s %s\n' "$N" "$1" "$?"
}

# meta PATH: its record without the content, as
#   MARKER file KIND MODE OWNER MTIME SIZE PATH
#   MARKER target RESOLVED        (only of a link; nothing after it where it leads nowhere)
# A path that is not there is passed over.
meta() {
    [ -e "$1" ] || [ -L "$1" ] || return 0
    stat=$(stat -L -c '%a %U %Y %s' -- "$1" 2>/dev/null) || stat='- - - -'
    entry "$1" "$stat"
}

# entry PATH STAT: the lines of meta.
entry() {
    if [ -L "$1" ]; then kind='link'
    elif [ -d "$1" ]; then kind='directory'
    elif [ -f "$1" ]; then kind='file'
    else kind='other'; fi
    [ -r "$1" ] || [ -L "$1" ] || kind='unreadable'
    printf '\n%s file %s %s %s\n' "$N" "$kind" "$2" "$1"
    [ "$kind" != link ] || printf '%s target %s\n' "$N" "$(readlink -f -- "$1")"
}

# files PATH...: records with content, up to 64 KiB each. One stat tells of all that lead somewhere.
files() {
    for path in "$@"; do
        shift
        if [ -e "$path" ]; then set -- "$@" "$path"; else meta "$path"; fi
    done
    [ $# -gt 0 ] || return 0
    stat -L -c '%a %U %Y %s %n' -- "$@" | while read -r mode owner mtime size path; do
        entry "$path" "$mode $owner $mtime $size"
        if [ -f "$path" ] && [ -r "$path" ]; then
            printf '%s content\n' "$N"
            head -c 65536 -- "$path"
            printf '\n'
        fi
    done
}

# first FILE: $first is its first line, - where there is none; by the shell itself, which is cheap.
first() {
    first=
    { IFS= read -r first <"$1"; } 2>/dev/null || :
    [ -n "$first" ] || first=-
}

# rails: whether the node has rails, or files that we have written for them.
rails() {
    [ -z "$RW_RAILS" ] || return 0
    set -- /etc/railwright/qos/* /etc/railwright/pcie/* /etc/*/*railwright-rail* \
        /etc/*/*/*railwright-rail*
    for path in "$@"; do [ ! -e "$path" ] || return 0; done
    return 1
}

# drivers: whether the node is asked for drivers, or has files that we have written for them.
drivers() {
    [ -z "$RW_DRIVERS" ] || return 0
    set -- /etc/apt/*/railwright-* /etc/yum.repos.d/railwright-* /etc/pki/rpm-gpg/*-railwright-* \
        /etc/railwright/gpu_driver/* /etc/systemd/system/railwright-gpu.service \
        /etc/systemd/system/*.wants/railwright-gpu.service /usr/local/sbin/railwright-gpu \
        /etc/systemd/system/nvidia-persistenced.service.d/*-railwright.conf
    for path in "$@"; do [ ! -e "$path" ] && [ ! -L "$path" ] || return 0; done
    return 1
}

# storage: whether the node is asked for storage, or has files that we have written for it.
storage() {
    [ -z "$RW_STORAGE" ] || return 0
    set -- /etc/railwright/lustre/* /etc/railwright/beegfs/* /etc/railwright/nvmeof/* \
        /etc/railwright/nfs/* /etc/systemd/system/railwright-lustre* \
        /etc/systemd/system/railwright-nvmeof* /etc/modprobe.d/*railwright-lustre* \
        /etc/systemd/system/fstrim.service.d/railwright-scratch.conf \
        /etc/systemd/system/lnet.service.d/*railwright*
    for path in "$@"; do [ ! -e "$path" ] && [ ! -L "$path" ] || return 0; done
    grep -qs '^\[X-Railwright\]' /etc/systemd/system/*.mount
}

# ports: the Ethernet interfaces of PCI functions, or of devices below them.
ports() {
    for link in /sys/class/net/*; do
        [ -e "$link/device" ] || continue
        first "$link/type"
        [ "$first" = 1 ] || continue
        case $(readlink -f "$link/device") in
            # A device below a PCI function is no port where the function itself has one.
            */pci*/virtio*) set -- "$link"/device/../net/*; [ -e "$1" ] || echo "${link##*/}" ;;
            */pci*) echo "${link##*/}" ;;
        esac
    done
}

# answer PORT WHAT COMMAND...: what the command says of the port, between two lines of ours:
#   MARKER port PORT WHAT
#   MARKER exit STATUS
answer() {
    printf '\n%s port %s %s\n' "$N" "$1" "$2"
    shift 2
    "$@" 2>&1
    printf '\n%s exit %s\n' "$N" "$?"
}

# units NAME...: the state of systemd units that may or may not be there.
units() {
    systemctl show --no-pager \
        -p Id,LoadState,ActiveState,SubState,UnitFileState,Result,NeedDaemonReload,DropInPaths \
        "$@"
}
