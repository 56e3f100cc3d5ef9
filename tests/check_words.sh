#!/bin/sh
# Words that the glossary of CONTRIBUTING.md gave up for others do not come back as names.
set -eu
cd "$(dirname "$0")/.."
given_up='foresee|soften|take_off|carve|meet|nearby|any_seen|find_unseen|kernel_mask|distance_bias|by_distance|TYPED'
if git grep -nE "(^|[^[:alnum:]])([[:alnum:]]+_)*($given_up)(_[[:alnum:]]+)*\\(" -- '*.c' '*.h'; then
    echo "check_words: see the glossary in CONTRIBUTING.md for the word that took its place" >&2
    exit 1
fi
