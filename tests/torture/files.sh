#!/bin/sh
# Files: all kinds that are written and read, with each open, read, write, sync, rename and close failing in turn, by EIO,
# ENOSPC, EINTR, or with a part of what was asked for. Usage: files.sh BUILD. RAPT_EVERY: only each so many-th call (1).
set -eu
build=${1:?usage: files.sh BUILD}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0
kinds=$build/tests/file_kinds
export OMP_NUM_THREADS=1
(cd "$folder" && "$kinds" save 1 && rm -rf events)

for way in 'save 2' 'load 1'; do
    # shellcheck disable=SC2086 # two words
    "$build/tests/failing_calls" --every "${RAPT_EVERY:-1}" "$folder" "$kinds" $way >"$folder.said" || bad=$?
    cat "$folder.said" >&2
    [ "$bad" -ne 77 ] || exit 77
    figures=$(tail -n 1 "$folder.said" | sed 's/^[^:]*: //')
    rm -f "$folder.said"
    echo "| files | ${way% *}: EIO, ENOSPC, EINTR and a part, at each ${RAPT_EVERY:-1}. call | $figures |"
done
exit "$bad"
