#!/bin/sh
# threads.sh BUILD: the suite under ThreadSanitizer, with threads of its own and two of OpenMP's, which threads_calls.c
# tells the sanitizer of. RAPT_TSAN_BUILD: where it is built, BUILD-races unless given. RAPT_TSAN_TESTS: names of tests,
# all unless given.
set -eu
folder=${RAPT_TSAN_BUILD:-${1%/}-races}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# Tests with an allocator of their own stand before the sanitizer's, which must be the first.
left_out='error_memory|error_paths|every_constructor|no_memory|nn_memory|optim_memory|ring|safetensors_memory'
if [ ! -f "$folder/build.ninja" ]; then
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    gcc -O1 -c "$root/tests/torture/threads_calls.c" -o "$folder/threads_calls.o"
    CC=gcc CXX=g++ meson setup "$folder" "$root" -Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false \
        -Dexamples=false -Dtest_runner=plain -Dc_link_args="$folder/threads_calls.o" >&2
fi
meson compile -C "$folder" >&2
tests=${RAPT_TSAN_TESTS:-$(meson test -C "$folder" --no-rebuild --no-suite docs --list | sed -n 's|^rapt.* / ||p' |
    grep -vxE "$left_out")}
good=yes
# shellcheck disable=SC2086 # a list of words
OMP_NUM_THREADS=2 meson test -C "$folder" --no-rebuild --timeout-multiplier 20 --num-processes 1 $tests >&2 || good=''
log=$folder/meson-logs/testlog.txt
passed=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$log")
skipped=$(sed -n 's/^Skipped: *\([0-9]*\).*/\1/p' "$log")
races=$(grep -c '^WARNING: ThreadSanitizer' "$log") || true
result='no race'
[ -n "$good" ] && [ "$races" -eq 0 ] || result="$races RACES"
# shellcheck disable=SC2086
set -- $tests
echo "| threads | $# tests under ThreadSanitizer: $passed passed, $skipped skipped; left out: $(echo "$left_out" | tr '|' ' ') | $result |"
[ "$result" = 'no race' ]
