// Two systems side by side, query by query. report/queries.py documents `content` and the pieces.
// The selection is saved in the URL: #a=…&b=…&k=1&show=only-a&relation=…&query=…
const { systems, main, ahead, queries, best, piece: PIECE, heads, ranked, right: RIGHT, called: CALLED } =
  data(document.getElementById("content"));
const called = systems.map(([model, method]) => `${model} · ${method}`);
const SHOWN = 100; // rows at first

const choices = () => new URLSearchParams(location.hash.slice(1));
function choose(key, value) {
  const now = choices();
  if (value) now.set(key, value); else now.delete(key);
  history.replaceState(null, "", `#${queryString(now)}`);
  show();
}
// The systems to choose from: those whose answers are right or wrong.
const judged = systems.map((_, at) => at).filter(at => !best[at].includes("."));
// The first rank with a right answer; null if there is none among the ten.
const rank = (system, at) => parseInt(best[system]?.[at], 11) || null;

// The answers are in files next to this page, PIECE queries each; a file is loaded once.
const pieces = new Map();
function piece(number, content) { pieces.get(number).resolve(content); }
function loadAnswers(at) {
  const number = Math.floor(at / PIECE);
  if (!pieces.has(number)) {
    const file = node("script", { src: `${document.body.dataset.benchmark}/${number}.js` });
    const pending = {};
    pending.content = new Promise((resolve, reject) => Object.assign(pending, { resolve, reject }));
    file.addEventListener("error", () => { pieces.delete(number); pending.reject(file.src); });
    pieces.set(number, pending);
    document.head.append(file);
  }
  return pieces.get(number).content.then(({ names, ranked }) =>
    ranked[at % PIECE].map(([places, hits]) =>
      ({ answers: places.map(place => names[place]), hits })));
}

// The page opens on the best main result and the next one, or on the models that the report's URL chose.
const wanted = (choices().get("models") ?? "").split(",");
const mainOf = name => [...main, ...judged].find(at => systems[at][0] === name);
const [defaultA, defaultB = judged[0]] = [...new Set([...wanted.map(mainOf), ...main, ...judged])]
  .filter(at => judged.includes(at));

const controls = document.getElementById("controls");
function select(label, key, options, first) {
  const menu = node("select", {}, ...options.map(text => node("option", { value: text, textContent: text })));
  menu.addEventListener("change", () => choose(key, menu.value === first ? "" : menu.value));
  controls.append(node("label", {}, label, menu));
  return () => {
    const option = choices().get(key);
    return (menu.value = options.includes(option) ? option : first);
  };
}
const unique = at => [...new Set(queries.map(query => query[at]))];
const subset = select("Subset", "subset", unique(1), queries[0][1]);
const relation = select("Relation", "relation", ["all", ...unique(2)], "all");
const first = select("A", "a", judged.map(at => called[at]), called[defaultA]);
const second = select("B", "b", judged.map(at => called[at]), called[defaultB]);
const among = ranked ? select("Right answer among the first", "k", ["1", "5", "10"], "1") : () => "1";
const search = node("input", { type: "search", placeholder: "query, subject or answer" });
search.addEventListener("input", () => choose("search", search.value));
controls.append(node("label", {}, "Search", search));

const GROUPS = {
  all: ["All"], "only-a": [`A ${RIGHT}, B not`, (a, b) => a && !b],
  "only-b": [`B ${RIGHT}, A not`, (a, b) => b && !a], both: [`Both ${RIGHT}`, (a, b) => a && b],
  neither: ["Neither", (a, b) => !a && !b],
  apart: ["A falls apart"], // facts that A answers under some wordings and names, not under others
};
const fact = query => query[0].split("#")[0];
const groups = document.getElementById("groups");
const buttons = Object.keys(GROUPS).map(name => {
  const button = node("button", { type: "button" });
  button.addEventListener("click", () => choose("show", name === "all" ? "" : name));
  groups.append(button);
  return button;
});

function show() {
  const now = choices();
  const [part, kind, k] = [subset(), relation(), Number(among())];
  const [a, b] = [called.indexOf(first()), called.indexOf(second())];
  const words = (now.get("search") ?? "").toLowerCase();
  if (document.activeElement !== search) search.value = now.get("search") ?? "";
  const inside = queries.map((query, at) => ({ query, at })).filter(({ query }) =>
    query[1] === part && (kind === "all" || query[2] === kind)
    && (!words || query.flat().some(text => text.toLowerCase().includes(words))));
  const right = (system, at) => rank(system, at) !== null && rank(system, at) <= k;
  const group = GROUPS[now.get("show")] ? now.get("show") : "all";
  const inBoth = at => best[a][at] !== " " && best[b][at] !== " ";
  const facts = verdict => new Set(inside.filter(({ at }) => right(a, at) === verdict)
    .map(({ query }) => fact(query)));
  const [known, unknown] = [facts(true), facts(false)];
  const apart = query => known.has(fact(query)) && unknown.has(fact(query));
  const members = name => inside.filter(({ query, at }) => name === "all" || (name === "apart"
    ? apart(query) : inBoth(at) && GROUPS[name][1](right(a, at), right(b, at))));
  Object.keys(GROUPS).forEach((name, at) => {
    buttons[at].textContent = `${GROUPS[name][0]}: ${members(name).length}`;
    buttons[at].hidden = name === "apart" && !/(^|-)families$/.test(part);
    buttons[at].setAttribute("aria-pressed", name === group);
  });
  list(members(group), a, b);
  document.getElementById("status").textContent = buttons[Object.keys(GROUPS).indexOf(group)].textContent;
  detail(queries.findIndex(query => query[0] === now.get("query")));
}

// What a system answered, as soon as it is loaded: its first name, or the last cell of another layout;
// below it the rank of the first right answer. Sorted by this rank.
function answered(system, at) {
  const text = node("span", { textContent: "…" });
  const place = rank(system, at);
  const cell = node("td", {}, text);
  if (place === 1 || (place && !ranked)) text.className = "right";
  else if (place) cell.append(node("small", { textContent: `right answer at ${place}` }));
  cell.dataset.order = place ?? 99;
  loadAnswers(at).then(loaded => {
    text.textContent = loaded[system].answers.at(ranked ? 0 : -1) ?? "–";
  }).catch(() => { text.textContent = "file is missing"; });
  return cell;
}

function list(rows, a, b) {
  const prompts = queries.some(query => query[4]);
  const about = prompts ? 4 : 3;
  const subjects = queries.some(query => query[about]) ? [prompts ? "prompt" : "subject"] : [];
  const columns = ["query", ...subjects, CALLED.toLowerCase(), `A: ${called[a]}`, `B: ${called[b]}`, "relation"];
  const line = ({ query, at }) => {
    const address = choices();
    address.set("query", query[0]);
    const link = node("a", { href: `#${queryString(address)}`, textContent: query[0] });
    return [link, ...subjects.map(() => query[about]), query[5].join(", "), answered(a, at), answered(b, at), query[2]];
  };
  const box = document.getElementById("list");
  box.replaceChildren(table(columns, rows.slice(0, SHOWN).map(line)));
  if (rows.length > SHOWN) {
    const more = node("button", { type: "button", textContent: `All ${round(rows.length)} queries` });
    more.addEventListener("click", () => box.replaceChildren(table(columns, rows.map(line))));
    box.append(more);
  }
}

// One query's answers under every model and method.
async function detail(at) {
  const box = document.getElementById("query");
  if (at < 0) { box.replaceChildren(); return; }
  const [id, , kind, subject, prompt, answers, own = heads] = queries[at];
  const close = node("button", { type: "button", textContent: "Close" });
  close.addEventListener("click", () => choose("query", ""));
  const answering = systems.map((_, system) => system).filter(system => best[system][at] !== " ")
    .sort((a, b) => (rank(a, at) ?? Infinity) - (rank(b, at) ?? Infinity) || a - b);
  box.replaceChildren(node("p", { textContent: `Answers to ${id} …` }));
  const loaded = await loadAnswers(at).catch(file => file);
  if (choices().get("query") !== id) return; // another query was selected in the meantime
  if (typeof loaded === "string") {
    box.replaceChildren(node("p", { textContent: `The file with the answers is missing: ${loaded}` }), close);
    return;
  }
  const cell = (system, place) => {
    const { answers: names, hits } = loaded[system];
    if (place >= names.length) return "";
    return hits.includes(place + 1) ? node("b", { textContent: `✓ ${names[place]}` }) : names[place];
  };
  const name = system => called[system] + (ahead.includes(system) ? " (names ahead)" : "");
  const lines = answering.map(system => [name(system), ...own.map((_, place) => cell(system, place))]);
  box.replaceChildren(
    node("h2", { textContent: id }),
    node("p", { textContent: [kind, prompt || subject].filter(Boolean).join(": ") }),
    node("p", { textContent: `${CALLED}: ${answers.join(", ")}` }),
    table(["model · method", ...own], lines), close);
}

window.addEventListener("hashchange", () => {
  show();
  if (choices().get("query")) window.scrollTo(0, 0);
});
show();
