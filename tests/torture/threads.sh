#!/bin/sh
# threads.sh BUILD: the suite under ThreadSanitizer, with threads of its own and two of OpenMP's, which threads_calls.c
# tells the sanitizer of. RAPT_TSAN_BUILD: where it is built, BUILD-races unless given. RAPT_TSAN_TESTS: names of tests,
# all unless given.
set -eu
folder=${RAPT_TSAN_BUILD:-${1%/}-races}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
if [ ! -f "$folder/build.ninja" ]; then
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    gcc -O1 -c "$root/tests/torture/threads_calls.c" -o "$folder/threads_calls.o"
    CC=gcc CXX=g++ meson setup "$folder" "$root" -Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false \
        -Dexamples=false -Dtest_runner=plain -Dc_link_args="$folder/threads_calls.o" >&2
fi
meson compile -C "$folder" >&2
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive # what spins under the sanitizer takes a processor from what works
# shellcheck disable=SC2086 # a list of words
"$root/tests/sanitized_suite.sh" threads ThreadSanitizer "$folder" 'no race' ${RAPT_TSAN_TESTS:-}
