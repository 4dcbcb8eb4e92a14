// One view at a time. The selection is saved in the URL: #view/part?models=a,b&subset=hard&…
const allModels = data(document.getElementById("all-models"));

// The URL; unknown parts of it are ignored.
const decode = text => new URLSearchParams(`text=${text}`).get("text");
function address() {
  const [path, query] = location.hash.slice(1).split("?");
  const [view, ...part] = decode(path).split("/");
  const exists = $(".chapter").some(chapter => chapter.id === view);
  return { view: exists ? view : $(".chapter")[0].id, part: part.join("/"),
    choices: new URLSearchParams(query) };
}
function link(view, choices) {
  return `#${view}${choices.size ? `?${queryString(choices)}` : ""}`;
}
function choose(key, value) {
  const { view, choices } = address();
  if (value === null || value === "") choices.delete(key); else choices.set(key, value);
  history.replaceState(null, "", link(view, choices));
  show();
}
const selectedModels = () => (address().choices.get("models") ?? "").split(",").filter(m => allModels.includes(m));

// The models that a text names: "a", "a · method", "set · a", "a / b".
const named = text => text.split(/ [·/] /).map(part => part.trim()).filter(part => allModels.includes(part));
const hidden = (names, models) =>
  models.length > 0 && names.length > 0 && !names.some(name => models.includes(name));

// The numbers of a drawing as a table: beside it where it stands alone, else behind a fold.
function numbers(figure) {
  const rows = () => table(["series", "at", "value"],
    $("title", figure).map(title => title.textContent.split("\n")));
  const hasNeighbour = [figure.previousElementSibling, figure.nextElementSibling]
    .some(other => other?.tagName === "FIGURE");
  figure.classList.toggle("alone", !hasNeighbour);
  const fold = node("details", { open: !hasNeighbour }, node("summary", { textContent: "Numbers" }));
  const fill = () => { if (fold.open && !fold.querySelector("table")) fold.append(rows()); };
  fold.addEventListener("toggle", fill);
  figure.append(fold);
}
$("figure").forEach(numbers);

// A long table has a search field; rows without its words are hidden.
const LONG = 10; // rows
$(".scroll").filter(box => $("tbody tr", box).length > LONG).forEach(box => {
  const field = node("input", { type: "search", className: "filter", placeholder: "filter rows" });
  field.setAttribute("aria-label", "Show rows with these words");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    $("tbody tr", box).forEach(row => {
      const text = row.textContent.toLowerCase();
      row.classList.toggle("hide", !words.every(word => text.includes(word)));
    });
  });
  box.before(field);
});

// Alternative tables, one of them visible.
$(".choice").forEach(box => {
  const key = box.dataset.label.toLowerCase();
  const tables = $(":scope > [data-name]", box);
  if (tables.length < 2) { box.update = () => {}; return; }
  const select = node("select", {}, ...tables.map(({ dataset }) =>
    node("option", { value: dataset.name, textContent: dataset.name })));
  select.addEventListener("change", () => choose(key, select.selectedIndex ? select.value : null));
  box.prepend(node("div", { className: "controls" }, node("label", {}, box.dataset.label, select)));
  box.update = () => {
    const name = address().choices.get(key);
    const selected = tables.find(table => table.dataset.name === name) ?? tables[0];
    select.value = selected.dataset.name;
    tables.forEach(table => { table.classList.toggle("hide", table !== selected); });
  };
});

// What a selection left, for screen readers.
function announce(view, models) {
  const names = models.length ? models.join(", ") : "all models";
  const rows = $("tbody tr", view).filter(row => !row.hidden && row.offsetParent !== null).length;
  document.getElementById("status").textContent = `${view.id}: ${names}, ${rows} rows`;
}

// Hide the rows of models that are not selected, and fade their marks in drawings.
function showModels(view, models) {
  $("[data-series]", view).forEach(mark =>
    mark.classList.toggle("faint", hidden(named(mark.dataset.series), models)));
  $("tbody tr", view).forEach(row => {
    row.hidden = hidden([...row.cells].flatMap(cell => named(cell.firstChild?.textContent ?? "")), models);
  });
}

function show() {
  const { view, part, choices } = address();
  const models = selectedModels();
  $(".chapter").forEach(chapter => chapter.classList.toggle("open", chapter.id === view));
  const open = document.getElementById(view);
  const modelChoice = new URLSearchParams(models.length ? { models: models.join(",") } : {});
  $("#views a").forEach(tab => {
    const target = tab.dataset.view ??= tab.hash.slice(1);
    if (target === view) {
      tab.setAttribute("aria-current", "page");
      tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 40;
    } else tab.removeAttribute("aria-current");
    tab.hash = link(target, modelChoice);
  });
  $(".parts a", open).forEach(anchor => {
    anchor.hash = link((anchor.dataset.view ??= decode(anchor.hash.slice(1))), choices);
  });
  const chosen = document.getElementById("chosen");
  chosen.hidden = !models.length || view === "leaderboard";
  if (!chosen.hidden) {
    const all = node("button", { type: "button", textContent: "all models" });
    all.addEventListener("click", () => choose("models", null));
    chosen.replaceChildren(`Shown: ${models.join(", ")}`, all);
  }
  if (view === "leaderboard") showBoard();
  $(".choice", open).forEach(box => box.update());
  if (view !== "leaderboard") showModels(open, models); // which shows the others below
  $('a[href^="queries/"]:not([href*="show="])', open).forEach(anchor => {
    anchor.hash = models.length ? `models=${encodeURIComponent(models.join(","))}` : "";
  });
  announce(open, models);
  const { offsetHeight } = document.querySelector("nav");
  document.documentElement.style.scrollPaddingTop = `${offsetHeight + 12}px`;
  const target = part && document.getElementById(`${view}/${part}`);
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
}
// Called by provenance.js, the file next to the page: how the results were computed.
function showProvenance({ state, results }) {
  document.getElementById("state").textContent = state.join(" · ");
  Object.entries(results).forEach(([benchmark, { heads, rows, caption }]) => {
    const summary = node("summary", { textContent: "Computing time and devices" });
    document.getElementById(benchmark)?.append(node("details", {}, summary, table(heads, rows, caption)));
  });
}

// Paper has no folds to open; those that were closed close again.
let closed = [];
window.addEventListener("beforeprint", () => {
  closed = $("details:not([open])");
  closed.forEach(fold => { fold.open = true; });
});
window.addEventListener("afterprint", () => closed.forEach(fold => { fold.open = false; }));

// A heading has a link to itself.
$("main :is(h2, h3, h4)[id]").forEach(heading => {
  const link = node("a", { className: "link", href: `#${heading.id}`, textContent: "#" });
  link.setAttribute("aria-label", `Link to ${heading.textContent}`);
  const summary = heading.closest("summary");
  if (summary) summary.after(link); else heading.append(" ", link);
});
window.addEventListener("hashchange", () => {
  show();
  if (!address().part) window.scrollTo(0, 0);
});
show();
