// Search in the names and texts of search_index.js, without a server: the pages work from a folder too.
"use strict";

const root = document.currentScript.dataset.root;
const field = document.getElementById("search");
const found = document.getElementById("found");
let chosen = -1;

// How well an entry answers a word: its name counts most, then how early it has the word. 0: not at all.
function rank(entry, word) {
  const name = entry[0].toLowerCase();
  if (name === word || name === "rapt_" + word) return 100;
  const inName = name.split(/[^a-z0-9]+/);
  if (inName.includes(word)) return 60;
  if (name.includes(word)) return 40;
  const place = entry[3].toLowerCase().search(new RegExp("\\b" + word.replace(/[^\w]/g, "\\$&")));
  return place < 0 ? 0 : 10 + 10 / (1 + place / 100);
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const results = [];
  for (const entry of words.length ? searchIndex : []) {
    const ranks = words.map(word => rank(entry, word));
    if (ranks.every(Boolean)) results.push([ranks.reduce((a, b) => a + b) - entry[0].length / 100, entry]);
  }
  return results.sort((a, b) => b[0] - a[0]).slice(0, 40).map(result => result[1]);
}

function show() {
  const results = find(field.value);
  found.replaceChildren(...results.map(([name, kind, address, text]) => {
    const item = document.createElement("li"), link = document.createElement("a");
    const title = document.createElement("b"), what = document.createElement("span"), more = document.createElement("small");
    title.textContent = name;
    what.textContent = " " + kind;
    more.textContent = text;
    link.href = root + address;
    link.append(title, what, more);
    item.append(link);
    return item;
  }));
  if (!results.length && field.value.trim()) found.append(document.createTextNode("Nothing has these words."));
  found.hidden = !field.value.trim();
  choose(results.length ? 0 : -1);
}

function choose(place) {
  found.children[chosen]?.classList.remove("chosen");
  chosen = place;
  found.children[chosen]?.classList.add("chosen");
  found.children[chosen]?.scrollIntoView({block: "nearest"});
}

field.addEventListener("input", show);
field.addEventListener("focus", () => field.value && show());
field.addEventListener("keydown", event => {
  const last = found.children.length - 1;
  if (event.key === "ArrowDown") choose(Math.min(chosen + 1, last));
  else if (event.key === "ArrowUp") choose(Math.max(chosen - 1, 0));
  else if (event.key === "Escape") { field.value = ""; show(); }
  else return;
  event.preventDefault();
});
field.form.addEventListener("submit", event => {
  event.preventDefault();
  found.children[chosen]?.querySelector("a")?.click();
});
found.addEventListener("click", () => { found.hidden = true; });
document.addEventListener("click", event => { if (!field.form.contains(event.target)) found.hidden = true; });
document.addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== field) { field.focus(); event.preventDefault(); }
});

// PAGE.html?q=WORDS searches at once.
const asked = new URLSearchParams(location.search).get("q");
if (asked) {
  field.value = asked;
  show();
}
