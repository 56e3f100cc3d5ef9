#!/bin/sh
# unset.sh BUILD: the suite under MemorySanitizer (clang), which sees decisions made by memory that nobody has set. All
# code but the C library's must be compiled for it: so there is no OpenMP, OpenBLAS, MPI, cairo or C++, and the plain
# runner runs the tests. RAPT_MSAN_BUILD: where it is built, BUILD-unset unless given. RAPT_MSAN_TESTS: names of tests,
# all unless given.
set -eu
folder=${RAPT_MSAN_BUILD:-${1%/}-unset}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
command -v clang >/dev/null || { echo 'unset.sh: no clang' >&2 && exit 77; }
# Tests with an allocator of their own stand before the sanitizer's, which must be the first.
left_out='error_memory|error_paths|every_constructor|no_memory|nn_memory|optim_memory|ring|safetensors_memory'
if [ ! -f "$folder/build.ninja" ]; then
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    clang -O1 -c "$root/tests/torture/unset_calls.c" -o "$folder/unset_calls.o"
    CC=clang CXX=false meson setup "$folder" "$root" -Dbuildtype=debugoptimized -Db_sanitize=memory -Db_lundef=false \
        -Dopenmp=disabled -Dopenblas=disabled -Dmpi=disabled -Dpictures=disabled -Dtranslator=disabled \
        -Dtest_runner=plain -Dlevels=baseline -Dc_link_args="$folder/unset_calls.o" >&2
fi
meson compile -C "$folder" >&2
tests=${RAPT_MSAN_TESTS:-$(meson test -C "$folder" --no-rebuild --no-suite docs --list | sed -n 's|^rapt.* / ||p' |
    grep -vxE "$left_out")}
good=yes
# shellcheck disable=SC2086 # a list of words
meson test -C "$folder" --no-rebuild --timeout-multiplier 20 --num-processes 1 $tests >&2 || good=''
log=$folder/meson-logs/testlog.txt
passed=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$log")
skipped=$(sed -n 's/^Skipped: *\([0-9]*\).*/\1/p' "$log")
found=$(grep -c '^==[0-9]*==WARNING: MemorySanitizer' "$log") || true
result='nothing unset decides'
[ -n "$good" ] && [ "$found" -eq 0 ] || result="$found REPORTS"
# shellcheck disable=SC2086
set -- $tests
echo "| unset | $# tests under MemorySanitizer: $passed passed, $skipped skipped; left out: $(echo "$left_out" | tr '|' ' ') | $result |"
[ "$result" = 'nothing unset decides' ]
