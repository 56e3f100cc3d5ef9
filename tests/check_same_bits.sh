#!/bin/sh
# One training loop in several languages prints the same bits: check_same_bits.sh LANGUAGE PROGRAM [ARGUMENT] -- ...
# A language that stands without a program is missing here, and left out.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compared='' missing=''

while [ $# -gt 0 ]; do
    language=$1
    shift
    if [ $# -eq 0 ] || [ "$1" = -- ]; then
        missing="$missing $language"
    elif [ $# -gt 1 ] && [ "$2" != -- ]; then
        "$1" "$2" >"$work/bits.$language"
        shift 2
    else
        "$1" >"$work/bits.$language"
        shift
    fi
    [ $# -eq 0 ] || shift # the --
    [ -e "$work/bits.$language" ] || continue
    [ -s "$work/bits.$language" ] || { echo "check_same_bits: $language printed nothing" >&2 && exit 1; }
    [ -e "$work/first" ] || cp "$work/bits.$language" "$work/first"
    cmp "$work/first" "$work/bits.$language" || { echo "check_same_bits: $language differs from$compared" >&2 && exit 1; }
    compared="$compared $language"
done
[ -z "$missing" ] || echo "left out, since there is no compiler or interpreter here:$missing"
# shellcheck disable=SC2086 # a list of words
set -- $compared
[ $# -gt 1 ] || { echo 'skipped: nothing to compare with' && exit 77; }
echo "check_same_bits: $(wc -l <"$work/first") numbers are the same bits in$compared"
