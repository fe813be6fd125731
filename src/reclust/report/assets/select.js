// Choose samples of a map by words or with a lasso, and save their ids.

function selectionView(canvas, { n, place, words, id, cluster, redraw }) {
  let chosen = null, path = null;
  const find = el("input", { type: "search", placeholder: "Find samples", "aria-label": "Find samples on the map", oninput: () => {
    const wanted = find.value.trim().toLowerCase();
    choose(wanted ? all((i) => words(i).toLowerCase().includes(wanted)) : null);
  } });
  const lasso = el("button", { type: "button", "aria-pressed": "false", onclick: () => {
    lasso.setAttribute("aria-pressed", String(canvas.classList.toggle("lasso")));
  } }, "Lasso");
  const save = el("button", { type: "button", hidden: true, onclick: () => {
    const lines = [...chosen].map((i) => `"${String(id(i)).replaceAll('"', '""')}",${cluster(i)}\n`);
    const link = URL.createObjectURL(new Blob(["id,cluster\n", ...lines], { type: "text/csv" }));
    el("a", { href: link, download: "selected.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(link), 1000);
  } });
  const all = (test) => Array.from({ length: n }, (_, i) => i).filter(test);

  function choose(samples) {
    chosen = samples && new Set(samples);
    save.hidden = !chosen;
    save.disabled = chosen && !chosen.size;
    save.textContent = chosen ? `Save ids of ${count(chosen.size, "sample")}` : "";
    redraw();
  }

  const spot = (event) => {
    const box = canvas.getBoundingClientRect(), scale = 256 / box.width;
    return [(event.clientX - box.left) * scale, 255 - (event.clientY - box.top) * scale];
  };
  const inside = ([x, y], corners) => corners.reduce((odd, [x1, y1], i) => {
    const [x2, y2] = corners[(i + 1) % corners.length];
    return (y1 > y) !== (y2 > y) && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1) ? !odd : odd;
  }, false);
  canvas.addEventListener("pointerdown", (event) => { if (canvas.classList.contains("lasso")) path = [spot(event)]; });
  canvas.addEventListener("pointermove", (event) => { if (path) { path.push(spot(event)); redraw(); } });
  addEventListener("pointerup", () => {
    if (!path) return;
    const corners = path;
    path = null;
    find.value = "";
    choose(corners.length > 2 ? all((i) => inside(place(i), corners)) : null); // a click chooses all again
  });
  return { spot, outline: () => path, faded: (i) => chosen !== null && !chosen.has(i), controls: el("div", { class: "controls" }, find, lasso, save) };
}
