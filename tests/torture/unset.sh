#!/bin/sh
# unset.sh BUILD: the suite under MemorySanitizer (clang), which sees decisions made by memory that nobody has set. All
# code but the C library's must be compiled for it: so there is no OpenMP, OpenBLAS, MPI, cairo or C++, and the plain
# runner runs the tests. RAPT_MSAN_BUILD: where it is built, BUILD-unset unless given. RAPT_MSAN_TESTS: names of tests,
# all unless given.
set -eu
folder=${RAPT_MSAN_BUILD:-${1%/}-unset}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
command -v clang >/dev/null || { echo 'unset.sh: no clang' >&2 && exit 77; }
if [ ! -f "$folder/build.ninja" ]; then
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    clang -O1 -c "$root/tests/torture/unset_calls.c" -o "$folder/unset_calls.o"
    CC=clang CXX=false meson setup "$folder" "$root" -Dbuildtype=debugoptimized -Db_sanitize=memory -Db_lundef=false \
        -Dopenmp=disabled -Dopenblas=disabled -Dmpi=disabled -Dpictures=disabled -Dtranslator=disabled \
        -Dtest_runner=plain -Dlevels=baseline -Dc_link_args="$folder/unset_calls.o" >&2
fi
meson compile -C "$folder" >&2
# shellcheck disable=SC2086 # a list of words
"$root/tests/sanitized_suite.sh" unset MemorySanitizer "$folder" 'nothing unset decides' ${RAPT_MSAN_TESTS:-}
