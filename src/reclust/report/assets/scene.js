// Embeddings over training: points in a plane, and a slider over epochs and resets.

function bytes(text) {
  const raw = atob(text);
  return Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
}

const frameTitle = (frame) => (frame.reset ? `epoch ${frame.epoch}, right after the reset` : frame.epoch === 0 ? "start" : `epoch ${frame.epoch}`);

// A triangle at the border that points to a sample outside the frame.
function arrow(ink, x, y, middle, dense) {
  const angle = Math.atan2(y - middle, x - middle), limit = 2 * middle - 6 * dense;
  const [cx, cy] = [x, y].map((one) => Math.min(Math.max(one, 6 * dense), limit));
  for (const turn of [0, 2.4, -2.4]) ink.lineTo(cx + 5 * dense * Math.cos(angle + turn), cy + 5 * dense * Math.sin(angle + turn));
  ink.closePath();
}

function sceneView(scene) {
  const points = bytes(scene.points), clusters = typeof scene.clusters === "string" ? bytes(scene.clusters) : scene.clusters, n = scene.rows.length, k = scene.n_clusters, all = n + k;
  const names = scene.classes ? [...new Set(scene.classes)].sort(compare) : [];
  let place = scene.frames.length - 1, position = place, by = scene.classes ? "class" : "cluster", playing = null, asked = 0;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const canvas = el("canvas", { role: "img", "aria-label": "Embeddings in a plane" });
  const moment = el("output", { class: "epoch" }), about = el("p", { class: "note", role: "status" }, "Hover over a point to see its sample.");
  const legend = el("div", { class: "names" });
  const marks = el("datalist", { id: freshId("marks") }, scene.frames.map((frame, i) => (frame.reset ? el("option", { value: i }) : null)));
  const slider = el("input", { type: "range", min: 0, max: scene.frames.length - 1, step: 1, value: place, list: marks.id,
    "aria-label": "Epoch", oninput: () => { stop(); go(Number(slider.value)); } });
  const play = el("button", { type: "button", onclick: () => (playing === null ? start() : stop()) }, "Play");

  const at = (frame, i, axis) => points[(frame * all + i) * 2 + axis];
  const middle = (i, axis) => {
    const low = Math.floor(position), high = Math.min(low + 1, scene.frames.length - 1), share = position - low;
    return at(low, i, axis) * (1 - share) + at(high, i, axis) * share;
  };
  const colorOf = (i) => (by === "class" ? names.indexOf(scene.classes[i]) : clusters[Math.round(position) * n + i]);

  const outside = (i) => [0, 1].some((axis) => middle(i, axis) <= 0 || middle(i, axis) >= 255);
  const says = (i) => `Sample ${scene.names ? scene.names[i] : scene.rows[i]}${scene.classes ? `, class ${scene.classes[i]}` : ""}, cluster ${clusters[place * n + i]}`;
  const selection = selectionView(canvas, { n, place: (i) => [middle(i, 0), middle(i, 1)], words: says, id: (i) => (scene.names || scene.rows)[i],
    cluster: (i) => clusters[place * n + i], redraw: () => draw() });

  function draw() {
    const size = canvas.clientWidth, dense = window.devicePixelRatio || 1;
    if (!size) return;
    canvas.width = canvas.height = size * dense;
    const ink = canvas.getContext("2d"), style = getComputedStyle(canvas);
    const colors = Array.from({ length: HUES }, (_, i) => style.getPropertyValue(`--hue-${i}`));
    const scale = (size * dense) / 256;
    for (let i = 0; i < n; i++) {
      const color = colorOf(i), x = middle(i, 0) * scale, y = (255 - middle(i, 1)) * scale;
      ink.fillStyle = ink.strokeStyle = colors[color % HUES];
      ink.globalAlpha = selection.faded(i) ? 0.1 : 0.8;
      ink.beginPath();
      if (outside(i)) arrow(ink, x, y, 128 * scale, dense); else ink.arc(x, y, 2.6 * dense, 0, 7);
      if (color < HUES) ink.fill(); else ink.stroke(); // after the last color, clusters are drawn as rings
    }
    ink.globalAlpha = 1;
    ink.lineWidth = 2 * dense;
    ink.strokeStyle = style.getPropertyValue("--text");
    const arm = 5 * dense;
    for (let i = n; i < all; i++) {
      const x = middle(i, 0) * scale, y = (255 - middle(i, 1)) * scale;
      ink.beginPath();
      for (const [dx, dy] of [[arm, arm], [arm, -arm]]) { ink.moveTo(x - dx, y - dy); ink.lineTo(x + dx, y + dy); }
      ink.stroke();
    }
    const corners = selection.outline();
    if (!corners) return;
    ink.beginPath();
    corners.forEach(([x, y]) => ink.lineTo(x * scale, (255 - y) * scale));
    ink.setLineDash([4 * dense, 3 * dense]);
    ink.stroke();
  }

  function go(next) {
    place = next;
    slider.value = next;
    moment.textContent = frameTitle(scene.frames[next]);
    slider.setAttribute("aria-valuetext", moment.textContent);
    const from = position, began = performance.now(), mine = ++asked, far = calm || Math.abs(next - from) > 1.5;
    const tick = (now) => {
      if (mine !== asked) return;
      const share = far ? 1 : Math.min(1, Math.max(0, (now - began) / 350));
      position = from + (next - from) * share;
      draw();
      if (share < 1) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  function start() {
    play.textContent = "Pause";
    if (place === scene.frames.length - 1) go(0);
    playing = setInterval(() => (place < scene.frames.length - 1 && canvas.isConnected ? go(place + 1) : stop()), 600);
  }

  function stop() {
    clearInterval(playing);
    playing = null;
    play.textContent = "Play";
  }

  function point(event) {
    const [x, y] = selection.spot(event);
    let best = -1, least = 64;
    for (let i = 0; i < n; i++) {
      const far = (middle(i, 0) - x) ** 2 + (middle(i, 1) - y) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    if (best >= 0) about.textContent = says(best);
  }

  function explain() {
    const shown = by === "class" ? names : Array.from({ length: k }, (_, i) => i);
    legend.replaceChildren(...shown.map((name, i) => el("span", {}, el("span", { class: i < HUES ? "dot" : "dot ring", style: { color: hue(i) } }), String(name))));
  }

  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  go(place);
  explain();
  const color = scene.classes ? chooser("Color", [{ value: "class", title: "by class" }, { value: "cluster", title: "by cluster" }], by,
    (value) => { by = value; explain(); draw(); }) : null;
  const beyond = Array.from({ length: n }, (_, i) => i).filter(outside).length;
  return el("div", { class: "scene" }, selection.controls, canvas,
    scene.frames.length > 1 ? el("div", { class: "player" }, play, slider, marks, moment) : null, el("div", { class: "controls" }, color, legend), about,
    note(scene.frames.length > 1 ? `${count(n, "sample")}, × marks centers. All epochs share the plane of largest variance and are scaled to the same spread.`
      : `${count(n, "sample")}, × marks centers. The plane of largest variance shows ${percent(scene.share, 0)} % of it, so clusters that overlap here may still be separate.${
        beyond ? ` Triangles on the border: ${count(beyond, "sample")} outside the frame.` : ""}`));
}
