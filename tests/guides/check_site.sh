#!/bin/sh
# The site builds without a fault, and its search finds: check_site.sh PYTHON FOLDER LIBRARY ("" where there is no shared
# one). Where node is, the search is run.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=$1 folder=$2 library=$3
if ! "$python" -c 'import markdown, pygments' 2>/dev/null; then
    echo "skipped: $python has no Python-Markdown or no Pygments (python3-markdown, python3-pygments)"
    exit 77
fi
touch "$folder.file"
"$python" "$root/docs/site/build.py" "$folder.file" 2>"$folder.said" && exit 1
if [ "$(wc -l <"$folder.said")" -ne 1 ] || ! grep -q 'there can be no site in' "$folder.said"; then
    echo "check_site: a file where the folder is to be: $(cat "$folder.said")"
    exit 1
fi
# Python ignores the signal that a file is too large.
if (ulimit -f 20 && "$python" "$root/docs/site/build.py" "$folder.full") 2>"$folder.said"; then exit 1; fi
if [ "$(wc -l <"$folder.said")" -ne 1 ] || ! grep -q 'full is not whole: File too large$' "$folder.said"; then
    echo "check_site: a disk without room: $(cat "$folder.said")"
    exit 1
fi
set --
if [ -n "$library" ]; then
    nm -D --defined-only "$library" | awk '$3 ~ /^rapt_/ { print $3 }' >"$folder.names"
    set -- --names "$folder.names"
fi
"$python" "$root/docs/site/build.py" "$folder" "$@"
# Anew from within, and by a link: the folder stays.
(cd "$folder" && touch left.html && "$python" "$root/docs/site/build.py" . >"$folder.said" && [ -e index.html ] && [ ! -e left.html ])
ln -sfn "$folder" "$folder.link"
"$python" "$root/docs/site/build.py" "$folder.link" >"$folder.said"
if grep -rlE '(src|href)="(https?:)?//[^"]*\.(js|css|png|svg)"' "$folder"; then
    echo 'check_site: these pages want a network'
    exit 1
fi
for guide in "$root"/docs/*.md; do
    name=$(basename "$guide" .md)
    if grep -q '^```c$' "$guide" && ! grep -q "'$name': [1-9]" "$root/tests/guides/meson.build"; then
        echo "check_site: nobody runs the code of $name.md"
        exit 1
    fi
done

command -v node >/dev/null || exit 0
cat "$folder/search_index.js" "$folder/search.js" - >"$folder.search.js" <<'NODE'
const expect = (good, what) => { if (!good) throw new Error(what); };
const names = words => find(words).map(entry => entry[0]);
expect(names("softmax")[0] === "rapt_softmax", "a name without its prefix comes first");
expect(names("Gradient CLIP")[0] === "rapt_clip_gradient_norm", "words in any order and case");
expect(names("RAPT_FLOAT32").includes("rapt_dtype"), "a constant leads to its enumeration");
expect(names("valid_lengths").includes("rapt_mask"), "a field leads to its struct");
expect(names("zero_grad")[0].startsWith("Coming from PyTorch"), "words of a guide");
expect(names("xyzzy").length === 0 && names(" ").length === 0, "what is nowhere, and nothing");
NODE
node -e '
const text = require("fs").readFileSync(process.argv[1], "utf8");
const made = new Proxy(() => made, {get: (_, key) => key === "form" ? made : key === "activeElement" ? null : made});
new Function("document", "location", "URLSearchParams", text)(made, {search: ""}, class { get() { return null; } });
' "$folder.search.js"
echo 'check_site: the search finds'
