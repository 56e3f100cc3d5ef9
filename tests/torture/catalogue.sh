#!/bin/sh
# catalogue.sh BUILD: all of the catalogue (./run gradcheck), at each instruction-set level; half a minute each. RAPT_LEVELS
# are baseline v3 v4 amx unless given; one that the processor lacks is skipped.
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
for level in ${RAPT_LEVELS:-baseline v3 v4 amx}; do
    echo "catalogue: $level" >&2
    status=0
    RAPT_LEVEL=$level OMP_NUM_THREADS=1 "$build/tests/catalogue/catalogue" >"$work/table" || status=$?
    if [ $status -eq 77 ]; then cat "$work/table" >&2 && continue; fi
    [ $status -eq 0 ] || bad=1
    echo "| catalogue | ops, layers and normalisers in every way, $level | $(tail -n 1 "$work/table") |"
done
exit $bad
