#!/bin/sh
# sanitized_suite.sh PART SANITIZER BUILD CLEAN [TEST...]: runs the tests of a build with that sanitizer, one at a time,
# and prints a row of the table of ./run torture, whose result is CLEAN where there was no report. TEST: these alone.
set -eu
part=$1 sanitizer=$2 folder=$3 clean=$4
shift 4
# Tests with an allocator of their own stand before the sanitizer's, which must be the first.
left_out='error_memory|error_paths|every_constructor|no_memory|nn_memory|optim_memory|ring|safetensors_memory'
# shellcheck disable=SC2046 # a list of words
[ $# -gt 0 ] || set -- $(meson test -C "$folder" --no-rebuild --no-suite docs --list | sed -n 's|^rapt.* / ||p' |
    grep -vxE "$left_out")
good=yes
meson test -C "$folder" --no-rebuild --timeout-multiplier 20 --num-processes 1 "$@" >&2 || good=''
log=$folder/meson-logs/testlog.txt
passed=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$log")
skipped=$(sed -n 's/^Skipped: *\([0-9]*\).*/\1/p' "$log")
reports=$(grep -cE "^(==[0-9]*==)?WARNING: $sanitizer:" "$log") || true # not "… failed to allocate", of tests that ask for TB
result=$clean
[ -n "$good" ] && [ "$reports" -eq 0 ] || result="$reports REPORTS"
echo "| $part | $# tests under $sanitizer: $passed passed, $skipped skipped; left out: $(echo "$left_out" | tr '|' ' ') | $result |"
[ "$result" = "$clean" ]
