#!/bin/sh
# The C samples in README.md are whole programs that compile without a warning, run and succeed:
# check_readme.sh BUILD_DIRECTORY
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${1:?usage: check_readme.sh BUILD_DIRECTORY}
build=$(CDPATH='' cd -- "$build" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -v work="$work" '
    /^```c$/ { sample = work "/sample" ++count ".c"; next }
    /^```$/ { sample = "" }
    sample { print > sample }' "$root/README.md"

set --
for folder in "$root"/include "$root"/*/include; do
    set -- "$@" "-I$folder"
done

count=0
for sample in "$work"/sample*.c; do
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror "$@" "$sample" -L"$build" -lrapt -lm -o "$work/sample"
    LD_LIBRARY_PATH=$build "$work/sample" || { echo "check_readme: ${sample##*/} failed" >&2 && exit 1; }
    count=$((count + 1))
done
echo "check_readme: $count samples compile and run"
[ "$count" -ge 2 ]
