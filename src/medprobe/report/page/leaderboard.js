// The first screen: models are rows, benchmarks are columns. report/leaderboard.py says what
// `board` holds. What a reader chooses is in the URL: ?models=a,b&sort=medlama&kind=masked&find=bert
const board = data(document.getElementById("board-data"));
const names = board.models.map(model => model.name);
const columns = board.benchmarks;
const DENSE = 12; // with more models, rows are low, and there is a search field
const phone = matchMedia("(max-width: 40rem)");
const signed = number => (number > 0 ? "+" : number < 0 ? "−" : "") + Math.abs(number).toLocaleString("en",
  { minimumFractionDigits: 1, maximumFractionDigits: 4 });
const interval = (low, high) => low === null ? "" : ` [${signed(low)}, ${signed(high)}]`;

// The test of two models, seen from the first one.
columns.forEach(column => { column.pairs = new Map(column.tests.map(test => [`${test[0]} ${test[1]}`, test])); });
function compare(column, a, b) {
  const turned = a > b;
  const test = column.pairs.get(turned ? `${b} ${a}` : `${a} ${b}`);
  if (!test) return null;
  const [, , gap, low, high, state, smallest, relations, parts] = test;
  const turn = ([value, from, to]) => turned ? [-value, to === null ? null : -to, from === null ? null : -from] : [value, from, to];
  const [difference, left, right] = turn([gap, low, high]);
  return { difference, low: left, high: right, state, smallest,
    better: state === 1 && difference > 0,
    relations: relations.map(([name, ...numbers]) => [name, ...turn(numbers)]),
    parts: parts && turned ? [parts[2], parts[1], parts[0], parts[3]] : parts };
}

// What is said of a benchmark: `_say` of report/leaderboard.py, word for word.
const [LEADS, TIES, NONE, ALONE, UNTESTED] = [0, 1, 2, 3, 4]; // the last two only where nothing else is said
const listed = items => [items.slice(0, -1).join(", "), items.at(-1)].filter(Boolean).join(" and ");
const askedOf = (column, models) => models.filter(model => column.cells[model])
  .sort((a, b) => column.cells[a].place - column.cells[b].place);
// Who is not significantly worse than the first of them, or why that cannot be tested.
function tiedOf(column, [best, ...others]) {
  const states = others.map(other => compare(column, best, other)?.state ?? "untested");
  return states.find(state => typeof state === "string") ?? others.filter((_, at) => states[at] === 0);
}
function say(column, asked) {
  const [best, ...others] = asked;
  const cell = column.cells[best];
  const states = new Set(asked.map(number => column.cells[number].state));
  if (!others.length) {
    const verb = { above: "is significantly above its control", below: "is significantly below its control",
      not: "is not significantly above its control" }[cell.state] ?? "cannot be tested";
    const by = cell.state === "above" && column.share ? ` by ${cell.gain.toFixed(1)}` : "";
    return [ALONE, `${names[best]} ${verb} on `, column.name + by];
  }
  if (!states.has("above") && (states.has("below") || states.has("not")))
    return [NONE, "no model is significantly above its control on ", column.name];
  const tied = tiedOf(column, asked);
  if (typeof tied === "string") return [UNTESTED, "models cannot be compared on ", `${column.name} (${tied})`];
  if (tied.length) {
    const [who, than] = tied.length > 1 ? [`${tied.length} others`, ""]
      : [names[tied[0]], ` against ${column.cells[tied[0]].text}`];
    return [TIES, `${names[best]} is first but not significantly better than `, `${who} on ${column.name} (${cell.text}${than})`];
  }
  return [LEADS, `${names[best]} leads${others.length > 1 ? "" : ` ${names[others[0]]}`} on `,
    column.name + (column.share ? ` by ${Math.abs(compare(column, best, others[0]).difference).toFixed(1)}` : "")];
}
function title(models) {
  const said = new Map();
  columns.forEach(column => {
    const asked = askedOf(column, models);
    if (!asked.length) return;
    const [rank, start, item] = say(column, asked);
    if (!said.has(start)) said.set(start, [rank, start, []]);
    said.get(start)[2].push(item);
  });
  const every = [...said.values()].sort((a, b) => a[0] - b[0]);
  const compared = every.filter(([rank]) => rank < ALONE);
  const clauses = compared.length ? compared : every;
  const text = clauses.map(([, start, items]) =>
    start + listed(items) + (items.at(-1).includes(" by ") ? " points" : "")).join("; ");
  return names.some(name => text.startsWith(`${name} `)) ? text : text.slice(0, 1).toUpperCase() + text.slice(1);
}

// Who is shown: those of a kind and with these words; of them a reader may choose some.
function shown({ choices }) {
  const words = (choices.get("find") ?? "").toLowerCase().split(/\s+/);
  const every = names.map((_, at) => at);
  const pool = every.filter(at => words.every(word => names[at].toLowerCase().includes(word))
    && (!choices.get("kind") || board.models[at].kind === choices.get("kind")));
  const chosen = every.filter(at => selectedModels().includes(names[at]));
  return { pool, chosen, subject: chosen.length ? chosen : pool };
}
// The columns that all of these models have.
const common = models => columns.filter(column => column.share && models.every(model => column.cells[model]));
// The first and last rank that the tests leave open to each of these models.
const ranks = (models, on) => new Map(models.map(model => [model, [
  1 + models.filter(other => beats(other, model, on)).length,
  models.length - models.filter(other => beats(model, other, on)).length]]));
// By one column, else by the ranks, then by the mean difference to the control on what all have.
function ordered(models, column) {
  const open = ranks(models, columns);
  const by = common(models);
  const keys = new Map(models.map(model => {
    if (column) return [model, [column.cells[model]?.place ?? names.length, 0]];
    const gains = (by.length ? by : columns).map(one => one.cells[model]?.gain ?? 0);
    return [model, [open.get(model)[0] + open.get(model)[1], -gains.reduce((sum, gain) => sum + gain, 0)]];
  }));
  const less = (a, b) => a[0] - b[0] || a[1] - b[1];
  return [...models].sort((a, b) => less(keys.get(a), keys.get(b)) || a - b);
}
// Whether a is significantly better than b somewhere, and nowhere worse.
const beats = (a, b, on) => {
  const tests = on.map(column => compare(column, a, b)).filter(test => test);
  return tests.some(test => test.better) && !tests.some(test => test.state === 1 && !test.better);
};

// The best of these models and who is not significantly worse, as in the title.
function boldOf(column, models) {
  const asked = askedOf(column, models);
  const tied = tiedOf(column, asked);
  return asked.length > 1 && typeof tied !== "string" ? [asked[0], ...tied] : [];
}
function cellOf(column, model, isBold) {
  const cell = column.cells[model];
  const td = node("td", { className: cell ? `cell ${cell.state}` : "cell none" });
  td.dataset.benchmark = column.name;
  if (!cell) { td.append(node("span", { className: "unseen", textContent: "not asked" })); return td; }
  td.title = `${names[model]} on ${column.name}\n${cell.about}`;
  const figure = node("span", { className: "figure" }, node(isBold ? "b" : "span", { textContent: cell.text }));
  if (cell.state === "below") figure.prepend(node("span", { className: "mark", textContent: "▾" }));
  if (cell.letters) figure.append(node("sup", { textContent: cell.letters }));
  td.append(figure);
  if (column.share) {
    const bar = node("i", { className: "bar" }, node("i"), node("u"));
    const [from, to] = [cell.control ?? 0, cell.value];
    bar.classList.toggle("down", to < from);
    bar.style.cssText = `--size:${Math.abs(to - from)}%;--control:${from}%`;
    if (cell.control === null || cell.control === undefined) bar.lastChild.remove();
    td.append(bar);
  }
  const why = { not: "not significantly above its control", below: "significantly below its control",
    untestable: "its control cannot be tested" }[cell.state];
  if (why) td.append(node("span", { className: "unseen", textContent: `, ${why}` }));
  return td;
}

function headOf(column, sorted) {
  const about = [`${column.metric}, n=${round(column.queries)}`];
  if (column.lower) about.push("low is good");
  const button = node("button", { type: "button", textContent: column.name });
  button.addEventListener("click", () => choose("sort", sorted ? null : column.name));
  const th = node("th", { scope: "col" }, button, ...about.map(text => node("small", { textContent: text })));
  th.dataset.benchmark = column.name;
  if (sorted) th.setAttribute("aria-sort", column.lower ? "ascending" : "descending");
  return th;
}

// The matrix of these models, the best first.
function matrix(models, { dense, sort, chosen, isRest }) {
  const wide = names.length > DENSE;
  const open = wide ? ranks(models, sort ? [sort] : columns) : new Map();
  const bold = columns.map(column => isRest ? [] : boldOf(column, models));
  const place = model => node("span", { className: "place", textContent: [...new Set(open.get(model))].join("–") });
  const rows = models.map(model => {
    const isChosen = chosen.includes(model);
    const button = node("button", { type: "button", textContent: names[model] });
    button.setAttribute("aria-pressed", isChosen);
    const head = node("th", { scope: "row" }, ...(wide ? [place(model)] : []), button,
      ...(wide ? [] : [node("small", { textContent: board.models[model].kind })]));
    const row = node("tr", { className: isChosen ? "chosen" : "" }, head, ...columns.map((column, at) => cellOf(column, model, bold[at].includes(model))));
    row.addEventListener("click", () => toggle(model));
    return row;
  });
  const label = node("th", { scope: "col" }, node("span", { className: "unseen", textContent: "model" }));
  const head = node("thead", {}, node("tr", {}, label, ...columns.map(column => headOf(column, column === sort))));
  const caption = node("caption", { className: "unseen", textContent: isRest ? "The other models" : "Models by benchmark" });
  const table = node("table", { className: `matrix${dense ? " dense" : ""}${isRest ? " rest" : ""}` },
    caption, head, node("tbody", {}, ...rows));
  return node("div", { className: "sideways" }, table);
}

function toggle(model) {
  const { chosen } = shown(address());
  const models = chosen.includes(model) ? chosen.filter(one => one !== model) : [...chosen, model];
  choose("models", models.length === names.length && models.length > 2 ? null : models.map(at => names[at]).join(","));
  const button = $("#board .matrix th button").find(one => one.textContent === names[model]);
  button?.focus({ preventScroll: true });
  if (models.length === 2 && !chosen.includes(model)) document.getElementById("title").scrollIntoView({ block: "nearest" });
}

// Two models: their differences on one axis, and how many queries each has right.
function duel(a, b) {
  const both = columns.map(column => ({ column, test: compare(column, a, b) }))
    .filter(({ column }) => column.cells[a] && column.cells[b]);
  const box = node("section", { className: "duel" });
  box.setAttribute("aria-label", `${names[a]} against ${names[b]}`);
  const tested = both.filter(({ test, column }) => test && column.share);
  const numbers = tested.flatMap(({ test }) => [test, ...test.relations.map(([, difference, low, high]) => ({ difference, low, high }))])
    .flatMap(({ difference, low, high }) => [difference, low ?? 0, high ?? 0]);
  const reach = Math.min(100, 10 * Math.ceil(Math.max(5, ...numbers.map(Math.abs)) / 10));
  const at = value => `${50 + 50 * Math.max(-1, Math.min(1, value / reach))}%`;
  const line = ({ difference, low, high }, clear) => {
    const axis = node("span", { className: `axis${clear ? "" : " open"}` }, node("i"), node("b"));
    axis.style.cssText = `--at:${at(difference)};--low:${at(low ?? difference)};--high:${at(high ?? difference)}`;
    axis.setAttribute("aria-hidden", "true");
    return axis;
  };
  box.append(node("p", { className: "sides" }, node("span"),
    node("span", {}, node("span", { className: "b", textContent: `← ${names[b]} better` }), node("span", { textContent: `±${reach} points, ${board.confidence} % intervals` }),
      node("span", { className: "a", textContent: `${names[a]} better →` }))));
  both.forEach(({ column, test }) => {
    const row = node("div", { className: "pair" });
    const winner = test && (test.better ? a : b);
    const unit = column.share ? " points" : "";
    const verdict = !test ? "not tested against each other"
      : typeof test.state === "string" ? `cannot be tested: ${test.state}`
        : test.state === 1 ? `${names[winner]} is better` : "not significantly different";
    const power = test && typeof test.state !== "string" && test.smallest !== null
      ? `${round(column.queries)} queries find a difference of ${signed(test.smallest).slice(1)}${unit} in 8 of 10 cases.` : "";
    row.append(node("div", { className: "name" }, node("a", { href: `#${column.name}`, textContent: column.name }),
      node("small", { textContent: column.metric })),
    test && column.share ? line(test, test.state === 1) : node("span"),
    node("div", {}, node("p", {}, node("b", { textContent: verdict }),
      test ? `, ${signed(test.difference)}${interval(test.low, test.high)}` : ""),
    node("p", { className: "quiet", textContent: power })));
    if (test?.parts) row.append(fourParts(column, a, b, test.parts));
    if (test?.relations.length > 1 && column.share) {
      const relations = [...test.relations].sort((x, y) => y[1] - x[1]);
      const fold = node("details", { open: both.length === 1 }, node("summary", { textContent: `By relation (${relations.length})` }),
        node("ul", {}, ...relations.map(([name, difference, low, high]) => node("li", {},
          node("span", { textContent: name }), line({ difference, low, high }, low > 0 || high < 0),
          node("span", { textContent: signed(difference) + interval(low, high) })))));
      row.append(fold);
    }
    box.append(row);
  });
  if (!both.length) box.append(node("p", { textContent: "No benchmark was asked of both." }));
  return box;
}

const PARTS = [["only-a", a => `only ${a}`], ["both", () => "both"], ["only-b", (_, b) => `only ${b}`], ["neither", () => "neither"]];
function fourParts(column, a, b, counts) {
  const links = PARTS.map(([show, label], at) => {
    const choices = new URLSearchParams({ subset: column.subset, a: column.cells[a].system, b: column.cells[b].system, show });
    if (column.k) choices.set("k", column.k);
    const href = `queries/${encodeURIComponent(column.name)}.html#${queryString(choices)}`;
    const part = node("a", { href, className: show, title: `${counts[at]} queries: ${label(names[a], names[b])}` });
    part.style.flexGrow = counts[at];
    part.tabIndex = -1;
    part.setAttribute("aria-hidden", "true");
    return [part, node("a", { href }, node("i", { className: show }), `${label(names[a], names[b])} `, node("b", { textContent: round(counts[at]) }))];
  });
  return node("div", { className: "parts-of-four" },
    node("div", { className: "four" }, ...links.map(([part]) => part).filter((_, at) => counts[at])),
    node("p", {}, "Right: ", ...links.map(([, link]) => link)));
}

// Search, kinds and, on a phone, the benchmark that is shown.
function tools(here) {
  const { choices } = here;
  const parts = [];
  if (names.length > DENSE) {
    const find = node("input", { type: "search", placeholder: `Find one of ${names.length} models`, value: choices.get("find") ?? "", id: "find" });
    find.setAttribute("aria-label", "Find models by name");
    find.addEventListener("input", () => {
      const at = find.selectionStart;
      choose("find", find.value);
      const again = document.getElementById("find");
      again.focus();
      again.setSelectionRange(at, at);
    });
    parts.push(find);
    const kinds = [...new Set(board.models.map(model => model.kind))].filter(Boolean);
    if (kinds.length > 1) {
      const menu = node("select", {}, ...["", ...kinds].map(kind => node("option", { value: kind, textContent: kind || "all kinds" })));
      menu.setAttribute("aria-label", "Kind of model");
      menu.value = choices.get("kind") ?? "";
      menu.addEventListener("change", () => choose("kind", menu.value));
      parts.push(menu);
    }
  }
  if (columns.length > 1) {
    const menu = node("select", { className: "only-phone" }, ...columns.map(({ name }) => node("option", { value: name, textContent: name })));
    menu.setAttribute("aria-label", "Benchmark");
    menu.value = sortColumn(here).name;
    menu.addEventListener("change", () => choose("sort", menu.value));
    if (!parts.length && !selectedModels().length) return [node("div", { className: "controls only-phone" }, menu)];
    parts.push(menu);
  }
  if (selectedModels().length) {
    const all = node("button", { type: "button", className: "clear", textContent: `All ${names.length} models` });
    all.addEventListener("click", () => choose("models", null));
    parts.push(all);
  }
  return parts.length ? [node("div", { className: "controls" }, ...parts)] : [];
}
const sortColumn = ({ choices }) => columns.find(({ name }) => name === choices.get("sort")) ?? columns[0];

// One line above the rows: their order, what a click does, and what is not compared.
function orderOf(models, sort) {
  const said = [];
  if (names.length > 2) {
    const missing = models.filter(model => phone.matches && !sort.cells[model]).length;
    said.push((sort ? `Ranked on ${sort.name}` : "Ranked by all tests, then by mean difference to the control")
      + (missing ? `; ${missing} not asked.` : "."), `Click two models to compare${phone.matches ? "" : ", a benchmark to sort"}.`);
  }
  (phone.matches ? [sort] : columns).forEach(column => {
    const tied = tiedOf(column, askedOf(column, models));
    if (typeof tied === "string") said.push(`Not compared on ${column.name}: ${tied}.`);
  });
  return said.join(" ");
}

function showBoard() {
  const here = address();
  const box = document.getElementById("board");
  if (!box) return;
  const { pool, chosen, subject } = shown(here);
  const sort = phone.matches || here.choices.has("sort") ? sortColumn(here) : null;
  const about = { dense: pool.length + chosen.length > DENSE && names.length > DENSE, sort, chosen };
  const first = ordered(subject, sort);
  const heading = title(subject) || "No model has these words";
  const head = document.getElementById("title");
  head.textContent = heading;
  head.classList.toggle("long", heading.length > 90);
  document.title = `medprobe: ${heading}`;
  const rest = chosen.length ? ordered(pool.filter(at => !chosen.includes(at)), sort) : [];
  const legend = document.querySelector(".legend");
  box.replaceChildren(...tools(here), node("p", { className: "quiet order", textContent: orderOf(subject, sort) }),
    matrix(first, about), legend, ...(first.length === 2 ? [duel(...first)] : []),
    ...(rest.length ? [matrix(rest, { ...about, isRest: true })] : []));
  box.style.setProperty("--columns", columns.length);
  box.style.setProperty("--longest", Math.max(...names.map(name => name.length)));
  $("[data-benchmark]", box).forEach(cell => cell.classList.toggle("here", cell.dataset.benchmark === sortColumn(here).name));
  // the legend has the marks that are seen
  $("[data-mark]", legend).forEach(entry => { entry.hidden = !$(`.matrix ${entry.dataset.mark}`, box).some(mark => mark.offsetParent); });
}
phone.addEventListener("change", showBoard);
