#!/bin/sh
# Fails where an op or a constructor of the headers has no row in the catalogue, and so in no test that walks its tables:
# check_complete.sh CATALOGUE STAMP HEADER...
set -eu
catalogue=$1
stamp=$2
shift 2
names=$("$catalogue" --names)
missing=0

# From standard input, lines NAME HEADER.
expect() { # what they are, by the word before their names in the catalogue
    while read -r name header; do
        printf '%s\n' "$names" | grep -qx "$1 $name" && continue
        echo "check_complete: $1 rapt_$name of $header has no row: $2" >&2
        return 1
    done
}

for header; do
    case $header in
    */ops.h) sed -n 's/^RAPT_API.*[ *]rapt_\([a-z0-9_]*\)(.*/\1/p' "$header" | sed "s|\$| ${header##*/}|" |
        expect op 'add it to the tests/ops_....c of its family' || missing=1 ;;
    esac
done
[ $missing -eq 0 ] || exit 1
: >"$stamp"
