// What both pages share: small helpers, tables, and their sorting.
const $ = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const data = element => JSON.parse(element.textContent);
const node = (tag, attributes = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...children);
  return element;
};
const round = number => number === null || number === undefined ? "–"
  : Number.isInteger(number) ? number.toLocaleString("en") : String(+number.toPrecision(3));
// Choices as part of the URL.
const queryString = choices => choices.toString()
  .replace(/%(2C|3A|2F|C2%B7)/g, code => decodeURIComponent(code)).replaceAll("+", "%20");

// The skip link moves the focus and leaves the URL, which has the selection, as it is.
document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  document.getElementById("main").focus();
});

// Cells are texts, numbers, elements, or {text, sort}.
function table(heads, rows, caption) {
  const cell = value => {
    if (value instanceof Node) return value.tagName === "TD" ? value : node("td", {}, value);
    if (value !== null && typeof value === "object") {
      const td = node("td", { textContent: value.text });
      td.dataset.sort = value.sort;
      return td;
    }
    if (typeof value !== "number") return node("td", { textContent: value ?? "–" });
    const td = node("td", { textContent: round(value) });
    td.dataset.sort = value;
    return td;
  };
  const head = node("thead", {}, node("tr", {}, ...heads.map(text =>
    node("th", { scope: "col" }, node("button", { textContent: text })))));
  const body = node("tbody", {}, ...rows.map(row => node("tr", {}, ...row.map(cell))));
  const element = node("table", {}, ...(caption ? [node("caption", {}, node("span", { textContent: caption }))] : []), head, body);
  align(element);
  const box = node("div", { className: "scroll", tabIndex: 0 }, element);
  return node("div", {}, box, takeAlong(element));
}

// Buttons that copy a table for a spreadsheet, and save it as CSV, with the rows that are shown.
function takeAlong(element) {
  const text = cell => [cell.firstChild?.textContent ?? "",
    ...$("small", cell).map(note => `(${note.textContent.replaceAll("\n", " ")})`)].join(" ");
  const rows = () => [...element.rows].filter(row => !row.hidden && !row.classList.contains("hide"))
    .map(row => [...row.cells].map(text));
  const button = (label, act) => {
    const made = node("button", { type: "button", textContent: label });
    made.addEventListener("click", () => act(made));
    return made;
  };
  const copy = button("copy", made => navigator.clipboard
    .writeText(rows().map(row => row.join("\t")).join("\n"))
    .then(() => { made.textContent = "copied"; }, () => { made.textContent = "not allowed"; }));
  const save = button("CSV", () => {
    const quoted = value => /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
    const csv = rows().map(row => row.map(quoted).join(",")).join("\n");
    const url = URL.createObjectURL(new Blob([`${csv}\n`], { type: "text/csv" }));
    const name = `${document.querySelector(".chapter.open")?.id ?? document.body.dataset.benchmark ?? "table"}.csv`;
    node("a", { href: url, download: name }).click();
    URL.revokeObjectURL(url);
  });
  return node("p", { className: "along" }, ...(navigator.clipboard ? [copy] : []), save);
}

const LONG_TEXT = 34; // letters; a cell with more is broken into lines

// A column that holds numbers stands to the right, with its head and what is missing.
function align(element) {
  const rows = [...element.tBodies[0].rows];
  rows.forEach(row => [...row.cells].forEach(cell =>
    cell.classList.toggle("long", cell.firstChild?.textContent.length > LONG_TEXT)));
  [...element.tHead.rows[0].cells].forEach((head, at) => {
    const column = rows.map(row => row.cells[at]);
    if (!column.some(cell => cell.dataset.sort !== undefined)) return;
    [head, ...column].forEach(cell => cell.classList.add("number"));
  });
}
$("table").forEach(element => {
  align(element);
  element.parentElement.after(takeAlong(element));
});

// Sorting: numbers from the highest, words from A; what is missing comes last.
document.addEventListener("click", event => {
  const head = event.target.closest("th");
  if (!head || !event.target.closest("button")) return;
  const at = [...head.parentElement.children].indexOf(head);
  const body = head.closest("table").tBodies[0];
  const value = row => {
    const { dataset: { sort, order }, textContent } = row.cells[at];
    return sort ?? order ? Number(sort ?? order) : textContent;
  };
  const rows = [...body.rows];
  const before = head.getAttribute("aria-sort");
  const first = rows.some(row => typeof value(row) === "number") ? "descending" : "ascending";
  const now = before === null ? first : before === "ascending" ? "descending" : "ascending";
  const way = now === "ascending" ? 1 : -1;
  const missing = row => value(row) === "–";
  rows.sort((a, b) => missing(a) - missing(b) || way * (typeof value(a) === "number"
    && typeof value(b) === "number" ? value(a) - value(b)
    : String(value(a)).localeCompare(String(value(b)), undefined, { numeric: true })));
  $("th", head.parentElement).forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", now);
  body.append(...rows);
});
