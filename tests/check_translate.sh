#!/bin/sh
# check_translate.sh TRANSLATE: what the program says and returns: results, saved models, and every kind of wrong input.
set -u
LC_ALL=C
export LC_ALL
translate=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

sizes='--train 640 --validation 64 --test 20 --epochs 2 --hidden 16'
small="$sizes --embedding 16 --out $folder/out"

# expect STATUS PATTERN ARGUMENTS...: the exit status, a line on standard error or output that has the pattern, and of what
# fails one sentence beside its progress.
expect() {
    status=$1 pattern=$2
    shift 2
    "$translate" "$@" >"$folder/said" 2>"$folder/complaint" </dev/null
    got=$?
    if [ $got -ne "$status" ] || ! cat "$folder/said" "$folder/complaint" | grep -q -- "$pattern"; then
        echo "FAILED: translate $*: status $got, $status expected; no line with '$pattern' in:"
        cat "$folder/said" "$folder/complaint"
        failed=1
    elif [ "$status" -ne 0 ] && [ "$(grep -vcE '^(step|epoch) ' "$folder/complaint")" -ne 1 ]; then
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
expect 2 'sentences of 3 tokens in the end, not of 2$' --preset book --data pairs --longest 2
expect 2 'only goes with' --fix
expect 2 'only goes with' --preset book --fix --data README.md
expect 2 'epochs' --epochs 1000001
expect 2 'recurrent' --model other
expect 1 'nowhere.tsv' --data "$folder/nowhere.tsv"
expect 1 'nowhere' --translate one --weights "$folder/nowhere.safetensors"
expect 1 '^translate: no checkpoint is at ' --resume --out "$folder/empty"
[ ! -e "$folder/empty" ] || { echo 'FAILED: --resume made a folder' && failed=1; }
printf 'Go.\tVa !\nno tab\n' >"$folder/bad.tsv"
expect 1 'bad.tsv.*2' --data "$folder/bad.tsv"
printf 'Go.\tVa !\nG\377.\tVa !\n' >"$folder/bad.tsv"
expect 1 'UTF-8' --data "$folder/bad.tsv"
touch "$folder/file"
expect 1 "$folder/file" --out "$folder/file/out"

# What would change nothing is refused.
expect 2 '^translate: --weights goes with --translate' --weights "$folder/none.safetensors"
expect 2 '^translate: --embedding goes with --model recurrent' --model transformer --embedding 8
expect 2 '^translate: --heads goes with --model transformer$' --heads 2
expect 2 '^translate: --feed-forward goes with --model transformer$' --feed-forward 8
expect 2 '^translate: --resume does not go with --translate' --translate one --resume
for option in '--data pairs' --preset=book --longest=2 --rarest=2 --train=9 --validation=9 --test=9 --model=transformer \
    --scoring=dot --embedding=8 --hidden=8 --layers=1 --heads=2 --feed-forward=8 --fix --dropout=0 --epochs=1 --steps=1 \
    --batch-size=2 --learning-rate=1 --schedule=cosine --clip=1 --loss=plain --log=l.csv --page --checkpoint-every=1 --seed=1 \
    --parts=1; do
    # shellcheck disable=SC2086 # a value as a word of its own
    expect 2 "^translate: ${option%%[= ]*} does not go with --translate" --translate one $option
done

# shellcheck disable=SC2086 # a list of words
expect 0 '^test exact match: [0-9.]* %$' $small
for file in model.safetensors checkpoint.safetensors; do
    [ -s "$folder/out/$file" ] || { echo "FAILED: no $file" && failed=1; }
done
expect 0 . --translate 'seven hundred four' --out "$folder/out"
expect 0 . --translate 'seven hundred four' --beams 3 --out "$folder/out"
# shellcheck disable=SC2086
expect 0 '^test exact match: [0-9.]* %$' $sizes --model transformer --scoring additive --heads 2 --out "$folder/transformer"
expect 0 . --translate 'seven hundred four' --beams 3 --out "$folder/transformer"
# shellcheck disable=SC2086
expect 1 'heads' $sizes --model transformer --heads 3 --out "$folder/three"
[ "$(printf 'one\ntwo\n' | "$translate" --translate --out "$folder/out" | wc -l)" -eq 2 ] || { echo 'FAILED: two lines' && failed=1; }
expect 0 '^translate: the model does not know: foo, bar$' --translate 'one foo bar Foo two' --out "$folder/out"
printf 'one\nfoo one\n' >"$folder/lines"
"$translate" --translate --out "$folder/out" <"$folder/lines" >"$folder/said" 2>"$folder/complaint" || { echo 'FAILED: unknown words' && failed=1; }
[ "$(wc -l <"$folder/said")" -eq 2 ] || { echo 'FAILED: two lines, one with an unknown word' && failed=1; }
grep -qx 'line 2: the model does not know: foo' "$folder/complaint" || { echo 'FAILED: an unknown word of line 2' && failed=1; }
printf '\357\273\277one\n' | "$translate" --translate --out "$folder/out" 2>&1 >/dev/null | grep . && { echo 'FAILED: a byte order mark' && failed=1; }
"$translate" --translate --out "$folder/out" <"$folder" >"$folder/said" 2>&1 && { echo 'FAILED: a folder as input' && failed=1; }
expect 1 'words' --translate 'one two three four five six seven eight nine ten one two three' --out "$folder/out"
head -c 2000 "$folder/out/model.safetensors" >"$folder/cut.safetensors"
expect 1 'cut.safetensors' --translate one --weights "$folder/cut.safetensors"
sed 's/"hidden":"16"/"hidden":"99"/' "$folder/out/model.safetensors" >"$folder/large.safetensors"
expect 1 'more numbers than it has' --translate one --weights "$folder/large.safetensors"
expect 1 '^translate: the sentence' --translate ' ' --out "$folder/out"
# shellcheck disable=SC2086
expect 1 "checkpoint.safetensors' is of another run: seed 0, not seed 1; layers 1, not layers 2; clip 1, not clip 2\$" \
    $small --resume --seed 1 --clip 2 --layers 2
# shellcheck disable=SC2086
expect 1 "another run: learning rate [0-9.]\{1,7\}, not learning rate 0.007\$" $small --resume --learning-rate 0.007
# The file of the pairs, whatever its name, is part of a run, and what stands behind it as well.
deep=$folder/$(printf '%01100d' 0 | sed 's|.\{100\}|&/|g')
mkdir -p "$deep"
awk 'BEGIN { for (i = 0; i < 60; i++) printf "The number %d .\tLe nombre %d .\n", i % 20, i % 20 }' >"$deep/$(printf 'caf\351')"
pairs="--steps 1 --embedding 8 --hidden 8 --out $folder/pairs"
# shellcheck disable=SC2086
expect 0 '^test exact match: [0-9.]* %$' $pairs --data "$(echo "$deep"/*)"
# shellcheck disable=SC2086
expect 1 "is of another run: seed 0, not seed 1\$" $pairs --data "$(echo "$deep"/*)" --resume --seed 1
# So are the sentences that it had.
awk 'BEGIN { for (i = 0; i < 60; i++) printf "The number %d .\tCe nombre %d .\n", i % 20, i % 20 }' >"$(echo "$deep"/*)"
# shellcheck disable=SC2086
expect 1 "is of another run: data with hash [0-9a-f]\{16\}, not data with hash [0-9a-f]\{16\}\$" \
    $pairs --data "$(echo "$deep"/*)" --resume
# And the preset that it went by, where all numbers are the same.
awk 'BEGIN { for (i = 0; i < 60; i++) printf "The number %d .\tLe nombre %d .\n", i, i }' >"$folder/numbered"
book="--steps 1 --hidden 8 --out $folder/pairs --data $folder/numbered --model transformer --longest 8 --rarest 2 --train 50 --validation 5 --test 5 --epochs 9
    --heads 1 --feed-forward 8 --dropout 0 --learning-rate 0.001 --schedule constant --loss plain --layers 1 --batch-size 8"
# shellcheck disable=SC2086
expect 0 '^test exact match: [0-9.]* %$' $book --preset book
# shellcheck disable=SC2086
expect 1 "is of another run: preset book, not preset book with --fix\$" $book --preset book --fix --resume
# shellcheck disable=SC2086
expect 1 "is of another run: preset book, not preset default\$" $book --resume
printf '\002\000\000\000\000\000\000\000{}' >"$folder/out/checkpoint.safetensors"
# shellcheck disable=SC2086
expect 1 "checkpoint.safetensors' is of another run\$" $small --resume

# Without test pairs the validation pairs are scored, and without these, too, nothing is.
# shellcheck disable=SC2086
expect 0 '^this data has no test pairs; the validation pairs stand in for them$' $small --epochs 1 --test 0
# shellcheck disable=SC2086
expect 0 '^this data has neither test nor validation pairs: nothing is scored$' $small --epochs 1 --test 0 --validation 0
if grep -q 'stand in\|BLEU\|exact match\|translations of' "$folder/said"; then
    echo 'FAILED: a score of no pairs:' && cat "$folder/said" && failed=1
fi
# Nor is there a loss of them.
# shellcheck disable=SC2086
expect 0 '^epoch 1/1: training loss [0-9.]*$' $small --epochs 1 --validation 0 --log "$folder/unvalidated.csv"
[ "$(head -n 1 "$folder/unvalidated.csv")" = step,training_loss,learning_rate ] ||
    { echo 'FAILED: a column for the loss of no validation pairs' && failed=1; }
if grep -i nan "$folder/complaint" "$folder/unvalidated.csv"; then echo 'FAILED: a loss of no pairs' && failed=1; fi

# A log that finds no room is one sentence, and costs nothing else.
ln -s /dev/full "$folder/full.csv"
# shellcheck disable=SC2086
expect 1 "full.csv' cannot be written: No space left" $sizes --out "$folder/logged" --log "$folder/full.csv"
grep -q '^test exact match' "$folder/said" || { echo 'FAILED: a full log costs the translations' && failed=1; }
for file in model.safetensors checkpoint.safetensors; do
    [ -s "$folder/logged/$file" ] || { echo "FAILED: a full log costs $file" && failed=1; }
done

# A checkpoint that finds no room does not take the model with it.
(
    trap '' XFSZ
    ulimit -f 160
    # shellcheck disable=SC2086
    expect 1 "unsaved/checkpoint.safetensors': File too large\$" $sizes --epochs 1 --embedding 16 --out "$folder/unsaved"
    exit $failed
) || failed=1
expect 0 . --translate 'seven hundred four' --out "$folder/unsaved"
[ ! -e "$folder/unsaved/checkpoint.safetensors" ] || { echo 'FAILED: a checkpoint that had no room' && failed=1; }
# Nothing is trained for somebody whom nothing reaches.
# shellcheck disable=SC2086
"$translate" $small --epochs 1 >/dev/full 2>"$folder/complaint" && { echo 'FAILED: success for nobody' && failed=1; }
grep -v '^translate: cannot write to standard output' "$folder/complaint" && { echo 'FAILED: more is said to nobody' && failed=1; }

# Where the loss does not count padding, no model reads any: more of it changes nothing. It does as the book has it.
losses() {
    # shellcheck disable=SC2086
    "$translate" $sizes --out "$folder/out" --epochs 1 "$@" 2>&1 </dev/null | grep '^epoch'
}
for model in recurrent transformer; do
    short=$(losses --model $model --longest 12) long=$(losses --model $model --longest 17)
    if [ -z "$short" ] || [ "$short" != "$long" ]; then
        echo "FAILED: the $model model's losses depend on padding: '$short' and '$long'" && failed=1
    fi
    [ "$(losses --model $model --loss plain --longest 12)" != "$(losses --model $model --loss plain --longest 17)" ] ||
        { echo "FAILED: the $model model does not count padding" && failed=1; }
done
expect 0 . --translate 'seven hundred four' --out "$folder/out"

# What was drawn is said, and there.
said() { # pattern, in what the last program said
    grep -q -- "$1" "$folder/said" || { echo "FAILED: no line with '$1' in:" && cat "$folder/said" && failed=1; }
}
drawn() { # folder, then names
    for name in "$2" "$3" "$4" "$5"; do
        [ -z "$name" ] || [ -s "$1/$name.svg" ] || { echo "FAILED: no $1/$name.svg" && failed=1; }
        [ -z "$name" ] || [ "$(head -c 4 "$1/$name.png" | tail -c 3)" = PNG ] || { echo "FAILED: no $1/$name.png" && failed=1; }
    done
}
# shellcheck disable=SC2086
expect 0 . $small
# shellcheck disable=SC2086
expect 0 '^attention in "[a-z -]*" -> "' $small # a run that has ended may be begun anew
said '^translation v$' # the heatmap, in the ASCII of this locale
if ! grep -q 'draws no files' "$folder/said"; then
    said "^drawn: attention of the translation to the source: $folder/out/attention.png and attention.svg\$"
    said "^drawn: losses of each epoch: $folder/out/loss.png and loss.svg\$"
    drawn "$folder/out" attention loss '' ''
    # shellcheck disable=SC2086
    expect 0 '^ *Head 1' $sizes --model transformer --layers 2 --heads 2 --out "$folder/transformer"
    said '^Layer 2$'
    said '^ *Head 2$\|Head 1 *Head 2$'
    said "^drawn: attention of the source to the source: $folder/transformer/attention-encoder.png and attention-encoder.svg\$"
    said "^drawn: attention of the translation to the input: $folder/transformer/attention-decoder.png and attention-decoder.svg\$"
    drawn "$folder/transformer" attention attention-encoder attention-decoder loss
    # Also of words with what is no character, U+FFFE; and the losses where the attention cannot be.
    awk 'BEGIN { for (i = 0; i < 60; i++) printf "say %d\tdis %d\357\277\276\n", i % 20, i % 20 }' >"$folder/odd"
    odd="--data $folder/odd --epochs 1 --embedding 8 --hidden 8"
    # shellcheck disable=SC2086
    expect 0 "^drawn: losses of each epoch: $folder/odd.out/loss.png" $odd --out "$folder/odd.out"
    drawn "$folder/odd.out" attention loss '' ''
    # Of sentences that are too long for a picture the beginning; and where heads are too many none.
    awk 'BEGIN { for (i = 0; i < 60; i++) { for (j = 0; j < 300; j++) printf "say %d ", i % 20; printf "\tdis %d\n", i } }' >"$folder/long"
    long="--epochs 1 --hidden 100 --batch-size 64 --steps 1"
    # shellcheck disable=SC2086
    expect 0 "^drawn: beginning of the attention of the translation to the source: $folder/long.out/attention.png" \
        --data "$folder/long" --longest 999 $long --out "$folder/long.out"
    drawn "$folder/long.out" attention '' '' ''
    # shellcheck disable=SC2086
    expect 0 '^not drawn: attention of the translation to the source: so many layers or heads' $sizes $long --model transformer --heads 100 --out "$folder/heads"
    mkdir "$folder/link.out"
    ln -s nowhere "$folder/link.out/attention.svg"
    # shellcheck disable=SC2086
    expect 1 'a link that leads to nothing$' $odd --out "$folder/link.out"
    drawn "$folder/link.out" loss '' '' ''
fi
exit $failed
