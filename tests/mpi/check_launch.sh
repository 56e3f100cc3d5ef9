#!/bin/sh
# Tests of ranks are skipped where there is no mpirun, or it refuses root; where it fails for another reason, so do they.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) && export work
trap 'rm -rf "$work"' EXIT

expect() { # status of the tests, and what mpirun does, unless there is none
    rm -f "$work/bin/mpirun"
    if [ $# -gt 1 ]; then
        printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/mpirun"
        chmod +x "$work/bin/mpirun"
    fi
    status=0
    PATH="$work/bin" /bin/sh -c ". '$folder/launch.sh'" >"$work/said" 2>&1 || status=$?
    [ "$status" -eq "$1" ] || { cat "$work/said" >&2 && echo "check_launch: status $status, $1 expected: ${2-none}" >&2 && exit 1; }
}

mkdir "$work/bin"
ln -s "$(command -v timeout)" "$work/bin/timeout"
expect 77
expect 0 'exit 0'
expect 77 'echo "mpirun has detected an attempt to run as root." >&2; exit 1'
expect 1 'echo "a library that is missing" >&2; exit 127'
# shellcheck disable=SC2016 # its own number
expect 1 'kill -9 $$'
