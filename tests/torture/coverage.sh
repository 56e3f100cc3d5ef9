#!/bin/sh
# coverage.sh BUILD: the branches of the library that the tests take, those with failing allocations included, as gcc
# counts them: each of && and || and each case is two or more. The library and its tests are compiled once more, in
# build-coverage, with one instruction-set level. A branch of an inline function counts once in each file that has it,
# not once for each place that it would be inlined at, also of one that always is; children that end by _exit count, too.
# RAPT_TESTS: the tests that run, all but those below unless given. RAPT_LEAST: fails where a folder has fewer percent,
# 95 unless given, of those that coverage_exceptions does not list. The branches that were not taken are listed in
# build-coverage/coverage.txt.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build="$root/build-coverage"
cd "$root"
./run need gcovr >&2
[ -e "$build/build.ninja" ] || meson setup "$build" -Dbuildtype=plain -Db_coverage=true -Dc_link_args=--coverage \
    -Dlevels=baseline -Dexamples=false -Dpictures=disabled -Dopenblas=disabled -Ddefault_library=static \
    "-Dc_args=-O1 -fno-early-inlining -w -include $root/tests/torture/coverage.h" >&2
meson compile -C "$build" >&2
# Not those that read the sources, run other builds, or need the library optimised.
tests=${RAPT_TESTS:-$(meson test -C "$build" --no-rebuild --list 2>/dev/null | sed 's/.*[:/] *//' |
    grep -vE '^(abi|docs|errors_page|guide|flags|cplusplus|handles|random_programs|parity|bench|fuzz)')}
find "$build" -name '*.gcda' -delete
# shellcheck disable=SC2086 # a list of words
OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} meson test -C "$build" --no-rebuild -t 20 $tests >&2 ||
    echo 'coverage: some tests failed; what they reached counts' >&2
# Threads that count at once lose some, and a few counts become negative; gcovr passes those over.
gcovr --gcov-ignore-parse-errors --root . --object-directory "$build" --filter tensor/ --filter autograd/ --filter nn/ \
    --filter optim/ --json "$build/coverage.json" "$build/tensor" "$build/autograd" "$build/nn" "$build/optim" >&2
gcovr --root . -a "$build/coverage.json" --branches -o "$build/coverage.txt"
python3 tests/torture/coverage.py "$build/coverage.json" tests/torture/coverage_exceptions "${RAPT_LEAST:-95}"
