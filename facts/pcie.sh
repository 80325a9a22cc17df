# shellcheck shell=sh
# shellcheck disable=SC2034
# Reads PCIe functions in $PCI (/sys/bus/pci/devices), for the probe and for railwright-pcie alike.
# Numbers are decimal. Of config space only the registers needed are read, as lspci does: there are
# devices that do not bear a read of all of it. Without root the kernel shows 64 bytes.

# pci_value FILE: its first word into $value, - where there is none.
pci_value() {
    value=
    [ ! -r "$1" ] || read -r value _ <"$1"
    value=${value:--}
}

# pci_kind DIRECTORY: gpu, nic or nvme into $kind; fails for others and for virtual functions.
# AMD's accelerators are display controllers of another kind, or processing accelerators.
pci_kind() {
    [ ! -e "$1/physfn" ] || return
    pci_value "$1/class"
    kind=$value
    pci_value "$1/vendor"
    case $kind-$value in
        0x03????-0x10de | 0x0380??-0x1002 | 0x1200??-0x1002) kind=gpu ;;
        0x02????-*) kind=nic ;;
        0x010802-*) kind=nvme ;;
        *) return 1 ;;
    esac
}

# pci_path DIRECTORY: into $path what leads to the device from its host bridge (the last of them:
# a volume management device has one of its own), as 0000:16/0000:16:01.0/0000:17:00.0
pci_path() {
    # By cd, as that starts no process.
    path=
    cd -P "$1" 2>/dev/null || return
    path=${PWD##*/pci}
}

# pci_word ADDRESS OFFSET: 32 bits of config space into $word; od has the machine's byte order.
pci_word() {
    # shellcheck disable=SC2046
    set -- $(od -An -v -tu1 -j "$2" -N 4 "$PCI/$1/config" 2>/dev/null)
    [ $# -eq 4 ] || return
    word=$(($1 + $2 * 256 + $3 * 65536 + $4 * 16777216))
}

# pci_acs ADDRESS: the offset of its ACS capability into $acs, 0 where it has none.
# Fails where config space cannot be read, or the device does not answer (all ones).
pci_acs() {
    acs=0
    next=256
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
        if ! pci_word "$1" "$next" || [ "$word" -eq 4294967295 ]; then
            # A conventional device has 256 bytes and no more.
            [ "$next" -eq 256 ] && pci_word "$1" 252 && pci_word "$1" 0 &&
                [ "$word" -ne 4294967295 ]
            return
        fi
        if [ $((word & 65535)) -eq 13 ]; then
            acs=$next
            return 0
        fi
        next=$(((word >> 20) & 4092))
        [ "$next" -ge 256 ] || return 0
    done
    return 1
}

# pci_express ADDRESS: the offset of its PCI Express capability into $express, 0 where it has none.
# Fails where config space cannot be read.
pci_express() {
    express=0
    pci_word "$1" 52 && [ "$word" -ne 4294967295 ] || return
    next=$((word & 252))
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        [ "$next" -ge 64 ] || return 0
        pci_word "$1" "$next" || return
        if [ $((word & 255)) -eq 16 ]; then
            express=$next
            return 0
        fi
        next=$(((word >> 8) & 252))
    done
    return 1
}
