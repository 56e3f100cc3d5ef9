#!/bin/sh
# large.sh BUILD: ops on tensors of more than 2³¹ elements. Takes up to 18 GB of memory, and 2.2 GB of disk in the folder
# for temporary files. RAPT_CASES: which ones.
set -eu
build=$(CDPATH='' cd -- "${1:?usage: large.sh BUILD}" && pwd)
least=19
available=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "$available" -lt "$least" ]; then
    echo "| large | tensors of more than 2³¹ elements | not tried: $available GB of memory where $least are needed |"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0
# shellcheck disable=SC2086 # a list of names
(cd "$folder" && "$build/tests/large" ${RAPT_CASES:-}) >"$folder/said" || bad=1
awk -F '\t' '{ printf "| large | %s, %s elements | %s |\n", $1, $2, $3 == "" ? "right" : "WRONG: " $3 }' "$folder/said"
exit "$bad"
