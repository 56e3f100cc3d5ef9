#!/bin/sh
# Fails where an op, a constructor or a normaliser of the headers has no row in the catalogue, and so in none of the tests
# that walk its tables: check_complete.sh CATALOGUE STAMP HEADER...
set -eu
catalogue=$1
stamp=$2
shift 2
names=$("$catalogue" --names)
missing=0

# Reads names of functions without rapt_ from standard input.
expect() { # what they are in the catalogue, the header, their ending in the header, where rows go
    while read -r name; do
        printf '%s\n' "$names" | grep -qEx "($1) $name" && continue
        echo "check_complete: rapt_$name$3 of ${2##*/} is not in the catalogue; add its row to $4" >&2
        return 1
    done
}

for header; do
    case $header in
    */ops.h)
        sed -n 's/^RAPT_API.*[ *]rapt_\([a-z0-9_]*\)(.*/\1/p' "$header" |
            expect op "$header" '' 'the tests/ops_....c of its family' || missing=1
        ;;
    */mask.h)
        sed -n 's/^RAPT_API.*[ *]rapt_\(masked_[a-z0-9_]*\)(.*/\1/p' "$header" |
            expect function "$header" '' tests/catalogue/layers_functions.c || missing=1
        ;;
    *) # a module of any kind and what reads a model for text are no layers
        sed -n 's/^RAPT_API.*[ *]rapt_\([a-z0-9_]*\)_new(.*/\1/p' "$header" | grep -vx -e module -e gpt_cache |
            expect 'layer|scoring|modification' "$header" _new 'the tests/catalogue/layers_....c of its family' || missing=1
        ;;
    esac
done
[ $missing -eq 0 ] || exit 1
: >"$stamp"
