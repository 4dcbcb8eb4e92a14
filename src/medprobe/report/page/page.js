// One view at a time. What is shown stands in the address: #view/part?models=a,b&subset=hard&…
const allModels = data(document.getElementById("all-models"));

// The address. Whatever stands there, it is read without an error.
const plain = text => new URLSearchParams(`text=${text}`).get("text");
function address() {
  const [path, query] = location.hash.slice(1).split("?");
  const [view, ...part] = plain(path).split("/");
  const there = $(".chapter").some(one => one.id === view);
  return { view: there ? view : $(".chapter")[0].id, part: part.join("/"),
    choices: new URLSearchParams(query) };
}
function link(view, choices) {
  return `#${view}${choices.size ? `?${said(choices)}` : ""}`;
}
function choose(key, value) {
  const { view, choices } = address();
  if (value === null || value === "") choices.delete(key); else choices.set(key, value);
  history.replaceState(null, "", link(view, choices));
  show();
}
const chosen = () => (address().choices.get("models") ?? "").split(",").filter(m => allModels.includes(m));

// Which models a text names: "a", "a · method", "set · a", "a / b".
const named = text => text.split(/ [·/] /).map(part => part.trim()).filter(part => allModels.includes(part));
const hidden = (text, models) => {
  const names = named(text);
  return models.length > 0 && names.length > 0 && !names.some(name => models.includes(name));
};

// What a drawing's marks say, as a table below it.
function numbers(figure) {
  const fold = node("details", {}, node("summary", { textContent: "Numbers" }));
  fold.addEventListener("toggle", () => {
    if (!fold.open || fold.querySelector("table")) return;
    const rows = $("title", figure).map(title => title.textContent.split("\n"));
    fold.append(table(["series", "at", "value"], rows));
  });
  figure.append(fold);
}
$("figure").forEach(numbers);

// A long table has a field: rows without the words in it are hidden.
const LONG = 10; // rows
$(".scroll").filter(box => $("tbody tr", box).length > LONG).forEach(box => {
  const field = node("input", { type: "search", placeholder: "rows with …" });
  field.setAttribute("aria-label", "Rows with these words");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    $("tbody tr", box).forEach(row => {
      const text = row.textContent.toLowerCase();
      row.classList.toggle("hide", !words.every(word => text.includes(word)));
    });
  });
  box.before(field);
});

// Tables of which one is shown.
$(".choice").forEach(box => {
  const key = box.dataset.asks.toLowerCase();
  const tables = $(":scope > [data-name]", box);
  if (tables.length < 2) { box.update = () => {}; return; }
  const select = node("select", {}, ...tables.map(one =>
    node("option", { value: one.dataset.name, textContent: one.dataset.name })));
  select.addEventListener("change", () => choose(key, select.selectedIndex ? select.value : null));
  box.prepend(node("div", { className: "controls" }, node("label", {}, box.dataset.asks, select)));
  box.update = () => {
    const wanted = address().choices.get(key);
    const found = tables.find(one => one.dataset.name === wanted) ?? tables[0];
    select.value = found.dataset.name;
    tables.forEach(one => { one.classList.toggle("hide", one !== found); });
  };
});

// Rows of models that are not chosen are hidden, and what is drawn of them is faint.
function only(view, models) {
  $("[data-series]", view).forEach(one =>
    one.classList.toggle("faint", hidden(one.dataset.series, models)));
  $("tbody tr", view).forEach(row => {
    const names = [...row.cells].flatMap(cell => named(cell.textContent));
    row.hidden = models.length > 0 && names.length > 0 && !names.some(name => models.includes(name));
  });
}

// Models to compare: the first click shows one alone, the second another beside it.
const group = document.getElementById("models");
if (allModels.length > 1) {
  allModels.forEach(model => {
    const button = node("button", { type: "button", textContent: model });
    button.addEventListener("click", () => {
      const before = chosen();
      const after = before.includes(model) ? before.filter(one => one !== model) : [...before, model];
      choose("models", after.length === allModels.length ? null : after.join(","));
    });
    group.append(button);
  });
}

function show() {
  const { view, part, choices } = address();
  const models = chosen();
  $(".chapter").forEach(one => one.classList.toggle("open", one.id === view));
  const open = document.getElementById(view);
  const carried = new URLSearchParams(models.length ? { models: models.join(",") } : {});
  $("#views a").forEach(one => {
    const to = one.dataset.view ??= one.hash.slice(1);
    if (to === view) {
      one.setAttribute("aria-current", "page");
      one.parentElement.scrollLeft = one.offsetLeft - one.parentElement.offsetLeft - 40;
    } else one.removeAttribute("aria-current");
    one.hash = link(to, carried);
  });
  $(".parts a", open).forEach(one => {
    one.hash = link((one.dataset.view ??= plain(one.hash.slice(1))), choices);
  });
  $("button", group).forEach(one => one.setAttribute("aria-pressed", models.includes(one.textContent)));
  $(".choice", open).forEach(one => one.update());
  only(open, models);
  if (part) document.getElementById(`${view}/${part}`)?.scrollIntoView();
}
// What the file beside the page, made.js, tells of how the results were made.
function made({ state, results }) {
  document.getElementById("state").textContent = state.join(" · ");
  Object.entries(results).forEach(([benchmark, { heads, rows, caption }]) => {
    const summary = node("summary", { textContent: "What it took" });
    document.getElementById(benchmark)?.append(node("details", {}, summary, table(heads, rows, caption)));
  });
}

window.addEventListener("hashchange", () => {
  show();
  if (!address().part) window.scrollTo(0, 0);
});
show();
