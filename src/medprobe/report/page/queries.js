// Two systems side by side, query by query (report/queries.py says what `content` and the pieces
// hold). What is chosen stands in the address: #a=…&b=…&k=1&show=only-a&relation=…&query=…
const { systems, queries, best, piece: PIECE, heads, ranked, right: RIGHT, called: CALLED } =
  data(document.getElementById("content"));
const called = systems.map(([model, method]) => `${model} · ${method}`);
const SHOWN = 100; // rows at first

const choices = () => new URLSearchParams(location.hash.slice(1));
function choose(key, value) {
  const now = choices();
  if (value) now.set(key, value); else now.delete(key);
  history.replaceState(null, "", `#${said(now)}`);
  show();
}
// Those that are right or wrong, among which to choose.
const judged = systems.map((_, at) => at).filter(at => !best[at].includes("."));
// The best rank that is right, or none among the ten.
const rank = (system, at) => parseInt(best[system]?.[at], 11) || null;

// The answers stand in files beside this one, so many queries each; a file is opened once.
const pieces = new Map();
function piece(number, content) { pieces.get(number).came(content); }
function answered(at) {
  const number = Math.floor(at / PIECE);
  if (!pieces.has(number)) {
    const file = node("script", { src: `${document.body.dataset.benchmark}/${number}.js` });
    const waiting = {};
    waiting.content = new Promise((came, lost) => Object.assign(waiting, { came, lost }));
    file.addEventListener("error", () => { pieces.delete(number); waiting.lost(file.src); });
    pieces.set(number, waiting);
    document.head.append(file);
  }
  return pieces.get(number).content.then(({ names, ranked }) =>
    ranked[at % PIECE].map(([found, right]) => ({ found: found.map(one => names[one]), right })));
}

// At first: two models under the first method that asks two.
const methods = [...new Set(systems.map(([, method]) => method))];
const [one, other = one] = methods
  .map(method => judged.filter(at => systems[at][1] === method))
  .find(found => found.length > 1) ?? judged;

const controls = document.getElementById("controls");
function select(label, key, options, first) {
  const made = node("select", {}, ...options.map(text => node("option", { value: text, textContent: text })));
  made.addEventListener("change", () => choose(key, made.value === first ? "" : made.value));
  controls.append(node("label", {}, label, made));
  return () => {
    const wanted = choices().get(key);
    return (made.value = options.includes(wanted) ? wanted : first);
  };
}
const unique = at => [...new Set(queries.map(query => query[at]))];
const subset = select("Subset", "subset", unique(1), queries[0][1]);
const relation = select("Relation", "relation", ["all", ...unique(2)], "all");
const first = select("A", "a", judged.map(at => called[at]), called[one]);
const second = select("B", "b", judged.map(at => called[at]), called[other]);
const among = ranked ? select("Right among the first", "k", ["1", "5", "10"], "1") : () => "1";
const search = node("input", { type: "search", placeholder: "query, subject or answer" });
search.addEventListener("input", () => choose("search", search.value));
controls.append(node("label", {}, "Search", search));

const GROUPS = {
  all: ["All"], "only-a": [`A ${RIGHT}, B not`, (a, b) => a && !b],
  "only-b": [`B ${RIGHT}, A not`, (a, b) => b && !a], both: [`Both ${RIGHT}`, (a, b) => a && b],
  neither: ["Neither", (a, b) => !a && !b],
};
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
  const wanted = (now.get("search") ?? "").toLowerCase();
  if (document.activeElement !== search) search.value = now.get("search") ?? "";
  const inside = queries.map((query, at) => ({ query, at })).filter(({ query }) =>
    query[1] === part && (kind === "all" || query[2] === kind)
    && (!wanted || query.flat().some(text => text.toLowerCase().includes(wanted))));
  const right = (system, at) => rank(system, at) !== null && rank(system, at) <= k;
  const group = GROUPS[now.get("show")] ? now.get("show") : "all";
  const asked = at => best[a][at] !== " " && best[b][at] !== " ";
  const members = name => inside.filter(({ at }) =>
    name === "all" || (asked(at) && GROUPS[name][1](right(a, at), right(b, at))));
  Object.keys(GROUPS).forEach((name, at) => {
    buttons[at].textContent = `${GROUPS[name][0]}: ${members(name).length}`;
    buttons[at].setAttribute("aria-pressed", name === group);
  });
  list(members(group), a, b);
  detail(queries.findIndex(query => query[0] === now.get("query")));
}

function list(rows, a, b) {
  const prompts = queries.some(query => query[4]);
  const about = prompts ? 4 : 3;
  const subjects = queries.some(query => query[about]) ? [prompts ? "prompt" : "subject"] : [];
  const columns = ["query", "relation", ...subjects, CALLED.toLowerCase(),
    ...(ranked ? ["rank in A", "rank in B"] : ["A", "B"])];
  const mark = at => ranked || at === null ? at : "✓";
  const line = ({ query, at }) => {
    const address = choices();
    address.set("query", query[0]);
    const link = node("a", { href: `#${said(address)}`, textContent: query[0] });
    return [link, query[2], ...subjects.map(() => query[about]), query[5].join(", "),
      mark(rank(a, at)), mark(rank(b, at))];
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
  const asked = systems.map((_, system) => system).filter(system => best[system][at] !== " ")
    .sort((a, b) => (rank(a, at) ?? Infinity) - (rank(b, at) ?? Infinity) || a - b);
  box.replaceChildren(node("p", { textContent: `Answers to ${id} …` }));
  const given = await answered(at).catch(file => file);
  if (choices().get("query") !== id) return; // another was chosen meanwhile
  if (typeof given === "string") {
    box.replaceChildren(node("p", { textContent: `The answers are in ${given}, which is not there.` }), close);
    return;
  }
  const cell = (system, place) => {
    const { found, right } = given[system];
    if (place >= found.length) return "";
    return right.includes(place + 1) ? node("b", { textContent: `✓ ${found[place]}` }) : found[place];
  };
  const lines = asked.map(system => [called[system], ...own.map((_, place) => cell(system, place))]);
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
