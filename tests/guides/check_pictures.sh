#!/bin/sh
# The programs that draw the guides' pictures draw all of them: check_pictures.sh BUILD_DIRECTORY
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build=${1:?usage: check_pictures.sh BUILD_DIRECTORY}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/docs/pictures/draw.sh" "$build" "$work"
shown=$(cat "$root"/docs/*.md | sed -n 's|^!\[.*\](pictures/\(.*\))$|\1|p' | sort -u)
[ "$(ls "$work")" = "$shown" ] || { echo "drawn: $(ls "$work")"; echo "shown: $shown"; exit 1; }
for name in $shown; do
    [ -s "$root/docs/pictures/$name" ] || { echo "docs/pictures/$name is not in the tree"; exit 1; }
done
echo "check_pictures: all $(echo "$shown" | wc -l) pictures of the guides are drawn"
