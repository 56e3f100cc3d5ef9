#!/bin/sh
# soak.sh BUILD: trains each example's model in turn, under random numbers of threads and beside programs that come and
# go, for RAPT_SOAK_HOURS (6) after the runs that nothing disturbs. Losses and weights must be those of the undisturbed
# run. From its first minute, and its first of the processor's time, to the end of training a run's resident memory must
# not grow by more than RAPT_SOAK_KIB (1024) beyond what undisturbed runs, on one thread and on eight, grow by. That is
# for batches which are larger than all before them, so it grows in a few of its seconds, RAPT_SOAK_RISES (30) at most:
# what leaks grows steadily. RAPT_SOAK_MINUTES (5) is how long the one takes; RAPT_SOAK_EXAMPLES names some of the
# examples; RAPT_SEED draws.
# RAPT_SOAK_KEEP is a folder that keeps what was run, where a soak of the same library that was broken off goes on; the
# hours are those of the runs that came to their end.
set -eu
build=$(CDPATH='' cd -- "$1" && pwd)
minutes=${RAPT_SOAK_MINUTES:-5}
most_growth=${RAPT_SOAK_KIB:-1024}
most_rises=${RAPT_SOAK_RISES:-30}
seed=${RAPT_SEED:-$(date +%s)}
most_threads=8
export OMP_WAIT_POLICY=passive # there are more threads than processors
echo "soak: seed $seed" >&2
disturbance=''
if [ -n "${RAPT_SOAK_KEEP:-}" ]; then
    mkdir -p "$RAPT_SOAK_KEEP"
    work=$(CDPATH='' cd -- "$RAPT_SOAK_KEEP" && pwd)
    trap stop_disturbing EXIT
else
    work=$(mktemp -d)
    trap 'stop_disturbing; rm -rf "$work"' EXIT
fi
touch "$work/runs" "$work/failed"

draw() { # low, high: sets $drawn
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$(($1 + seed / 65536 % ($2 - $1 + 1)))
}

# --- the examples ---

long='translator transformer gpt classify'
short='loop layer own_scoring own_modification kernel_regression scoring symmetric gradient_penalty flex'
examples=${RAPT_SOAK_EXAMPLES:-$long $short}

# Becomes the example on $threads threads, which writes losses, weights and log into the folder.
become() { # example, folder, and of a long one epochs or steps
    mkdir -p "$2"
    cd "$2"
    export OMP_NUM_THREADS="$threads"
    case $1 in
    translator | transformer)
        architecture=$1
        [ "$1" = transformer ] || architecture=recurrent
        set -- "$build/examples/translate/translate" --model "$architecture" --epochs "$3" --train 1280 --validation 128 \
            --test 2 --dropout 0.1 --out . --log losses.csv --threads "$threads"
        ;;
    gpt)
        set -- "$build/examples/gpt" --steps "$3" --batch-size 32 --sample 2 --dropout 0.1 --save model.safetensors \
            --log losses.csv --threads "$threads"
        ;;
    classify)
        set -- "$build/examples/classify" --epochs "$3" --hidden 32 --dropout 0.1 --save model.safetensors --threads "$threads"
        ;;
    kernel_regression) set -- "$build/examples/kernel_regression" --out . ;;
    flex) set -- "$build/examples/flex/flex" ;;
    *) set -- "$build/examples/$1" ;;
    esac
    exec "$@" >said 2>log </dev/null
}

# What must be the same: losses and weights, or what a short example says, of scoring without the seconds.
collect() { # example, folder
    if [ -e "$2/losses.csv" ]; then
        cat "$2/losses.csv"
    elif [ -e "$2/model.safetensors" ]; then
        grep '^epoch' "$2/log"
    elif [ "$1" = scoring ]; then
        sed 's/[0-9.]*$//' "$2/said"
    else
        cat "$2/said"
    fi
    [ ! -e "$2/model.safetensors" ] || sha256sum <"$2/model.safetensors"
}

# --- the disturbance: programs that compute or move memory, for some seconds each ---

disturb() {
    while :; do
        draw 0 3
        for _ in $(seq "$drawn"); do
            draw 1 10
            if [ $((drawn % 3)) -eq 0 ]; then
                timeout "$drawn" dd if=/dev/zero of=/dev/null bs=64M 2>/dev/null &
            else
                timeout "$drawn" sh -c 'while :; do :; done' &
            fi
        done
        draw 1 10
        sleep "$drawn"
    done
}

start_disturbing() {
    draw 1 1000000
    disturb &
    disturbance=$!
}

stop_disturbing() {
    [ -z "$disturbance" ] || kill "$disturbance" 2>/dev/null || true
    disturbance=''
}

# --- runs ---

ticks_a_second=$(getconf CLK_TCK)
warm=$((60 * ticks_a_second))

# Waits for a run; $growth is that of its memory from when it is warm to the end of training, or empty, which happened in
# $rises of its seconds. A busy machine may not get through the first steps in a minute. $ticks is what it took of the
# processor.
watch() { # process, folder
    resident='' first='' largest=0 second=0 rises=0 ticks=0
    while :; do
        resident=$(awk '/^VmRSS/ { print $2 }' "/proc/$1/status" 2>/dev/null || true)
        [ -n "$resident" ] || break # it has ended
        ticks=$(awk '{ print $14 + $15 }' "/proc/$1/stat" 2>/dev/null || echo "$ticks")
        if [ "$second" -ge 60 ] && [ "$ticks" -ge "$warm" ] && [ ! -e "$2/model.safetensors" ]; then
            first=${first:-$resident}
            [ "$resident" -le "$largest" ] || largest=$resident rises=$((rises + 1))
        fi
        second=$((second + 1))
        sleep 1
    done
    growth=${first:+$((largest - first))}
    wait "$1"
}

fail() { # example, what
    echo "soak: $1: $2" >&2
    echo "$1" >>"$work/failed"
}

# Runs that nothing disturbs, on one thread and on the most, which have memory of their own each; long ones take as many
# steps as the minutes have.
begin() { # example
    threads=1
    rm -rf "${work:?}/$1.try"
    case $1 in
    gpt) length=200 ;;
    classify) length=2 ;;
    *) length=20 ;;
    esac
    case " $long " in
    *" $1 "*)
        started=$(date +%s%N)
        (become "$1" "$work/$1.try" $length)
        length=$((length * minutes * 60000 / (($(date +%s%N) - started) / 1000000 + 1) + 1))
        ;;
    esac
    grows=0
    for threads in 1 $most_threads; do
        rm -rf "${work:?}/$1.calm"
        become "$1" "$work/$1.calm" "$length" &
        watch $! "$work/$1.calm" || { cat "$work/$1.calm/log" >&2 && exit 1; }
        [ "$rises" -le "$most_rises" ] || fail "$1" "undisturbed, and grew in $rises of its seconds, by $growth KiB"
        [ "${growth:-0}" -le "$grows" ] || grows=$growth
        collect "$1" "$work/$1.calm" >"$work/$1.on_$threads"
    done
    cmp "$work/$1.on_1" "$work/$1.on_$threads" || fail "$1" "undisturbed, and other losses or weights on $threads threads"
    echo "$length $grows" >"$work/$1.length"
    mv "$work/$1.on_1" "$work/$1.expected"
}

run() { # example
    draw 1 $most_threads
    threads=$drawn
    rm -rf "${work:?}/$1"
    started=$(date +%s)
    start_disturbing
    read -r length grows <"$work/$1.length"
    become "$1" "$work/$1" "$length" &
    watch $! "$work/$1" || fail "$1" "ended with $?: $(tail -1 "$work/$1/log")"
    stop_disturbing
    collect "$1" "$work/$1" | cmp - "$work/$1.expected" || fail "$1" "other losses or weights on $threads threads"
    [ "${growth:-0}" -le $((grows + most_growth)) ] || fail "$1" "grew by $growth KiB, undisturbed by $grows"
    echo "$1 $(($(date +%s) - started)) ${growth:-none} $((ticks / ticks_a_second))" | tee -a "$work/runs" >&2
}

is_over() {
    awk -v hours="${RAPT_SOAK_HOURS:-6}" '{ seconds += $2 } END { exit seconds < hours * 3600 }' "$work/runs"
}

# What is kept is of the same library and the same minutes, or nothing could be compared with it.
kind="$(sha256sum <"$build/librapt.so") $minutes"
[ -e "$work/library" ] || echo "$kind" >"$work/library"
[ "$(cat "$work/library")" = "$kind" ] ||
    { echo "soak: $work is of another library, or of runs that take other minutes" >&2 && exit 1; }
for example in $examples; do
    [ -e "$work/$example.expected" ] || begin "$example"
done
until is_over; do
    for example in $examples; do
        is_over || run "$example"
    done
done
for example in $examples; do
    grep -q "^$example " "$work/runs" || continue # there was no time for one
    tried=$(awk -v example="$example" '
        $1 == example { runs++; seconds += $2; used += $4; if ($3 != "none") { watched++; if ($3 > most) most = $3 } }
        END { printf "%d runs, %d minutes, %d of the processor", runs, seconds / 60, used / 60
              if (watched) printf "; memory grew by %d KiB at most", most }' "$work/runs")
    result='losses and weights are those of the undisturbed run'
    ! grep -qx "$example" "$work/failed" || result=FAILS
    echo "| soak | $example: $tried | $result |"
done
[ ! -s "$work/failed" ]
