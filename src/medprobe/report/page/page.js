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
const look = names => (name, index) => {
  const [model] = named(name);
  return names.some(one => named(one).length) && model ? allModels.indexOf(model) : index;
};

// Drawings.
function only(numbers, models) {
  const series = numbers.series.filter(([name]) => !hidden(name, models));
  const lines = numbers.lines?.filter(line => !hidden(line, models)) ?? null;
  const inside = lines === null ? () => true : ([at]) => lines.includes(at);
  return { ...numbers, lines, series: series.map(([name, points]) => [name, points.filter(inside)]) };
}
function drawFigure(figure) {
  const numbers = figure.numbers ??= data(figure.querySelector("script"));
  const names = numbers.series.map(([name]) => name);
  const colours = new Map(names.map((name, index) => [name, look(names)(name, index)]));
  const caption = figure.querySelector("figcaption").textContent;
  const shown = only(numbers, chosen());
  figure.hidden = shown.series.every(([, points]) => points.length === 0);
  charts.draw(figure.firstChild, shown, name => colours.get(name), caption);
  figure.drawn = true;
}
function values(figure) {
  const { kind, series, x, y } = only(figure.numbers ??= data(figure.querySelector("script")), chosen());
  const heads = { points: ["series", x, y, "name"], stacked: ["series", "line", x] }[kind]
    ?? ["series", kind === "intervals" ? "line" : x, kind === "intervals" ? x : y, "low", "high"];
  const rows = series.flatMap(([name, points]) => points.map(point => [name, ...point]));
  return table(heads, rows.map(row => row.slice(0, heads.length)));
}
const seen = new IntersectionObserver(entries => entries.forEach(({ isIntersecting, target }) => {
  if (isIntersecting && !target.drawn) drawFigure(target);
}), { rootMargin: "300px" });
$("figure.chart").forEach(figure => {
  figure.prepend(node("div", { style: "height:340px" }));
  const fold = node("details", {}, node("summary", { textContent: "Numbers" }));
  fold.addEventListener("toggle", () => {
    fold.querySelector(".scroll")?.remove();
    if (fold.open) fold.append(values(figure));
  });
  figure.append(fold);
  seen.observe(figure);
});

// A benchmark's numbers: report/explore.py says what they hold.
const MEANS = ["macro", "micro", "weighted"];
function explorer(box) {
  const { keys, rows, metrics, chance, sentences } = data(box.querySelector("script"));
  const all = rows.map(row => ({
    subset: keys.subset[row[0]], relation: keys.relation[row[1]], model: keys.model[row[2]],
    method: keys.method[row[3]], metric: keys.metric[row[4]],
    value: row[5], low: row[6], high: row[7], n: row[8],
  }));
  const controls = node("div", { className: "controls" });
  const sentence = node("p", { className: "lead" });
  const caption = node("figcaption");
  const figure = node("figure", {}, node("div"), caption);
  const numbers = node("div");
  box.append(controls, sentence, figure, numbers);

  const unique = (list, key) => [...new Set(list.map(row => row[key]))];
  const split = subset => subset.split("/")[1]?.split(":")[0];
  const by = row => {
    if (row.subset.includes("/")) return split(row.subset).replaceAll("-", " ");
    return MEANS.includes(row.relation) ? "method" : "relation";
  };
  // What is on the lines: methods, relations, or the parts of a split.
  const at = (row, way) => ({ method: row.method, relation: row.relation })[way]
    ?? row.subset.slice(row.subset.indexOf(":") + 1);
  const varied = list => new Set(list.map(row => row.value)).size > 1;

  // A choice among what there is; nothing to choose of one.
  function ask(label, key, options, titles = {}) {
    const wanted = address().choices.get(key);
    const value = options.includes(wanted) ? wanted : options[0];
    if (options.length > 1) {
      const select = node("select", {}, ...options.map(one =>
        node("option", { value: one, textContent: titles[one] ?? one })));
      select.value = value;
      select.addEventListener("change", () => {
        choose(key, select.value === options[0] ? null : select.value);
        box.querySelector(`[data-key=${key}]`)?.focus();
      });
      select.dataset.key = key;
      controls.append(node("label", {}, label, select));
    }
    return value;
  }

  return () => {
    const models = chosen();
    controls.replaceChildren();
    const subset = ask("Subset", "subset", keys.subset.filter(one => !one.includes("/")));
    let some = all.filter(row => row.subset.split("/")[0] === subset);
    let method;
    const ways = unique(some.map(row => ({ way: by(row) })), "way")
      .filter(way => new Set(some.filter(row => by(row) === way).map(row => at(row, way))).size > 1
        || way === "method");
    const way = ask("By", "by", ways.sort((a, b) => (b === "method") - (a === "method")));
    some = some.filter(row => by(row) === way);
    const titles = Object.fromEntries(Object.entries(metrics).map(([name, one]) => [name, one.title]));
    const metric = ask("Metric", "metric", keys.metric.filter(name =>
      varied(some.filter(row => row.metric === name))), titles) ?? some[0].metric;
    some = some.filter(row => row.metric === metric);
    if (way === "method") {
      const mean = ask("Mean", "mean", MEANS.filter(one => some.some(row => row.relation === one)));
      some = some.filter(row => row.relation === mean);
    } else {
      const own = some.filter(row => models.includes(row.model));
      const asked = own.length ? own : some;
      const strength = method => Math.max(...asked.filter(row => row.method === method).map(row => row.value));
      method = ask("Method", "method",
        unique(asked, "method").sort((a, b) => strength(b) - strength(a) || a.localeCompare(b)));
      some = some.filter(row => row.method === method);
    }
    const shown = some.filter(row => models.length === 0 || models.includes(row.model));
    const better = metrics[metric].better[subset];
    const best = line => {
      const found = shown.filter(row => at(row, way) === line).map(row => row.value);
      return better === "lower" ? Math.min(...found) : -Math.max(...found);
    };
    const lines = [...new Set(shown.map(row => at(row, way)))];
    const text = line => way === "relation" ? line.replaceAll("_", " ") : line;
    const ordered = way !== "method" && way !== "relation";
    const number = text => parseFloat(text.replace("over-", "")) + text.startsWith("over");
    lines.sort(ordered ? (a, b) => number(a) - number(b) || a.localeCompare(b)
      : (a, b) => best(a) - best(b) || a.localeCompare(b));
    const series = allModels.map(model => [model,
      shown.filter(row => row.model === model)
        .sort((a, b) => lines.indexOf(at(a, way)) - lines.indexOf(at(b, way)))
        .map(row => [text(at(row, way)), row.value, row.low, row.high])])
      .filter(([, points]) => points.length);
    const { title, unit } = metrics[metric];
    const label = `${title}${unit && ", per cent"}${better === "lower" ? ", low is good" : ""}`;
    const means = way === "method" && some[0].relation === "macro";
    const level = means ? chance[subset]?.[metric] : undefined;
    sentence.textContent = means ? sentences[subset]?.[metric] ?? "" : "";
    caption.textContent = `${title} by ${way}${method ? ` under ${method}` : ""} (${subset})`
      + `${level === undefined ? "" : "; the dotted line is chance"}.`;
    figure.hidden = series.length === 0;
    charts.draw(figure.firstChild, { kind: ordered ? "curves" : "intervals", lines: lines.map(text), series,
      x: ordered ? way : label, y: ordered ? label : undefined, chance: ordered ? undefined : level },
      name => allModels.indexOf(name), caption.textContent);
    const names = series.map(([name]) => name);
    const cell = (line, model) => {
      const row = shown.find(one => one.model === model && at(one, way) === line);
      if (!row) return null;
      const digits = value => unit ? value.toFixed(1) : round(value);
      const interval = row.low === null ? "" : `  [${digits(row.low)}, ${digits(row.high)}]`;
      return { text: digits(row.value) + interval, sort: row.value,
        ...(unit && { shade: row.value }) };
    };
    const sizes = new Map(shown.map(row => [at(row, way), row.n]));
    numbers.replaceChildren(table([way, ...names, "queries"],
      lines.map(line => [text(line), ...names.map(name => cell(line, name)), sizes.get(line)]),
      label));
  };
}
$(".explorer").forEach(box => { box.update = explorer(box); });

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

// Rows of models that are not chosen.
function rowsOf(view, models) {
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
  $(".explorer, .choice", open).forEach(one => one.update());
  $("figure.chart", open).forEach(one => { if (one.drawn) drawFigure(one); });
  rowsOf(open, models);
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
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
window.addEventListener("beforeprint", () => {
  charts.print(true);
  $(".open figure.chart").forEach(drawFigure);
  show();
});
window.addEventListener("afterprint", () => { charts.print(false); show(); });
show();
