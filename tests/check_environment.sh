#!/bin/sh
# What the environment's settings do to a program: those that are set, those that are empty or off, and those that mean
# nothing. check_environment.sh PROGRAM LEVEL, the lowest one that the library has
set -eu
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
lowest=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

run() { env "$@" "$program" > out 2> err || { echo "$*: status $?"; exit 1; }; }
fail() {
    echo "$*; on stdout and stderr:"
    cat out err
    exit 1
}
expect() { # FILE REGEX SETTING...
    file=$1 regex=$2
    shift 2
    run "$@"
    grep -q "$regex" "$file" || fail "$*: no line '$regex' of $file"
}
expect_silence() {
    run "$@"
    [ ! -s err ] || fail "$*: it says something"
}

for off in '' 0; do
    expect_silence RAPT_TRACE=$off RAPT_HUNT=$off RAPT_PROFILE=$off RAPT_VERBOSE=$off
    expect out '^NaN$' RAPT_HUNT=$off
done
expect_silence RAPT_LEVEL= RAPT_MATMUL= RAPT_DEBUG=

expect err '^forward  log: float32 \[2\] -> float32 \[2\]$' RAPT_TRACE=1
expect out '^log: .*nan' RAPT_HUNT=1
expect err '^rapt [0-9.]*: 1 thread, kernels for ' RAPT_VERBOSE=1 OMP_NUM_THREADS=1
expect out ': \(3 threads\|1 thread\), ' OMP_NUM_THREADS=3 # one without OpenMP

expect out "kernels for \(x86-64-\)\?$lowest," RAPT_LEVEL="$lowest"
[ ! -s err ] || fail "RAPT_LEVEL=$lowest: it says something"
level=$(sed -n 's/.*kernels for \([^,]*\),.*/\1/p' out)
expect out "kernels for $level," RAPT_LEVEL="$level"
[ ! -s err ] || fail "RAPT_LEVEL=$level: it says something"
expect err 'RAPT_LEVEL=v0 is none of the levels (baseline, v3, v4, amx), or not of this library' RAPT_LEVEL=v0
expect err 'RAPT_MATMUL=abacus' RAPT_MATMUL=abacus

# One report, though a child ends as the program does.
run RAPT_PROFILE=1
[ "$(grep -c '^outside ' err)" = 1 ] || fail "RAPT_PROFILE=1: not one report"
run RAPT_PROFILE=trace.json
grep -q '"name": "log", "cat": "forward"' trace.json || fail "RAPT_PROFILE=trace.json: no forward"
grep -q '"name": "log", "cat": "backward"' trace.json || fail "RAPT_PROFILE=trace.json: no backward"
tail -1 trace.json | grep -q '^\]}$' || fail "RAPT_PROFILE=trace.json: no end"
for wrong in yes file .json; do
    expect err "RAPT_PROFILE is '$wrong'; 1, or the name of a file that ends in .json, expected" RAPT_PROFILE=$wrong
done
expect err "'/nowhere/at/all.json' cannot be written" RAPT_PROFILE=/nowhere/at/all.json
expect_silence RAPT_PROFILE=yes RAPT_DEBUG=0
if [ -e /dev/full ]; then
    ln -s /dev/full full.json
    expect err 'could not be written whole' RAPT_PROFILE=full.json
    expect err 'could not be written whole' RAPT_PROFILE=full.json RAPT_HUNT=1 # whose error stands
fi
