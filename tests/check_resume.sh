#!/bin/sh
# check_resume.sh TRANSLATE [KILLS]: a run that checkpoints each step, is killed again and again at random moments, and
# resumed, ends with the weights of a run that nobody touched.
set -eu
translate=$1
kills=${2:-6}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() { # folder, more options...
    out=$1
    shift
    "$translate" --threads 1 --seed 3 --train 1280 --validation 100 --test 20 --epochs 60 --embedding 16 --hidden 24 --layers 2 \
        --dropout 0.1 --checkpoint-every 1 --out "$folder/$out" "$@" >"$folder/$out.log" 2>&1
}

run whole || { cat "$folder/whole.log"; exit 1; }
done=0
while [ "$done" -lt "$kills" ]; do
    resume=''
    [ ! -e "$folder/killed/checkpoint.safetensors" ] || resume=--resume
    # shellcheck disable=SC2086 # a word or none
    run killed $resume &
    sleep "0.$(od -An -N2 -tu2 /dev/urandom | awk '{printf "%03d", 20 + $1 % 230}')"
    # The shell's child is the subshell that runs the program.
    pkill -KILL -P $! 2>/dev/null || kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    done=$((done + 1))
done
run killed --resume || { cat "$folder/killed.log"; exit 1; }
cmp "$folder/whole/model.safetensors" "$folder/killed/model.safetensors"
echo "$kills kills; $(grep -c . "$folder/killed.log") lines in the last log; the weights are equal"
