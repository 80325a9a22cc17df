#!/bin/sh
# Names the packages $2... of the offline apt repository of the root $1 in its index.
set -eu
repo=$1/srv/lab-repo
shift
for deb in "$@"; do
    dpkg-deb --field "$repo/$deb"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" \
        "$(stat -c %s "$repo/$deb")" "$(sha256sum <"$repo/$deb" | cut -d' ' -f1)"
done >>"$repo/Packages"
