#!/bin/sh
# same_bits.sh BUILD: one hash of the weights of each example's model (translate with both architectures, gpt, classify)
# after some steps, at 1 to RAPT_THREADS threads (8 unless given). RAPT_PIECES are
# alone; region, in a parallel region of OpenMP; child, forked before main;
# pthread openmp serial: beside this build of OpenBLAS (Debian's package, fetched and unpacked into a folder of its own;
#   without a network it is left out), and with products left to it: one hash at any number of threads. The serial build
#   is refused with a sentence, since it is not made for several threads;
# probe: RAPT_CALLS calls (100,000) from inside a region, and models trained in regions and in children;
# levels: how far instruction-set levels and compilers are from each other; clang's library is that of BUILD-clang, which
#   is made if there is a clang.
set -eu
build=$1
most=${RAPT_THREADS:-8}
calls=${RAPT_CALLS:-100000}
pieces=${RAPT_PIECES:-alone region child pthread openmp serial probe levels}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
export OMP_WAIT_POLICY=passive # there are more threads than processors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

row() { echo "| same_bits | $1 | $2 |"; }

hash_of() { # example, threads: trains it and prints the hash of its weights
    example=$1
    threads=$2
    case $example in
    translator | transformer)
        architecture=$example
        [ "$example" = transformer ] || architecture=recurrent
        set -- "$build/examples/translate/translate" --model "$architecture" --steps 6 --train 2560 \
            --validation 128 --test 2 --dropout 0.2 --layers 2 --out "$work/out"
        file=$work/out/model.safetensors
        ;;
    gpt)
        set -- "$build/examples/gpt" --steps 12 --batch-size 16 --sample 2 --dropout 0.1 --save "$work/weights"
        file=$work/weights
        ;;
    classify)
        set -- "$build/examples/classify" --epochs 1 --batch-size 500 --hidden 32 --dropout 0.1 --save "$work/weights"
        file=$work/weights
        ;;
    esac
    rm -f "$file"
    timeout 300 "$@" --threads "$threads" --seed 5 >"$work/log" 2>&1 || { cat "$work/log" >&2 && echo "failed" && return; }
    sha256sum <"$file" | cut -c1-16
}

examples='translator transformer gpt classify'

# Each example at each number of threads gives what the file says, and it what it lacks.
compare() { # what, file of hashes
    what=$1
    expected=$2
    result='one hash each'
    for example in $examples; do
        for threads in $(seq "$most"); do
            hash=$(hash_of "$example" "$threads")
            grep -q "^$example " "$expected" || echo "$example $hash" >>"$expected"
            echo "same_bits: $what: $example, $threads threads: $hash" >&2
            grep -q "^$example $hash\$" "$expected" && [ "$hash" != failed ] && continue
            result="DIFFERS: $example with $threads threads"
            bad=1
        done
    done
    row "$what, $examples at 1 to $most threads" "$result"
}

# The program same_bits.
probe() { # what
    for test in "calls $calls" regions forks; do
        result='no hang, the same bits'
        # shellcheck disable=SC2086 # a list of words
        "$build/tests/same_bits" $test >"$work/log" || { result=FAILS && bad=1; }
        row "$1: $test" "$result"
    done
}

# Beside a build of OpenBLAS, and with its products.
compare_with_blas() { # which build
    if ! (cd "$work" && apt-get -q download "libopenblas0-$1" && dpkg -x "libopenblas0-$1"_*.deb "$1") >"$work/log" 2>&1; then
        row "OpenBLAS's $1 build" "left out: $(tail -1 "$work/log")"
        return
    fi
    LD_LIBRARY_PATH=$(dirname "$(find "$work/$1" -name libopenblas.so.0)")
    export LD_LIBRARY_PATH
    export LD_PRELOAD=libopenblas.so.0
    compare "beside OpenBLAS's $1 build" "$work/hashes"
    unset LD_PRELOAD
    export RAPT_MATMUL=openblas
    if [ "$1" = serial ]; then
        compare "OpenBLAS's serial build, which is refused" "$work/hashes"
        grep -q '^rapt: RAPT_MATMUL=openblas: .*serial build.*own products$' "$work/log" || { row 'the refusal' 'IS NOT SAID' && bad=1; }
    else
        : >"$work/hashes_$1"
        compare "products left to OpenBLAS's $1 build" "$work/hashes_$1"
        probe "products left to OpenBLAS's $1 build"
    fi
    unset RAPT_MATMUL LD_LIBRARY_PATH
}

gradients() { # library's build, level, file
    RAPT_LEVEL=$2 "$1/tests/gradients" "$3"
}

compare_levels() {
    others='' clang=$build-clang
    for level in baseline v3 v4 amx; do gradients "$build" $level "$work/$level" && others="$others $level"; done
    if [ -d "$clang" ] || { command -v clang && CC=clang CXX=clang++ meson setup "$clang" "$root"; } >&2; then
        meson compile -C "$clang" gradients >&2
        for level in baseline v3 v4 amx; do gradients "$clang" $level "$work/clang_$level" && others="$others clang_$level"; done
    else
        row "clang's build" 'left out: there is no clang'
    fi
    for other in $others; do
        [ "$other" != v4 ] || continue
        result=$("$build/tests/gradients" "$work/$other" "$work/v4") || { result="FARTHER: $result" && bad=1; }
        row "$other against v4" "$result"
    done
}

for example in $examples; do echo "$example $(hash_of "$example" 1)"; done >"$work/hashes"
for piece in $pieces; do
    case $piece in
    alone) compare 'alone' "$work/hashes" ;;
    region | child)
        export LD_PRELOAD="$build/tests/libmain_elsewhere.so" RAPT_MAIN="$piece"
        compare "main in a $piece" "$work/hashes"
        unset LD_PRELOAD RAPT_MAIN
        ;;
    probe) probe "the library's own products" ;;
    levels) compare_levels ;;
    *) compare_with_blas "$piece" ;;
    esac
done
exit $bad
