#!/bin/sh
# check_page.sh TRANSLATE: the page of a run needs no network, has what happened, goes on with a run that is resumed, also
# behind a torn line, but not with another run's page, and leaves no trace in the weights. Where node is, the scripts of
# the page are run.
set -eu
translate=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

train() { # folder, more options...
    out=$1
    shift
    "$translate" --model transformer --seed 3 --train 640 --validation 64 --test 20 --epochs 2 --hidden 16 --heads 2 \
        --dropout 0.1 --out "$folder/$out" "$@"
}

run() { # the same, which succeeds
    train "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
}

complain() {
    echo "FAILED: $1"
    exit 1
}

run plain
run page --page
run resumed --page --steps 5
run resumed --page --resume
run torn --page --steps 5
printf '<script>attention(6, "one' >>"$folder/torn/training.html" # where a kill left it
run torn --page --resume
run others --page --epochs 1 --learning-rate 0.0173
run others --steps 5
run others --page --resume
# What the page's name leads to gets it, and keeps its permissions; but nothing that is no file.
mkdir "$folder/linked" "$folder/dangling" "$folder/fifo"
(umask 077 && : >"$folder/kept.html")
ln -s ../kept.html "$folder/linked/training.html"
run linked --page --steps 5
run linked --page --resume
[ -L "$folder/linked/training.html" ] || complain 'the page takes the place of a link'
[ "$(find "$folder/kept.html" -perm 600)" ] || complain "the page's permissions are others than before"
run other --page --steps 5
run other --page --resume
cmp "$folder/other/training.html" "$folder/kept.html" || complain 'the page is not where the link leads to'
ln -s nowhere "$folder/dangling/training.html"
mkfifo "$folder/fifo/training.html"
for name in dangling fifo; do
    if train $name --page >"$folder/log" 2>&1; then complain "a page goes to what is no file: $name"; fi
    if grep -q '^step' "$folder/log"; then complain "a page that cannot be written is told late: $name"; fi
done
grep -q "training.html' is not a regular file" "$folder/log" || complain 'a fifo is not named'

# What goes to closed streams is in no file.
train quiet --page >"$folder/log" 2>&- || complain 'a closed standard error ends the run'
cmp "$folder/page/training.html" "$folder/quiet/training.html" || complain 'what was printed is in the page'
if train silent --page <&- >&- 2>&-; then complain 'nobody got what was printed, and the run succeeds'; fi
if grep '^data:' "$folder/silent/training.html"; then complain 'what was printed is in the page'; fi
[ ! -e "$folder/plain/training.html" ] || complain 'a page that nobody asked for'
for name in page resumed torn; do
    page="$folder/$name/training.html"
    cmp "$folder/plain/model.safetensors" "$folder/$name/model.safetensors" || complain 'the page changes the weights'
    if grep -qE 'https?:|src=|href=|@import|fetch' "$page"; then complain 'the page wants a network'; fi
    [ "$(grep -c '^<script>point(10, {"training"' "$page")" -eq 1 ] || complain 'no loss of the last step'
    grep -q '^<script>point(10, {"validation"' "$page" || complain 'no validation loss'
    grep -q '^<script>point(10, {"learning rate"' "$page" || complain 'no learning rate'
    grep -q '^<script>attention(0, ' "$page" || complain 'no attention before the first step'
    grep -q '^<script>attention(10, ' "$page" || complain 'no attention after the last step'
done
grep -q '"learning rate": 0.0173' "$folder/others/training.html" && complain "another run's page goes on"
grep -q '^<script>point(10, {"training"' "$folder/others/training.html" || complain "no page in the place of another run's"
for name in resumed torn; do
    page="$folder/$name/training.html"
    [ "$(grep -c '<!DOCTYPE' "$page")" -eq 1 ] || complain 'two heads'
    grep -q '^<script>back(5)' "$page" || complain "the $name run does not go on from step 5"
done

: >"$folder/file"
if "$translate" --page --out "$folder/file" >/dev/null 2>&1; then complain 'a page in a file'; fi

# A page that finds no room is one sentence, and costs nothing else.
status=0
(
    trap '' XFSZ
    ulimit -f 120
    "$translate" --train 200 --validation 20 --test 20 --epochs 10 --batch-size 2 --hidden 4 --embedding 4 --threads 1 \
        --out "$folder/full" --page >"$folder/log" 2>"$folder/complaint" </dev/null
) || status=$?
[ $status -eq 1 ] || complain "a full page ends the run with $status, not 1"
[ "$(grep -vcE '^(step|epoch) ' "$folder/complaint")" -eq 1 ] || complain 'a full page is not one sentence'
grep -q '^translate: the page of the run could not be written whole' "$folder/complaint" || complain 'a full page is not named'
tail -n 1 "$folder/complaint" | grep -q '^epoch 10/10' || complain 'a full page is told at the end'
tail -c 10 "$folder/full/training.html" | grep -q '</script>$' || complain 'a full page ends with a torn line'
grep -q '^test exact match' "$folder/log" || complain 'a full page costs the translations'
for file in model.safetensors checkpoint.safetensors; do [ -s "$folder/full/$file" ] || complain "a full page costs $file"; done

command -v node >/dev/null || exit 0
cat >"$folder/look.js" <<'NODE'
const text = require('fs').readFileSync(process.argv[2], 'utf8');
const scripts = [...text.matchAll(/<script>([^]*?)<\/script>/g)].map(m => m[1]);
const canvas = new Proxy(() => canvas, {get: (_, key) => key === 'width' ? 9 : canvas});
const made = () => ({style: {}, dataset: {}, childElementCount: 0, children: [], clientWidth: 320, append() {},
  setAttribute() {}, getContext: () => canvas, get firstChild() { return this.first = this.first || made(); },
  get lastChild() { return this.last = this.last || made(); },
  replaceChildren(...all) { this.children = all; this.childElementCount = all.length; }});
const elements = {}, later = [];
const world = {
  document: {getElementById: id => elements[id] = elements[id] || made(), createElement: made, documentElement: {}},
  getComputedStyle: () => ({getPropertyValue: () => '1 2 3'}), matchMedia: () => ({addEventListener() {}}),
  addEventListener() {}, requestAnimationFrame: f => later.push(f), window: {}};
const {series, shots} = new Function(...Object.keys(world), scripts.join('\n') + '\nreturn {series, shots};')(
  ...Object.values(world));
const expect = (good, what) => { if (!good) throw new Error(what); };
for (const f of later) f();
expect(elements.title.textContent === 'A translator in training', 'a title');
expect(elements.where.textContent === `10 steps, attention seen ${shots.length} times`, elements.where.textContent);
for (const name of ['training', 'learning rate']) {
  const steps = series[name].map(p => p[0]);
  expect(steps.join() === '1,2,3,4,5,6,7,8,9,10', `${name}: ${steps}`);
}
expect(series.validation.length === 2, 'two validation losses');
expect(shots.map(s => s.step).join() === '0,1,2,3,4,5,6,7,8,9,10', 'a view of each step');
for (const shot of shots) {
  expect(shot.maps.length === 3, 'three kinds of attention');
  for (const m of shot.maps) {
    expect(m.layers === 2 && m.heads === 2, 'layers and heads');
    expect(m.values.length === 2 * 4 * m.queries.length * m.keys.length, 'a weight for each pair');
    for (let row = 0; row < 4 * m.queries.length; row++) {
      let sum = 0;
      for (let k = 0; k < m.keys.length; k++) sum += parseInt(m.values.substr(2 * (row * m.keys.length + k), 2), 16);
      expect(m.query_axis !== 'source' || Math.abs(sum / 255 - 1) < 0.05, `weights of a row sum to ${sum / 255}`);
    }
  }
}
NODE
for name in page resumed torn; do node "$folder/look.js" "$folder/$name/training.html" || complain "the scripts of the $name"; done
