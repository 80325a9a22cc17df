# shellcheck shell=sh disable=SC2154
# The body of a section of the probe, after lines that set (all of them quoted):
#   asker      by railwright.attend, and the functions of that name and tell
#   N          the marker of this answer (by the probe)
#   tools      the directory of gdsio
#   directory  where the test's own file is made, or else
#   file       that file, which must not be there
#   gpu        index of the GPU         size_mib   of the file
#   seconds    that it is read for      write_s    seconds that writing it may take
#   config     a copy of cufile.json in base64, "" where the node's own is taken as it is
#   stats      nvidia-fs' counters      switch     the parameter that has it count IO
# What it changes (the switch, the file) it puts back before it tells anything, however it ends.

# Nobody but root may look into the copy of cufile.json, and nobody but its owner into the file.
umask 077
was=
data=
work=
told=$(mktemp) || return 73

# put_back: the switch first, for rm may hang where the storage does. What stays is told of.
put_back() {
    if [ -n "$was" ]; then
        { echo "$was" >"$switch"; } 2>/dev/null
        now=
        read -r now <"$switch"
        [ "$now" = "$was" ] || echo "left $switch is $now, it was $was" >>"$told"
        was=
    fi
    if [ -n "$data" ]; then
        rm -f -- "$data" || echo "left $data" >>"$told"
        data=
    fi
}

clean() {
    put_back
    [ -z "$work" ] || rm -rf -- "$work"
    rm -f -- "$told"
}
trap clean EXIT
trap 'exit 143' HUP INT TERM PIPE

# count: a reading of the counters, and how cat ended.
count() {
    cat "$stats" >"$work/$1" 2>&1
    echo "$?" >"$work/$1.rc"
}

# io NAME LIMIT ARGUMENT...: run gdsio and wait, but for no longer than it may take: a process that
# hangs in the kernel cannot be killed, and the switch is to be put back all the same.
io() {
    name=$1
    limit=$2
    shift 2
    # The probe runs at the lowest priorities, which would be measured too.
    # shellcheck disable=SC2016 # it is the inner shell that expands them
    CUFILE_LOGFILE_PATH=$work/$name.log CUFILE_LOGGING_LEVEL=INFO \
        timeout -k 5 "$limit" sh -c 'echo "$$" >"$0"
            { renice -n 0 -p "$$"; ionice -c 2 -n 4 -p "$$"; } >/dev/null 2>&1
            exec "$@"' "$work/pid" "$tools/gdsio" "$@" >"$work/$name" 2>&1 3>&- &
    job=$!
    waited=0
    while kill -0 "$job" 2>/dev/null; do
        [ "$(asker)" = "$asker" ] || { kill "$job"; exit 143; }
        if [ "$waited" -gt $((limit + 10)) ]; then
            echo 124 >"$work/$name.rc"
            return 124
        fi
        sleep 1
        waited=$((waited + 1))
        # It tells of a process that runs; the last reading that is whole is kept.
        if timeout 5 "$tools/gds_stats" -p "$(cat "$work/pid")" -l 3 >"$work/reading" &&
            grep -q '^GPU ' "$work/reading"; then
            mv "$work/reading" "$work/$name.stats"
        fi
    done 2>/dev/null
    wait "$job"
    rc=$?
    echo "$rc" >"$work/$name.rc"
    return "$rc"
}

work=$(mktemp -d) || exit 73
if [ -n "$config" ]; then
    printf '%s' "$config" | base64 -d >"$work/cufile.json" || exit 73
    export CUFILE_ENV_PATH_JSON="$work/cufile.json"
fi
if [ -n "$directory" ]; then
    file=$(mktemp -- "$directory/railwright-gds.XXXXXXXXXX") || exit 73
elif ! (set -C && : >"$file"); then
    # With -C an open is exclusive: what is there already is nobody's to overwrite.
    echo "$file cannot be made, or is there already" >&2
    exit 73
fi
data=$file

now=
if [ -e "$switch" ]; then
    read -r now <"$switch"
    if [ "$now" = 0 ]; then
        was=$now
        { echo 1 >"$switch"; } 2>/dev/null
    fi
fi

# One thread: a file is then exactly as long as it is told to be, and read as far as it was written.
count before
io write "$write_s" -f "$data" -d "$gpu" -w 1 -s "${size_mib}M" -i 1M -x 0 -I 1 &&
    io read $((seconds + 60)) -f "$data" -d "$gpu" -w 1 -s "${size_mib}M" -i 1M -x 0 -I 0 \
        -T "$seconds"
count after
put_back
[ ! -s "$told" ] || mv "$told" "$work/left"
tell gds before write write.log write.stats read read.log read.stats after left
true
