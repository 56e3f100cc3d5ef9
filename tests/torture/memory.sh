#!/bin/sh
# Out of memory: the example programs with one request for memory failing, or all from one on, wherever it comes from;
# what is lost is told by LeakSanitizer. Usage: memory.sh BUILD
# RAPT_EVERY: only each so many-th request fails (1). RAPT_EVERY_PICTURE: the same of programs that draw, where cairo
# and fontconfig make tens of thousands (97). RAPT_PROGRAMS: which programs.
set -eu
build=${1:?usage: memory.sh BUILD}
every=${RAPT_EVERY:-1} every_picture=${RAPT_EVERY_PICTURE:-97}
all='loop layer own_scoring own_modification gpt symmetric classify gradient_penalty translate transformer translation'
programs=${RAPT_PROGRAMS:-$all kernel_regression}
leak_checker=$(cc -print-file-name=liblsan.so)
[ -e "$leak_checker" ] || { echo 'memory.sh: no LeakSanitizer (liblsan.so) beside the compiler' >&2 && exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0

# What fontconfig and its like lose without memory is theirs.
cat >"$folder/suppressions" <<'END'
leak:libfontconfig
leak:libcairo
leak:libfreetype
leak:libexpat
END
export LSAN_OPTIONS="suppressions=$folder/suppressions:print_suppressions=0"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"

try() { # name, every, options of failing_allocations and the program with its arguments
    name=$1 each=$2
    shift 2
    case " $programs " in *" $name "*) ;; *) return 0 ;; esac
    result=good
    "$build/tests/preload/failing_allocations" --preload "$build/tests/preload/libfailing_malloc.so" --leaks "$leak_checker" \
        --every "$each" "$@" >"$folder/said" || result=bad
    [ "$result" = good ] || bad=1
    cat "$folder/said" >&2
    figures=$(tail -n 1 "$folder/said" | sed 's/^[^:]*: //')
    echo "| memory | $name, each $each. request fails, once and from then on | $figures |"
}

translate() { # name, options...
    name=$1
    shift
    try "$name" "$every_picture" "$build/examples/translate/translate" --train 64 --validation 16 --test 4 --epochs 1 \
        --hidden 8 --steps 2 --batch-size 8 --out . "$@"
}

try loop "$every" "$build/examples/loop"
try layer "$every" "$build/examples/layer"
try own_scoring "$every" "$build/examples/own_scoring"
try own_modification "$every" "$build/examples/own_modification"
try gpt "$every" --timed ' bytes in ' "$build/examples/gpt" --steps 3 --hidden 16 --layers 1 --heads 2 --batch-size 2 \
    --context 8 --sample 4 --save gpt.safetensors --log gpt.csv
try symmetric "$every" "$build/examples/symmetric"
try classify "$every" "$build/examples/classify" --epochs 1 --hidden 16 --layers 1 --batch-size 500 \
    --save classify.safetensors
try gradient_penalty "$every" "$build/examples/gradient_penalty"
translate translate --embedding 8 --page --log losses.jsonl
translate transformer --model transformer --heads 2 --feed-forward 8
mkdir "$folder/trained"
"$build/examples/translate/translate" --train 64 --validation 16 --test 4 --epochs 1 --embedding 8 --hidden 8 \
    --steps 2 --batch-size 8 --out "$folder/trained" >"$folder/said" 2>&1
try translation "$every" --from "$folder/trained" "$build/examples/translate/translate" --translate 'seven' --beams 3 \
    --out .
try kernel_regression "$((every_picture * 10))" "$build/examples/kernel_regression" --out .
exit "$bad"
