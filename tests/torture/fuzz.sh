#!/bin/sh
# Fuzzing: whatever reads a file, a command line or a text, by libFuzzer in a build of its own with clang, under
# AddressSanitizer and UndefinedBehaviorSanitizer. Usage: fuzz.sh BUILD; the fuzzers are built in BUILD-fuzz.
# RAPT_RUNS: executions of each (15000000); RAPT_SECONDS: the longest that one runs (no limit); RAPT_FUZZERS: which ones;
# RAPT_BYTES: the longest input (512, of which there are many more in a second than of 4096).
set -eu
build=${1:?usage: fuzz.sh BUILD}
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
fuzz_build=${build%/}-fuzz
[ -e "$fuzz_build/build.ninja" ] || CC=clang CXX=clang++ meson setup "$fuzz_build" "$here/.." -Dpictures=disabled >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0

for name in ${RAPT_FUZZERS:-gpt gpt2 idx metrics npy safetensors saved text}; do
    seeds=''
    [ "$name" != safetensors ] || seeds=$fuzz_build/tests/fuzz/seeds_of_headers
    ninja -C "$fuzz_build" "tests/fuzz/fuzz_$name" ${seeds:+tests/fuzz/seeds_of_headers} >&2
    result='no finding'
    RAPT_BYTES=${RAPT_BYTES:-512} RAPT_SECONDS=${RAPT_SECONDS:-0} "$here/fuzz/run_fuzzer.sh" "$fuzz_build/tests/fuzz/fuzz_$name" \
        "${RAPT_RUNS:-15000000}" "$here/fuzz/$name.dict" "$here/fuzz/seeds_$name" ${seeds:+"$seeds"} \
        >"$folder/said" 2>&1 || { result='FINDING, see above' && bad=1 && tail -n 60 "$folder/said" >&2; }
    done_runs=$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 executions in \2 s/p' "$folder/said")
    echo "| fuzz | $name: ${done_runs:-stopped} | $result |"
done
exit "$bad"
