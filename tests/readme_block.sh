#!/bin/sh
# readme_block.sh LANGUAGE: the README's first block of code in it.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
awk -v fence="^\`\`\`$1\$" '$0 ~ fence { sample++; next } /^```$/ { if (sample) exit } sample { print }' "$root/README.md"
