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
grep -q 'the word attended  becomes dednetta' "$work/words" || {
    cat "$work/words"
    complain 'no word was turned around in node'
}

page=$build/examples/web/page.html
if grep -qE '(src|href)=|@import' "$page"; then complain 'the page wants files'; fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo 'passed in node; skipped in a browser: there is no chromium'
    exit 0
}

# The page has so much time of its own clock, then its elements are read.
look() { # width, more options...
    width=$1
    shift
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --hide-scrollbars \
        --window-size="$width,1000" --virtual-time-budget=1500 "$@" "file://$page" 2>"$work/complaints"
}

text_of() { # id: what stands in that element
    sed -n "s/.* id=\"$1\"[^>]*>\([^<]*\)<.*/\1/p" "$work/page" | head -1
}

look 1000 --dump-dom >"$work/page"
step=$(text_of step) loss=$(text_of loss)
[ -z "$(text_of error)" ] || complain "the page says: $(text_of error)"
case $step in '' | *[!0-9]* | ? | ??) complain "the page came to step '$step'" ;; esac
case $loss in 0.* | 1.* | 2.*) ;; *) complain "the loss of the page is '$loss' at step $step" ;; esac
for width in 1000 390; do
    look $width --screenshot="$build/page-$width.png" >/dev/null
    [ -s "$build/page-$width.png" ] || complain "no picture of the page, $width points wide"
done
echo "passed: the page's loss is $loss after $step steps; pictures: $build/page-1000.png, $build/page-390.png"
