#!/bin/sh
# kills.sh BUILD: trainings that checkpoint each step are killed at random moments and resumed (../check_resume.sh).
# RAPT_KILLS: kills of each example, 500 unless given, in rounds of 50; RAPT_SEED: the first round's seed.
set -eu
build=$1
kills=${RAPT_KILLS:-500}
seed=${RAPT_SEED:-$(date +%s)}
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

kill_example() { # name, program
    for round in $(seq "$seed" $((seed + (kills + 49) / 50 - 1))); do
        "$here/check_resume.sh" "$1" "$2" 50 "$round" >"$folder/said" || { cat "$folder/said" >&2 && return 1; }
        tee -a "$folder/$1" <"$folder/said" >&2
    done
}

bad=0
for example in translate/translate gpt; do
    name=${example##*/}
    result='the weights are the same'
    : >"$folder/$name"
    kill_example "$name" "$build/examples/$example" || { result=FAILS && bad=1; }
    tried=$(awk '{ k += $3; r += $6; f += $8; w += $13 }
        END { printf "%d kills in %d runs, %d before the first checkpoint, %d while a file was written", k, r, f, w }' "$folder/$name")
    echo "| kills | $name: $tried (seeds from $seed on) | $result |"
done
exit $bad
