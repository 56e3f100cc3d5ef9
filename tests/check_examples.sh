#!/bin/sh
# check_examples.sh FOLDER: every example program of build/examples says what it can do, what is wrong with an option or a
# path before it works, and when nobody gets what it prints.
set -u
examples=$(CDPATH='' cd -- "${1:?usage: check_examples.sh FOLDER}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

complain() {
    echo "FAILED: $*:"
    cat said complaint
    failed=1
}

run() { # program and arguments; what it says goes to the files said and complaint, its status to $status
    program=$examples/$1
    shift
    "$program" "$@" >said 2>complaint </dev/null
    status=$?
}

lose() { # program and arguments: nobody gets what it prints
    program=$examples/$1
    shift
    if "$program" "$@" >/dev/full 2>complaint </dev/null; then complain "$name $* succeeded though nobody got what it printed"; fi
    grep -q "^$name: .*standard output" complaint || complain "$name $* does not say that it could not print"
}

# The exit status, and one line of complaint that has the pattern and comes before any training.
refuse() { # status, pattern, program, arguments...
    wanted=$1 pattern=$2
    shift 2
    run "$@"
    [ $status -eq "$wanted" ] || complain "$* ended with $status, not $wanted"
    [ "$(wc -l <complaint)" -eq 1 ] || complain "$* did not say one sentence"
    grep -q -- "$pattern" complaint || complain "$* does not say '$pattern'"
}

printable='^[ -~]*$'

check_program() { # its path, and the options of a short run
    name=${1##*/}
    run "$1" --help
    [ $status -eq 0 ] || complain "$name --help ended with $status"
    head -1 said | grep -q "^usage: $name" || complain "$name --help does not begin with its usage"
    if grep -qv "$printable" said || grep -q '^[^A-Za-z0-9 ]' said; then complain "$name --help has odd characters"; fi
    [ -s complaint ] && complain "$name --help complains"
    grep -q '.\{81\}' said && complain "$name --help has a line of more than 80 columns"
    cp said help
    run "$1" -h
    cmp -s said help || complain "$name -h is not --help"
    refuse 2 "'--nonsense'" "$1" --nonsense
    refuse 2 "'stray'" "$1" stray
    lose "$1" --help
    lose "$@"
    run "$@"
    [ $status -eq 0 ] || [ "$name" = scoring ] || [ "$name" = flex ] || complain "$* ended with $status"
}

small='--train 640 --validation 64 --test 20 --epochs 1 --embedding 16 --hidden 16'
check_program loop
check_program layer
check_program own_scoring
check_program own_modification
check_program kernel_regression
check_program scoring --steps 1 # too few for its claims
check_program flex/flex --steps 1
check_program symmetric
check_program gradient_penalty
check_program gpt --steps 2 --sample 4
run gpt --steps 2 --sample 4 --blocks llama --positions rotary
[ $status -eq 0 ] || complain "gpt with LLaMA's blocks ended with $status"
run gpt --hidden 1 --layers 1 --heads 1 --sample 0 # too small to learn its sentences
[ $status -eq 1 ] || complain "gpt that learned nothing ended with $status, not 1"
grep -q '^gpt: 90 or more of 100 sentences expected .*, not [0-9]*$' complaint || complain 'gpt that learned nothing does not say so'
check_program classify --epochs 1 --hidden 16 --layers 1 --batch-size 500
# shellcheck disable=SC2086 # a list of words
check_program translate/translate $small --out trained

translate() { # status, pattern, options: of a short training
    wanted=$1 pattern=$2
    shift 2
    # shellcheck disable=SC2086
    refuse "$wanted" "$pattern" translate/translate $small "$@"
    [ -s said ] && complain "translate $* had begun"
}

# Where they are to write: nothing is trained for a path that cannot be written.
touch file
mkdir -p taken/model.safetensors pictures/loss.png pictures/kernels.svg
refuse 1 "the directory 'missing'" gpt --save missing/file --steps 2
refuse 1 "'taken' is not a regular file" gpt --save taken --steps 2
refuse 1 "'/dev/full' is not a regular file" gpt --save /dev/full --steps 2
refuse 1 "the directory 'missing'" gpt --checkpoint missing/file --steps 2
refuse 1 "'foo.index.json' ends in .json" gpt --save foo.index.json --steps 2
refuse 1 "'nowhere'" gpt --checkpoint nowhere --resume --steps 2
refuse 2 '^gpt: --resume needs --checkpoint FILE$' gpt --resume
refuse 2 '^gpt: --checkpoint-every needs --checkpoint FILE$' gpt --checkpoint-every 5
refuse 2 '^gpt: --top-k chooses at random, which --temperature 0 does not$' gpt --temperature 0 --top-k 3
refuse 2 '^gpt: --top-p chooses at random, which --temperature 0 does not$' gpt --temperature 0 --top-p 0.5
# Any bytes are a text, one without a new line too; and weights know which bytes they are of.
printf 'the quick brown fox %0100d' 0 >unbroken
printf 'zhe quick brown fox %0100d' 0 >other
run gpt --data unbroken --context 8 --steps 1 --sample 4 --save known
[ $status -eq 0 ] || complain "gpt with a text without a new line ended with $status"
run gpt --data unbroken --context 8 --steps 0 --sample 4 --weights known
[ $status -eq 0 ] || complain "gpt with the weights of the same text ended with $status"
run gpt --data unbroken --context 8 --steps 0 --sample 4 --save preset --preset default
grep -aq '"layers":"2"' preset || complain "gpt --data with --preset default takes another one"
run gpt --data unbroken --context 8 --steps 0 --sample 4 --save preset
grep -aq '"layers":"4"' preset || complain "gpt --data does not take small by itself"
refuse 1 '^gpt: the weights of known are of a text with other bytes: 20' gpt --data other --context 8 --weights known
# And of which model, which others of the same tensors, or of some of them, would not be.
run gpt --steps 1 --sample 4 --layers 3 --positions rotary --save shaped
[ $status -eq 0 ] || complain "gpt with rotary positions ended with $status"
weigh() { # pattern, options of the model
    pattern=$1
    shift
    refuse 1 "$pattern" gpt --steps 0 --sample 4 --weights "$@"
}
weigh '^gpt: the weights of shaped are of a model with layers 3, not 2$' shaped --positions rotary
weigh '^gpt: the weights of shaped are of a model with heads 4, not 2$' shaped --positions rotary --layers 3 --heads 2
weigh '^gpt: the weights of shaped are of a model with positions rotary, not alibi$' shaped --positions alibi --layers 3
weigh '^gpt: the weights of shaped are of a model with blocks gpt2, not llama$' shaped --positions rotary --layers 3 --blocks llama
weigh '^gpt: the weights of shaped are of a model with context 64, not 32$' shaped --positions rotary --layers 3 --context 32
weigh '^gpt: the weights of shaped are of a model with hidden 64, not 32$' shaped --positions rotary --layers 3 --hidden 32
LC_ALL=C sed 's/"positions":/"noisitops":/; s/"layers":/"sreyal":/; s/"heads":/"sdaeh":/' shaped >silent
run gpt --steps 0 --sample 4 --layers 3 --heads 2 --positions alibi --weights silent
[ $status -eq 0 ] || complain "gpt with weights that do not say of which model they are ended with $status"
weigh '^module_load: .*transformer.h.2' silent --positions rotary
run gpt --steps 1 --sample 4 --checkpoint run --save weights
refuse 1 "'weights' is of another run\$" gpt --checkpoint weights --resume --steps 1
refuse 1 "'run' is of another run: steps 1, not steps 2; heads 4, not heads 2\$" \
    gpt --checkpoint run --resume --heads 2 --steps 2
run gpt --steps 1 --sample 4 --checkpoint run
[ $status -eq 0 ] || complain "gpt does not begin a run anew that had ended, but ends with $status"

# A checkpoint says which text it is of, whatever its name, and what comes behind a long one.
yes 'The quick brown fox jumps over the lazy dog.' | head -40 >"$(printf 'caf\351, 5 %%')"
cp caf* plain
run gpt --data "$(echo caf*)" --context 8 --steps 1 --sample 4 --checkpoint run --save weights
[ $status -eq 0 ] || complain "gpt with a file whose name is no UTF-8 ended with $status"
refuse 1 "'run' is of another run: data caf%E9%2C 5 %25, not data plain\$" \
    gpt --data plain --context 8 --steps 1 --checkpoint run --resume
run gpt --data plain --context 8 --steps 1 --sample 4 --checkpoint run
tr qx xq <"$(echo caf*)" >plain
refuse 1 "'run' is of another run: data with hash [0-9a-f]\{16\}, not data with hash [0-9a-f]\{16\}\$" \
    gpt --data plain --context 8 --steps 1 --checkpoint run --resume
cp caf* plain
deep=$(printf '%01100d' 0 | sed 's|.\{100\}|&/|g')
mkdir -p "$deep"
cp plain "$deep"
run gpt --data "$deep/plain" --context 8 --steps 1 --sample 4 --checkpoint run
refuse 1 ', not weights weights$' gpt --data "$deep/plain" --context 8 --steps 1 --checkpoint run --resume --weights weights

# What one option writes is not what another one reads or writes.
ln -s plain link.csv
awk 'BEGIN { for (i = 0; i < 2000; i++) printf "number %d .\tnombre %d .\n", i, i }' >pairs.csv
refuse 1 "^gpt: --checkpoint and --save name one file, 'same'$" gpt --checkpoint same --save same
refuse 1 "^gpt: --data and --save name one file, './plain'$" gpt --data plain --save ./plain
refuse 1 "^gpt: --data and --log name one file, 'link.csv'$" gpt --data plain --log link.csv
refuse 1 "^gpt: --weights and --checkpoint name one file, 'weights'$" gpt --weights weights --checkpoint weights
refuse 1 "^gpt: --weights and --log name one file, './plain'$" gpt --weights plain --log ./plain
cmp plain caf* || failed=1
translate 1 "^translate: --data and --log name one file, 'pairs.csv'$" --data pairs.csv --log pairs.csv
mkdir written
cp pairs.csv written/checkpoint.safetensors
translate 1 "^translate: --data and --out name one file, 'written/checkpoint.safetensors'$" \
    --data written/checkpoint.safetensors --out written
translate 1 "^translate: --log and --out name one file, './written/loss.png'$" --log written/loss.png --out ./written
cmp pairs.csv written/checkpoint.safetensors || failed=1

# Nor where the file is not there yet: by another name of its folder, or by a link that leads nowhere.
ln -s written folder.link
ln -s ../new.st written/new.link
refuse 1 "^gpt: --checkpoint and --save name one file, './new.st'$" gpt --checkpoint new.st --save ./new.st
refuse 1 "^gpt: --save and --log name one file, './new.csv'$" gpt --save "$work/new.csv" --log ./new.csv
refuse 1 "^gpt: --checkpoint and --save name one file, 'folder.link/new.st'$" \
    gpt --checkpoint written/new.st --save folder.link/new.st
refuse 1 "^gpt: --checkpoint and --save name one file, 'written/new.link'$" gpt --checkpoint new.st --save written/new.link
run gpt --steps 1 --sample 4 --checkpoint written/new.st --save new.st
[ $status -eq 0 ] || complain "gpt with one name in two folders ended with $status"

refuse 1 "the directory 'missing'" classify --save missing/file --epochs 1
refuse_picture() { # as refuse; a build without cairo draws none, and says so
    [ "$("$examples/kernel_regression" --out file 2>&1 | grep -c 'draws no files')" -eq 1 ] || refuse "$@"
}
refuse_picture 1 "'file': Not a directory" kernel_regression --out file
refuse_picture 1 "'missing/out': No such file" flex/flex --out missing/out
refuse_picture 1 "'missing/out': No such file" kernel_regression --out missing/out
refuse_picture 1 "'pictures/kernels.svg' is not a regular file" kernel_regression --out pictures
translate 1 "'file': Not a directory" --out file
translate 1 "'missing/out': No such file" --out missing/out
translate 1 "'taken/model.safetensors' is not a regular file" --out taken
translate 1 "'pictures/loss.png' is not a regular file" --out pictures
if [ "$(id -u)" -eq 0 ]; then
    unwritable=/proc # where not even root can make a file
else
    unwritable=closed
    mkdir -m 0555 closed
fi
if [ -d $unwritable ]; then
    translate 1 "beside '$unwritable/" --out $unwritable
    refuse_picture 1 "beside '$unwritable/" kernel_regression --out $unwritable
    refuse 1 "beside '$unwritable/" gpt --save $unwritable/file
fi

# Weights that find no room after the training do not take the text with them.
status=$( (
    trap '' XFSZ
    ulimit -f 40
    "$examples/gpt" --steps 2 --sample 4 --save weights 2>complaint </dev/null | cat >said
    "$examples/gpt" --steps 2 --sample 4 --save weights >/dev/null 2>&1 </dev/null
    echo $?
) )
[ "$status" -eq 1 ] || complain "gpt without room for its weights ended with $status, not 1"
grep -q 'File too large' complaint || complain 'gpt without room for its weights does not say so'
grep -q '(4 bytes in' said || complain 'gpt without room for its weights lost its text'
# A checkpoint that finds no room takes neither the text nor the weights with it.
status=$( (
    trap '' XFSZ
    ulimit -f 1200
    "$examples/gpt" --steps 2 --sample 4 --checkpoint large --save kept >said 2>complaint </dev/null
    echo $?
) )
[ "$status" -eq 1 ] || complain "gpt without room for its checkpoint ended with $status, not 1"
[ "$(grep -c 'File too large' complaint)" -eq 1 ] || complain 'gpt without room for its checkpoint does not say so once'
grep -q '(4 bytes in' said || complain 'gpt without room for its checkpoint lost its text'
[ -s kept ] || complain 'gpt without room for its checkpoint lost its weights'

# Nor does a log: it is said once, and the rest is written.
ln -s /dev/full full.csv
run gpt --steps 3 --sample 4 --log full.csv --save logged --checkpoint logged.run
[ $status -eq 1 ] || complain "gpt without room for its log ended with $status, not 1"
[ "$(grep -c 'full.csv.*No space left' complaint)" -eq 1 ] || complain 'gpt without room for its log does not say so once'
grep -q '(4 bytes in' said || complain 'gpt without room for its log lost its text'
for file in logged logged.run; do [ -s $file ] || complain "gpt without room for its log lost its $file"; done

# What they are to read.
refuse 1 'nowhere: No such file' gpt --data nowhere
refuse 1 'taken: Is a directory' gpt --data taken
refuse 1 'file is empty' gpt --data file
head -c 2000 /dev/zero >zeros
refuse 1 '^gpt: zeros has only NUL bytes, of which a prompt can have none$' gpt --data zeros
refuse 1 '^gpt: zeros has only NUL bytes, of which a prompt can have none$' gpt --data zeros --prompt a
refuse 1 "'nowhere'" gpt --weights nowhere
refuse 1 'nowhere/train-images' classify --data nowhere
# Pictures of 1 x 2, as IDX files have them.
idx() { # file, header and data for printf
    # shellcheck disable=SC2059 # escapes
    printf "$2" >"digits/$1-ubyte"
}
mkdir digits
idx train-images-idx3 '\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\2abcd'
idx train-labels-idx1 '\0\0\10\1\0\0\0\2\0\1'
cp digits/train-images-idx3-ubyte digits/t10k-images-idx3-ubyte
idx t10k-labels-idx1 '\0\0\10\1\0\0\0\2\0\7'
cp -r digits digits.before
for file in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
    refuse 1 "^classify: --data and --save name one file, './digits/$file-ubyte'$" \
        classify --data digits --save "./digits/$file-ubyte" --patch 1
done
cmp digits/train-images-idx3-ubyte digits.before/train-images-idx3-ubyte || failed=1
refuse 1 '^classify: a --patch of 2 does not divide pictures of 1 x 2$' classify --data digits --patch 2
refuse 1 '^classify: a --batch-size of 3; there are 2 training pictures$' classify --data digits --patch 1 --batch-size 3
refuse 1 '^classify: a test label of 7; at most 1 expected' classify --data digits --patch 1 --batch-size 2
idx t10k-images-idx3 '\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\1abcd'
refuse 1 '^classify: test pictures of 2 x 1; 1 x 2 expected' classify --data digits --patch 1 --batch-size 2
exit $failed
