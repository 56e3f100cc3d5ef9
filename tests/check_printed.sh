#!/bin/sh
# A file of the tree is what a program prints: check_printed.sh PROGRAM FILE [--write]
set -eu
program=${1:?usage: check_printed.sh PROGRAM FILE [--write]}
file=${2:?usage: check_printed.sh PROGRAM FILE [--write]}
if [ "${3:-}" = --write ]; then
    "$program" >"$file"
    exit
fi
given=$(mktemp)
trap 'rm -f "$given"' EXIT
"$program" >"$given" || { status=$? && cat "$given" && exit $status; } # 77 at a level that the processor lacks
if ! diff -u "$file" "$given"; then
    echo "check_printed: if that is as it should be, tests/check_printed.sh $program $file --write" >&2
    exit 1
fi
