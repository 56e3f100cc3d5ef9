#!/bin/sh
# check_resume.sh EXAMPLE PROGRAM [KILLS [SEED]]: a training of the example (translate or gpt) that checkpoints each step,
# is killed again and again at random moments, and resumed, ends with the weights and the checkpoint of one that nobody
# touched. When it ends before the kills do, the next one begins. The last line says what happened.
set -eu
example=$1
program=$2
kills=${3:-6}
seed=${4:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() { # seconds until it is killed (0: never), folder, more options...
    seconds=$1
    out=$folder/$2
    shift 2
    mkdir -p "$out"
    case $example in
    translate) set -- --train 1280 --validation 100 --test 20 --epochs 20 --embedding 16 --hidden 24 --layers 2 --out "$out" "$@" ;;
    gpt)
        set -- --steps 390 --batch-size 4 --context 16 --hidden 16 --layers 2 --heads 2 --sample 4 \
            --checkpoint "$out/checkpoint.safetensors" --save "$out/model.safetensors" "$@"
        ;;
    *) echo "check_resume: there is no example '$example' that checkpoints" >&2 && exit 2 ;;
    esac
    # shellcheck disable=SC2016 # for the inner shell
    timeout --foreground --preserve-status --signal 9 "$seconds" \
        sh -c 'echo $$ >"$0" && exec "$@"' "$folder/process" \
        "$program" --threads 1 --seed 3 --dropout 0.1 --checkpoint-every 1 --log "$out/losses.csv" "$@" >"$out/log" 2>&1
}

milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# Weights, whole run and logged losses are those of the run that nobody touched; what kills left half-written is ignored.
compare() {
    for file in model.safetensors checkpoint.safetensors losses.csv; do
        cmp "$folder/whole/$file" "$folder/killed/$file" || { echo "with the seed $seed" && exit 1; }
    done
    rm -r "$folder/killed"
    runs=$((runs + 1)) halves=0
}

# Goes on with the run until it is killed after so many seconds; false when that ended it.
go_on() { # seconds
    resume=''
    [ ! -e "$folder/killed/checkpoint.safetensors" ] || resume=--resume
    status=0
    # shellcheck disable=SC2086 # a word or none
    run "$1" killed $resume || status=$?
    [ $status -eq 0 ] || [ $status -eq 137 ] || { cat "$folder/killed/log" && echo "with the seed $seed" && exit 1; }
    return $status
}

# A run is ended by SIGTERM once there is a checkpoint: it says so, and how to go on. One that ended before the signal came
# was fast, or the signal late; that may happen some times.
stop_politely() {
    for attempt in 1 2 3 4 5; do
        run 0 killed &
        while [ ! -e "$folder/killed/checkpoint.safetensors" ] && kill -0 $! 2>/dev/null; do sleep 0.01; done
        kill -15 "$(cat "$folder/process")" 2>/dev/null || true
        status=0
        wait $! || status=$?
        [ $status -ne 143 ] || ! grep -q 'stopped after step .* --resume' "$folder/killed/log" || return 0
        [ $status -eq 0 ] || break
        compare
    done
    echo "SIGTERM was answered by the status $status (attempt $attempt)"
    [ ! -e "$folder/killed/log" ] || cat "$folder/killed/log"
    exit 1
}

# What the run that was stopped has reached is not written over by the same command without --resume.
begin_anew() {
    cp "$folder/killed/checkpoint.safetensors" "$folder/reached"
    status=0
    run 0 killed || status=$?
    if [ $status -ne 1 ] || ! grep -q "checkpoint.safetensors' has step .* of this run: --resume goes on from there" "$folder/killed/log"; then
        echo "a run that writes over its checkpoint ends with $status:" && cat "$folder/killed/log" && exit 1
    fi
    cmp "$folder/reached" "$folder/killed/checkpoint.safetensors" || exit 1
}

started=$(milliseconds)
run 0 whole || { cat "$folder/whole/log" && exit 1; }
milliseconds=$(($(milliseconds) - started))
# Many moments are early, so that starting and resuming are hit too.
awk -v seed="$seed" -v kills="$kills" -v longest="$milliseconds" \
    'BEGIN { srand(seed); for (i = 0; i < 4 * kills; i++) printf "%.4f\n", 0.001 + rand() ^ 2 * longest / 4000 }' >"$folder/moments"

killed=0 runs=0 halves=0 first=0 writing=0
stop_politely
begin_anew
while [ "$killed" -lt "$kills" ] && read -r moment; do
    if go_on "$moment"; then
        compare
        continue
    fi
    killed=$((killed + 1))
    [ -e "$folder/killed/checkpoint.safetensors" ] || first=$((first + 1))
    now=$(find "$folder/killed" -name '*.tmp' | wc -l)
    [ "$now" -eq "$halves" ] || writing=$((writing + 1))
    halves=$now
done <"$folder/moments"
go_on 0
compare
echo "seed $seed: $killed kills in $runs runs, $first before the first checkpoint, $writing while a file was written; the weights are equal"
