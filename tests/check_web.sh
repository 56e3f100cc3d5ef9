#!/bin/sh
# check_web.sh BUILD: what Emscripten made trains in node, and in a page of a browser without window, at the widths of a
# desk and of a phone. Pictures of the page go to the build directory, for people to look at.
set -eu
build=${1:?usage: check_web.sh BUILD}
node=$(command -v node || command -v nodejs) || { echo 'skipped: there is no node'; exit 77; }
[ -e "$build/examples/web/page.html" ] || { echo "skipped: $build was not made by Emscripten"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

complain() {
    echo "FAILED: $1"
    exit 1
}

"$node" "$build/examples/loop.js" || complain 'exclusive or was not learnt in node'
"$node" "$build/examples/web/words.js" --steps 600 >"$work/words"
grep -q 'the word attended becomes dednetta' "$work/words" || {
    cat "$work/words"
    complain 'no word was turned around in node'
}

page=$build/examples/web/page.html
if grep -qE '(src|href)=|@import' "$page"; then complain 'the page wants files'; fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo 'passed in node; skipped in a browser: there is no chromium'
    exit 0
}

timeout 300 "$node" "$(dirname "$0")/look_at_page.js" "$browser" "$page" "$build"
echo "passed; pictures for people to look at: $build/page*.png"
