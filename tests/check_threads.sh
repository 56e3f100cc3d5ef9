#!/bin/sh
# check_threads.sh TRANSLATE: 50 steps of training give the same weights, bit for bit, with 1, 2, 3 and 4 threads.
set -eu
translate=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for threads in 1 2 3 4; do
    "$translate" --threads $threads --steps 50 --seed 5 --train 6400 --validation 100 --test 10 --dropout 0.2 --layers 2 \
        --out "$folder/$threads" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    cmp "$folder/1/model.safetensors" "$folder/$threads/model.safetensors"
    sha256sum "$folder/$threads/model.safetensors" | sed "s|  .*| with $threads threads|"
done
