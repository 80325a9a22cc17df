"""Whether files of secrets on a node are as given: the node compares, and tells no content."""

from facts.probe import Section
from railwright.secret_files import SECTION

SECRETS = Section(
    name=SECTION,
    for_storage=True,
    script=r"""
printf '%s\n' "$RW_SECRETS" | while read -r path nonce digest; do
    if [ -z "$path" ]; then continue
    elif [ "$nonce" = - ]; then echo "$path unknown $digest"
    elif [ ! -e "$path" ] && [ ! -L "$path" ]; then echo "$path absent"
    elif [ ! -f "$path" ] || [ ! -r "$path" ]; then echo "$path unknown $path cannot be read"
    else
        found=$({ printf %s "$nonce"; cat -- "$path"; } | sha256sum) answer=differs
        [ "${found%% *}" != "$digest" ] || answer=equal
        echo "$path $answer $(stat -L -c '%U %a' -- "$path")"
    fi
done
""",
)
