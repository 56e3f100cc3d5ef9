#!/bin/sh
# check_translate.sh TRANSLATE: what the program says and returns: results, saved models, and every kind of wrong input.
set -u
translate=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

small="--train 640 --validation 64 --test 20 --epochs 2 --embedding 16 --hidden 16 --out $folder/out"

# expect STATUS PATTERN ARGUMENTS...: the exit status, and one line on standard error or output that has the pattern.
expect() {
    status=$1 pattern=$2
    shift 2
    "$translate" "$@" >"$folder/said" 2>"$folder/complaint" </dev/null
    got=$?
    if [ $got -ne "$status" ] || ! cat "$folder/said" "$folder/complaint" | grep -q -- "$pattern"; then
        echo "FAILED: translate $*: status $got, $status expected; no line with '$pattern' in:"
        cat "$folder/said" "$folder/complaint"
        failed=1
    elif [ "$status" -ne 0 ] && [ "$(wc -l <"$folder/complaint")" -ne 1 ]; then
        echo "FAILED: translate $*: not one sentence:" && cat "$folder/complaint"
        failed=1
    fi
}

expect 0 '--checkpoint-every' --help
expect 2 '--sed' --sed 1
expect 2 '--seed' --seed x
expect 2 '--epochs' --epochs 0
expect 2 '--seed' --seed
expect 2 'book' --preset book
expect 2 'only goes with' --fix
expect 2 'recurrent' --model other
expect 1 'nowhere.tsv' --data "$folder/nowhere.tsv"
expect 1 'nowhere' --translate one --weights "$folder/nowhere.safetensors"
expect 1 'checkpoint' --resume --out "$folder/empty"
printf 'Go.\tVa !\nno tab\n' >"$folder/bad.tsv"
expect 1 'bad.tsv.*2' --data "$folder/bad.tsv"
printf 'Go.\tVa !\nG\377.\tVa !\n' >"$folder/bad.tsv"
expect 1 'UTF-8' --data "$folder/bad.tsv"
touch "$folder/file"
expect 1 "$folder/file" --out "$folder/file/out"

# shellcheck disable=SC2086 # a list of words
expect 0 '^test exact match: [0-9.]* %$' $small
for file in model.safetensors checkpoint.safetensors; do
    [ -s "$folder/out/$file" ] || { echo "FAILED: no $file" && failed=1; }
done
expect 0 . --translate 'seven hundred four' --out "$folder/out"
expect 0 . --translate 'seven hundred four' --beams 3 --out "$folder/out"
# shellcheck disable=SC2086
expect 0 '^test exact match: [0-9.]* %$' $small --model transformer --scoring additive --heads 2 --out "$folder/transformer"
expect 0 . --translate 'seven hundred four' --beams 3 --out "$folder/transformer"
# shellcheck disable=SC2086
expect 1 'heads' $small --model transformer --heads 3 --out "$folder/three"
[ "$(printf 'one\ntwo\n' | "$translate" --translate --out "$folder/out" | wc -l)" -eq 2 ] || { echo 'FAILED: two lines' && failed=1; }
expect 1 'words' --translate 'one two three four five six seven eight nine ten one two three' --out "$folder/out"
head -c 2000 "$folder/out/model.safetensors" >"$folder/cut.safetensors"
expect 1 'cut.safetensors' --translate one --weights "$folder/cut.safetensors"
expect 1 '^translate: the sentence' --translate ' ' --out "$folder/out"
# shellcheck disable=SC2086
expect 1 'seed 1' $small --resume --seed 1
exit $failed
