#!/bin/sh
# Runs a fuzzer from its seeds, and from those that a program writes, so many times; what it finds on its own is gone
# with its folder, but for what fails.
# run_fuzzer.sh FUZZER RUNS DICTIONARY SEEDS [PROGRAM]; RAPT_SECONDS: the longest that it runs (0: no limit);
# RAPT_BYTES: the longest input (4096)
set -eu
fuzzer=$1 runs=$2 dictionary=$3 seeds=$4 program=${5-}
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
cp "$seeds"/* "$corpus"
[ -z "$program" ] || "$program" "$corpus"
mkdir "$corpus/found"
# AddressSanitizer would fill each block, and keep 256 MiB of freed ones, which takes longer than reading most inputs.
ASAN_OPTIONS="${ASAN_OPTIONS:-}:max_malloc_fill_size=64:quarantine_size_mb=16" OMP_NUM_THREADS=1 \
    "$fuzzer" -runs="$runs" -max_total_time="${RAPT_SECONDS:-0}" -max_len="${RAPT_BYTES:-4096}" -seed=1 \
    -rss_limit_mb=1024 -dict="$dictionary" "$corpus/found" "$corpus"
