# shellcheck shell=sh disable=SC2154
# The body of a section of the probe, after lines that set (all of them quoted):
#   asker      by railwright.attend, and the functions of that name and tell
#   N          the marker of this answer (by the probe)
#   mount      the mount that is tested   directory  on it, below which all is written
#   block_mib  size of one IO             jobs       files, and streams
#   depth      IO on their way each       engine     of fio
#   direct     1 past the page cache      file_mib   of each file
#   seconds    each way, "" where each file is gone through once
#   limit_s    when fio is given up
# All that it writes lies in a directory of its own, which is gone before it tells anything.

# Nobody but its owner may look into the files.
umask 077
work=
job=
ending=

# stop: end what still runs. fio ends by itself when it is told to, and has ten seconds for it.
stop() {
    kill "$job"
    left=50
    while kill -0 "$job" && [ "$left" -gt 0 ]; do
        sleep 0.2
        left=$((left - 1))
    done
    job=
} 2>/dev/null

# within SECONDS COMMAND...: run it and wait, but for no longer than it may take: what hangs in the
# kernel cannot be killed, and is not waited for. Standard output and error have to be redirected.
within() {
    ticks=$((($1 + 10) * 5))
    timeout -k 5 "$@" 3>&- &
    job=$!
    while kill -0 "$job" 2>/dev/null; do
        [ -n "$ending" ] || [ "$(asker)" = "$asker" ] || exit 143
        if [ "$ticks" -le 0 ]; then
            job=
            return 124
        fi
        ticks=$((ticks - 1))
        sleep 0.2
    done
    wait "$job"
    rc=$?
    job=
    return "$rc"
}

# put_back: what stays is told of. The name stands in a file as soon as there is a directory.
put_back() {
    [ -s "$work/place" ] || return 0
    place=$(cat "$work/place")
    rm -f -- "$work/place"
    within 60 rm -rf -- "$place" >/dev/null 2>"$work/rm" || echo "left $place" >"$work/left"
}

clean() {
    ending=yes
    [ -z "$job" ] || stop
    [ -n "$work" ] || return 0
    put_back
    rm -rf -- "$work"
}
trap clean EXIT
trap 'exit 143' HUP INT TERM PIPE

# refuse STATUS WORDS: end, as the mount does not even take a directory.
refuse() {
    case $1 in
        124 | 137) echo "$mount does not answer: $2 took more than 30 s" >&2 ;;
        *) cat "$work/why" >&2 ;;
    esac
    exit 73
}

# step WAY SIZE: fio over the files, in lengths of SIZE MiB, WAY being write or read.
step() {
    way=$1
    set -- --name=railwright --rw="$way" --directory="$place" --filename_format="data.\$jobnum" \
        --size="${2}m" --bs="${block_mib}m" --numjobs="$jobs" --iodepth="$depth" \
        --ioengine="$engine" --direct="$direct" --thread=1 --group_reporting=1 \
        --fallocate=none --exitall_on_error=1 --output-format=json
    [ -z "$seconds" ] || set -- "$@" --time_based=1 --runtime="$seconds"
    case $way in
        write) set -- "$@" --end_fsync=1 ;;
        read) set -- "$@" --allow_file_create=0 ;;
    esac
    # The probe runs at the lowest priorities, which would be measured too.
    # shellcheck disable=SC2016 # it is the inner shell that expands them
    within "$limit_s" sh -c '{ renice -n 0 -p "$$"; ionice -c 2 -n 4 -p "$$"; } >/dev/null 2>&1
        exec fio "$@"' fio "$@" >"$work/$way" 2>"$work/$way.err"
    rc=$?
    echo "$rc" >"$work/$way.rc"
    return "$rc"
}

# least: how many whole blocks, in MiB, each of the files has at least. What is not written would
# be read out of nothing, which is fast.
least() {
    within 30 stat -c %s -- "$place"/data.* >"$work/sizes" 2>"$work/read.err" || return 1
    bytes=$(sort -n "$work/sizes" | head -n 1)
    mib=$((bytes / 1048576 / block_mib * block_mib))
    [ "$mib" -gt 0 ] || { echo "not a block of each file was written" >"$work/read.err"; return 1; }
}

work=$(mktemp -d) || exit 73
# Where there is a directory of the job's name, fio takes that for its file. Source: add_job in its
# init.c.
cd "$work" || exit 73
within 30 mktemp -d -- "$directory/railwright-storage.XXXXXXXXXX" >"$work/place" 2>"$work/why" ||
    refuse "$?" "making a directory"
place=$(cat "$work/place")
# Where it has been unmounted meanwhile, another file system would be filled.
within 30 stat -c %m -- "$place" >"$work/mount" 2>"$work/why" || refuse "$?" "stat"
if [ "$(cat "$work/mount")" != "$mount" ]; then
    echo "$directory is on $(cat "$work/mount"), not on $mount" >&2
    exit 73
fi

if step write "$file_mib"; then
    if least; then
        step read "$mib"
    else
        : >"$work/read"
        echo 1 >"$work/read.rc"
    fi
fi
put_back
tell storage write write.err read read.err left
true
