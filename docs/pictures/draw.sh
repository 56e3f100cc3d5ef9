#!/bin/sh
# Draws the pictures of the guides anew: draw.sh BUILD_DIRECTORY [FOLDER]. Those of the README are made by ./run demo.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
build=$(CDPATH='' cd -- "${1:?usage: draw.sh BUILD_DIRECTORY [FOLDER]}" && pwd)
folder=${2:-$here}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/docs/pictures" "$folder"
"$build/docs/graph" "$folder/graph.svg"
"$build/examples/kernel_regression" --out "$work/regression" >/dev/null
"$build/examples/flex/flex" --out "$work/flex" >/dev/null
cp "$work/regression/widths.png" "$folder/kernel_widths.png"
cp "$work/regression/widths_weights.png" "$folder/kernel_weights.png"
cp "$work/regression/learned_width.png" "$folder/learned_width.png"
cp "$work/flex/weights.png" "$folder/modifications.png"
