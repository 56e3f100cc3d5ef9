#!/bin/sh
# check_resume.sh TRANSLATE [KILLS]: a run that checkpoints each step, is killed again and again at random moments, and
# resumed, ends with the weights of a run that nobody touched.
set -eu
translate=$1
kills=${2:-6}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() { # exec (this shell becomes the program) or command, folder, more options...
    how=$1
    out=$2
    shift 2
    "$how" "$translate" --threads 1 --seed 3 --train 1280 --validation 100 --test 20 --epochs 60 --embedding 16 --hidden 24 --layers 2 \
        --dropout 0.1 --checkpoint-every 1 --out "$folder/$out" "$@" >"$folder/$out.log" 2>&1
}

run command whole || { cat "$folder/whole.log"; exit 1; }
done=0
while [ "$done" -lt "$kills" ]; do
    resume=''
    [ ! -e "$folder/killed/checkpoint.safetensors" ] || resume=--resume
    # shellcheck disable=SC2086 # a word or none
    run exec killed $resume &
    tries=0 # a slow machine may need a while for its first checkpoint
    while [ ! -e "$folder/killed/checkpoint.safetensors" ] && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    sleep "0.$(od -An -N2 -tu2 /dev/urandom | awk '{printf "%03d", 20 + $1 % 230}')"
    kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    done=$((done + 1))
done
run command killed --resume || { cat "$folder/killed.log"; exit 1; }
cmp "$folder/whole/model.safetensors" "$folder/killed/model.safetensors"
echo "$kills kills; $(grep -c . "$folder/killed.log") lines in the last log; the weights are equal"
