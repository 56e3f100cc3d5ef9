#!/bin/sh
# ranks.sh BUILD: trainings by ranks of MPI, of which one is killed at a random moment again and again, go on with other
# numbers of ranks (../mpi/check_trained.sh). RAPT_KILLS: kills of each example, 25 unless given, in rounds of 5;
# RAPT_SEED: the first round's seed.
set -eu
build=$1
kills=${RAPT_KILLS:-25}
seed=${RAPT_SEED:-$(date +%s)}
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
said=$(mktemp)
trap 'rm -f "$said"' EXIT

bad=0
for example in translate/translate gpt; do
    name=${example##*/}
    result='the weights are the same'
    : >"$said"
    for round in $(seq "$seed" $((seed + (kills + 4) / 5 - 1))); do
        "$here/mpi/check_trained.sh" kills "$name" "$build/examples/$example" 5 "$round" >>"$said" ||
            { cat "$said" >&2 && result=FAILS && bad=1 && break; }
    done
    tried=$(awk '{ k += $2; r += $5; if ($(NF - 1) > t) t = $(NF - 1) }
        END { printf "%d kills in %d runs, the longest end after %.1f s", k, r, t / 1000 }' "$said")
    echo "| ranks | $name: $tried (seeds from $seed on) | $result |"
done
exit $bad
