#!/bin/sh
# threads.sh BUILD: the suite under ThreadSanitizer, with one OpenMP thread, since the sanitizer does not know how
# OpenMP's threads wait for each other: the threads are the tests' own. RAPT_TSAN_BUILD: where it is built,
# BUILD-thread unless given. RAPT_TSAN_TESTS: names of tests, all unless given.
set -eu
folder=${RAPT_TSAN_BUILD:-${1%/}-thread}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# Tests with an allocator of their own stand before the sanitizer's, which must be the first; and Python's process is
# not the sanitizer's.
left_out='error_memory|error_paths|every_constructor|no_memory|nn_memory|optim_memory|safetensors_memory|ring|python'
[ -f "$folder/build.ninja" ] ||
    meson setup "$folder" "$root" -Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false -Dexamples=false \
        -Dtest_runner=plain >&2
meson compile -C "$folder" >&2
tests=${RAPT_TSAN_TESTS:-$(meson test -C "$folder" --no-rebuild --list | sed -n 's|^rapt.* / ||p' |
    grep -vxE "$left_out")}
good=yes
# shellcheck disable=SC2086 # a list of words
OMP_NUM_THREADS=1 meson test -C "$folder" --no-rebuild --timeout-multiplier 20 --num-processes 1 $tests >&2 || good=''
log=$folder/meson-logs/testlog.txt
passed=$(sed -n 's/^Ok: *//p' "$log")
skipped=$(sed -n 's/^Skipped: *//p' "$log")
races=$(grep -c '^WARNING: ThreadSanitizer' "$log") || true
result='no race'
[ -n "$good" ] && [ "$races" -eq 0 ] || result="$races RACES"
# shellcheck disable=SC2086
set -- $tests
echo "| threads | $# tests under ThreadSanitizer: $passed passed, $skipped skipped; left out: $(echo "$left_out" | tr '|' ' ') | $result |"
[ "$result" = 'no race' ]
