// Sortable tables. A column is {title, show(row), key(row), numeric, wide, fixed, hint}: without key it does not sort,
// wide ones wrap lines, fixed ones stay visible at the right.

function compare(a, b) {
  if (!known(a) || !known(b)) return known(b) - known(a); // what is missing comes last, whichever way one sorts
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

function table(title, columns, rows, { search = null, first = 40 } = {}) {
  let order = null, shown = first, words = "";
  const body = el("tbody"), more = el("button", { type: "button", class: "more", onclick: () => { shown = Infinity; draw(); } });
  const look = (column) => ["numeric", "wide", "fixed"].find((kind) => column[kind]);
  const headers = columns.map((column, i) => el("th", { scope: "col", class: look(column), title: column.hint },
    column.key ? el("button", { type: "button", onclick: () => sort(i) }, column.title, el("span", { class: "arrow", "aria-hidden": "true" }))
      : column.title));

  function sort(i) {
    const again = order && order.column === i;
    order = { column: i, down: again ? !order.down : Boolean(columns[i].numeric) }; // of numbers one looks for the largest
    draw();
  }

  function draw() {
    let chosen = words ? rows.filter((row) => words.split(/\s+/).every((word) => search(row).toLowerCase().includes(word))) : rows;
    if (order) {
      const key = columns[order.column].key, sign = order.down ? -1 : 1;
      chosen = [...chosen].sort((a, b) => (known(key(a)) && known(key(b)) ? sign : 1) * compare(key(a), key(b)));
    }
    headers.forEach((header, i) => {
      const active = order && order.column === i;
      if (columns[i].key) header.setAttribute("aria-sort", active ? (order.down ? "descending" : "ascending") : "none");
    });
    body.replaceChildren(...chosen.slice(0, shown).map((row) => el("tr", {}, columns.map((column) =>
      el("td", { class: look(column) }, column.show(row))))));
    if (!chosen.length) body.append(el("tr", {}, el("td", { colspan: columns.length, class: "note" }, "Nothing matches.")));
    more.hidden = chosen.length <= shown;
    more.textContent = `Show all ${chosen.length.toLocaleString("en")} rows`;
  }

  const find = search && rows.length > 8 ? el("input", { type: "search", placeholder: "Filter rows", "aria-label": `Filter ${title}`,
    oninput: (event) => { words = event.target.value.trim().toLowerCase(); draw(); } }) : null;
  draw();
  return el("div", { class: "table" }, find,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      el("table", {}, el("caption", { class: "hidden" }, title), el("thead", {}, el("tr", {}, headers)), body)), more);
}
