#!/bin/sh
# Stand-in of railwright's tests. create_nv.symvers.sh KERNEL: the symbol versions of nvidia_p2p_*
# in the nvidia.ko that is installed for KERNEL, as lines of a Module.symvers. The script of this
# name in gds-nvidia-fs reads nvidia.ko too, for dkms keeps no Module.symvers of its build. Where
# there is no nvidia.ko yet, it only says so as well: what is built then has no versions of these
# symbols, and the kernel takes it with any driver, warning once.
kernel=$1
module=$(modinfo -F filename -k "$kernel" nvidia 2>/dev/null) || {
    echo '-E- Cannot locate nvidia modules!' >&2
    echo 'CUDA driver must be installed before installing this package!' >&2
    exit 0
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
case $module in
    *.xz) xz -dc "$module" ;;
    *.zst) zstd -dcq "$module" ;;
    *.gz) gzip -dc "$module" ;;
    *) cat "$module" ;;
esac >"$work/nvidia.ko"

# A symbol's version is the four bytes that __crc_SYMBOL leads to in section __kcrctab, or before
# Linux 5.19 the value of that symbol itself.
if objcopy -O binary -j __kcrctab --set-section-flags __kcrctab=alloc \
    "$work/nvidia.ko" "$work/versions" 2>/dev/null && [ -s "$work/versions" ]; then
    in_section=yes
else
    in_section=no
fi
nm "$work/nvidia.ko" | sed -n 's/^\([0-9a-f]*\) \([A-Za-z]\) __crc_\(nvidia_p2p_.*\)$/\1 \2 \3/p' |
    while read -r value kind symbol; do
        case $in_section$kind in
            yes[rR])
                value=$(od -An -tx4 -j "$((0x$value))" -N 4 "$work/versions" | tr -d ' ')
                ;;
        esac
        printf '0x%s\t%s\tnvidia\tEXPORT_SYMBOL\t\n' "$value" "$symbol"
    done
