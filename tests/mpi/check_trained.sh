#!/bin/sh
# What translate and gpt do under mpirun. check_trained.sh same EXAMPLE PROGRAM: the losses of one process, one progress line,
# and with four parts the same files on 1, 2 and 4 ranks. check_trained.sh kills EXAMPLE PROGRAM [KILLS [SEED]]: a run of four
# parts whose ranks are killed at random, and which goes on with 1, 2 or 4 of them, ends with the weights of one that nobody
# touched; gpt's checkpoints are in shards. The last line says what happened.
set -eu
what=$1 example=$2 program=$3 kills=${4:-3}
seed=${5:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/mpi/launch.sh
. "$(dirname "$0")/launch.sh"

# The arguments of a training that writes into a folder.
arguments() { # folder
    case $example in
    translate) echo --train 640 --validation 60 --test 4 --epochs 6 --embedding 16 --hidden 24 --layers 2 --out "$1" ;;
    gpt)
        echo --steps 90 --batch-size 8 --context 16 --hidden 16 --layers 2 --heads 2 --sample 4 --save "$1/model.safetensors"
        [ "$what" = same ] || echo --checkpoint "$1/checkpoint.safetensors.index.json"
        ;;
    *) echo "check_trained: there is no example '$example' that trains under mpirun" >&2 && exit 2 ;;
    esac
}

train() { # ranks (0: without mpirun), name of the folder, more arguments...
    count=$1 out=$work/$2
    shift 2
    mkdir -p "$out"
    # shellcheck disable=SC2046 # many words
    set -- $(arguments "$out") --seed 3 "$@"
    if [ "$count" -eq 0 ]; then set -- "$program" "$@"; else set -- mpirun -n "$count" "$program" "$@"; fi
    # shellcheck disable=SC2016 # the inner shell's
    OMP_NUM_THREADS=1 RAPT_MARK=$$ sh -c 'echo $$ >"$0" && exec "$@"' "$out/process" "$@" >"$out/said" 2>"$out/complaint"
}

fail() { # sentence, folder
    echo "check_trained: $1 (seed $seed)" >&2
    cat "$work/$2/said" "$work/$2/complaint" >&2
    exit 1
}

compare() { # folder, folder
    cmp "$work/$1/model.safetensors" "$work/$2/model.safetensors" || fail "other weights in $1 and $2" "$2"
}

same() {
    train 0 alone --log "$work/alone.csv" || fail "it failed alone" alone
    train 2 two --log "$work/two.csv" || fail "it failed by two" two
    [ "$(grep -c 'steps\{0,1\} \([0-9]*\)/\1 ' "$work/two/complaint")" -eq 1 ] || fail "not one progress line" two
    paste -d, "$work/alone.csv" "$work/two.csv" | awk -F, 'NR > 1 {
        for (i = 1; 2 * i <= NF; i++) { d = $i - $(i + NF / 2); if (d * d > 1e-10 * $i * $i) bad = 1 }
    } END { exit bad || NR < 4 }' || { cat "$work/alone.csv" "$work/two.csv" && fail "other losses by two" two; }
    [ "$example" = gpt ] || { ! train 0 alone --resume --parts 1 && grep -q 'another run: without parts 1$' "$work/alone/complaint"; } ||
        fail "parts are not part of a run" alone
    for ranks in 1 2 4; do
        train "$ranks" "parts$ranks" --parts 4 --dropout 0.1 || fail "it failed" "parts$ranks"
        compare parts1 "parts$ranks"
    done
    [ "$example" = gpt ] && index
    echo "$example: losses of one process on 2 ranks, and one set of bits on 1, 2 and 4"
}

# The index of gpt's shards, where it cannot be, and where nothing reads it; mpirun does, on one rank too.
index() {
    mkdir -p "$work/folder/index.safetensors.index.json"
    ! train 1 folder --checkpoint "$work/folder/index.safetensors.index.json" || fail "an index that is a folder" folder
    grep -q "^gpt: '.*index.json' is not a regular file$" "$work/folder/complaint" || fail "nothing is said of it" folder
    ! grep -q '^step' "$work/folder/complaint" || fail "it is said late" folder
    shards=$work/shards/run.safetensors.index.json
    train 2 shards --checkpoint "$shards" || fail "no shards" shards
    ! train 0 shards --checkpoint "$shards" --resume || fail "shards are read without mpirun" shards
    grep -q "^gpt: '.*index.json' is an index of ranks' shards: mpirun -n 1 reads and writes them$" "$work/shards/complaint" ||
        fail "nothing is said of what reads them" shards
    train 1 shards --checkpoint "$shards" --resume || fail "one rank does not go on" shards
}

milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# Prints the processes of the present run's ranks.
ranks_of_run() {
    for process in /proc/[0-9]*; do
        read -r name 2>/dev/null <"$process/comm" || continue
        [ "$name" = "$(basename "$program")" ] || continue
        if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qx "RAPT_MARK=$$"; then echo "${process#/proc/}"; fi
    done
}

# Goes on with the run that was killed, or begins one.
go_on() { # ranks
    resume=''
    for file in checkpoint.safetensors checkpoint.safetensors.index.json; do
        [ ! -e "$work/killed/$file" ] || resume=--resume
    done
    # shellcheck disable=SC2086 # a word or none
    train "$1" killed --parts 4 --dropout 0.1 --checkpoint-every 1 $resume
}

# Runs until a rank is killed after so many seconds; false when the run ended before.
disturb() { # ranks, seconds, which rank
    go_on "$1" &
    run=$!
    sleep "$2"
    victim=$(ranks_of_run | sed -n "$(($3 + 1))p")
    if [ -z "$victim" ]; then
        wait $run || fail "a run that nobody touched failed" killed
        return 1
    fi
    moment=$(milliseconds)
    kill -9 "$victim" 2>/dev/null || true
    status=0
    wait $run || status=$?
    took=$(($(milliseconds) - moment))
    [ "$took" -le "$longest" ] || longest=$took
    [ $status -ne 0 ] || return 1
    # OpenMPI names the rank, MPICH one of the processes that ended, on standard output; Ubuntu 26.04's OpenMPI 5 has
    # lost its sentence and tells which one is lost. OpenMPI 4.1's mpirun may crash itself while it takes leave of its
    # ranks, in a thread of its PMIx, and then it names none.
    if grep -q ":0*$(cat "$work/killed/process")\] \*\*\* Process received signal" "$work/killed/complaint"; then
        crashed=$((crashed + 1))
    else
        grep -qi 'rank [0-9]\|^ *prun:proc-aborted' "$work/killed/complaint" || grep -q 'PID [0-9]* RUNNING AT' "$work/killed/said" ||
            fail "nobody says which rank it was" killed
    fi
    patience=100
    while [ -n "$(ranks_of_run)" ]; do
        [ $((patience -= 1)) -gt 0 ] || fail "there are ranks still, 10 s later" killed
        sleep 0.1
    done
}

kills() {
    moment=$(milliseconds)
    train 2 whole --parts 4 --dropout 0.1 --checkpoint-every 1 || fail "it failed" whole
    awk -v seed="$seed" -v kills="$kills" -v longest=$(($(milliseconds) - moment)) 'BEGIN {
        srand(seed)
        for (i = 0; i < 20 * kills; i++) {
            ranks = 2 ^ int(3 * rand())
            printf "%d %.3f %d\n", ranks, 0.3 + rand() * longest / 1500, int(ranks * rand())
        }
    }' >"$work/moments"
    killed=0 runs=0 longest=0 crashed=0
    while [ "$killed" -lt "$kills" ] && read -r ranks seconds which; do
        if disturb "$ranks" "$seconds" "$which"; then
            killed=$((killed + 1))
        else
            compare whole killed && rm -r "$work/killed" && runs=$((runs + 1))
        fi
    done <"$work/moments"
    [ "$killed" -ge "$kills" ] || { echo "check_trained: only $killed kills (seed $seed)" >&2 && exit 1; }
    if [ -d "$work/killed" ]; then
        go_on 2 || fail "it failed when it went on" killed
        compare whole killed && runs=$((runs + 1))
    fi
    echo "$example: $killed kills in $runs runs, which ended with the weights of an undisturbed one; each ended within $longest ms"
    [ "$crashed" -eq 0 ] || echo "check_trained: mpirun itself crashed $crashed times (seed $seed)" >&2
}

"$what"
