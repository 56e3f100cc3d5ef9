#!/bin/sh
# valgrind.sh BUILD: example programs and ops of the catalogue under valgrind's memcheck, which sees what reads memory that
# nobody set, also in libraries that are not compiled for it. It knows AVX2 but not AVX-512: the level is v3.
# RAPT_PROGRAMS: which programs; RAPT_NAMES: which ops and layers.
set -eu
build=$(CDPATH='' cd -- "${1:?usage: valgrind.sh BUILD}" && pwd)
programs=${RAPT_PROGRAMS:-loop layer own_scoring own_modification scoring gradient_penalty gpt translate catalogue}
names=${RAPT_NAMES:-add exp gelu sum max argmax sort matmul concat gather scatter_add softmax layer_normalize cross_entropy
conv1d linear lstm multi_head_attention}
command -v valgrind >/dev/null || { echo 'valgrind.sh: no valgrind' >&2 && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export RAPT_LEVEL=v3 OMP_NUM_THREADS=1
bad=0

try() { # name, program and arguments
    name=$1
    shift
    case " $programs " in *" $name "*) ;; *) return 0 ;; esac
    result='no error'
    (cd "$folder" && valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
        --log-file="$folder/errors" "$@") >"$folder/said" 2>&1 || result="status $?"
    errors=$(grep -c '^==[0-9]*== [A-Z]' "$folder/errors") || true
    [ "$errors" -eq 0 ] || result="$errors ERRORS"
    [ "$result" = 'no error' ] || { bad=1 && cat "$folder/errors" >&2 && tail -n 20 "$folder/said" >&2; }
    echo "| valgrind | $name | $result |"
}

for name in loop layer own_scoring own_modification scoring gradient_penalty; do try $name "$build/examples/$name"; done
try gpt "$build/examples/gpt" --steps 2 --hidden 16 --layers 1 --heads 2 --batch-size 2 --context 8 --sample 4 \
    --save gpt.safetensors --log gpt.csv
try translate "$build/examples/translate/translate" --train 32 --validation 8 --test 2 --epochs 1 --embedding 8 \
    --hidden 8 --steps 2 --batch-size 8 --out .
# shellcheck disable=SC2086 # a list of words
try catalogue "$build/tests/catalogue/catalogue" --brief $names
exit "$bad"
