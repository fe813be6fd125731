// Evidence for the number of clusters, and the tree of clusters.

function numberView(found) {
  if (!found) return el("span");
  const left = 36, right = 8, top = 18, bottom = 34, wide = Math.min(48, (640 - left - right) / found.ks.length), width = left + right + wide * found.ks.length, height = 190;
  const py = (share) => top + (1 - Math.max(0, share)) * (height - top - bottom), low = height - bottom;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Agreement by the number of clusters, ${found.k} chosen`, style: { "max-width": `${width}px` } },
    [0, 0.5, 1].map((tick) => [svg("line", { class: "grid", x1: left, x2: width - right, y1: py(tick), y2: py(tick) }), svg("text", { x: left - 5, y: py(tick) + 4, "text-anchor": "end" }, String(tick))]),
    found.ks.map((k, i) => {
      const x = left + i * wide, chosen = k === found.k;
      return [svg("rect", { class: "bar", x: x + 2, width: wide - 4, y: py(found.agreement[i]), height: low - py(found.agreement[i]), style: chosen ? {} : { opacity: "0.4" } },
        svg("title", {}, `${k} clusters: agreement ${two(found.agreement[i])}`)), svg("text", { x: x + wide / 2, y: low + 14, "text-anchor": "middle", style: chosen ? { "font-weight": "700" } : {} }, String(k))];
    }),
    known(found.chance) ? svg("line", { class: "median", x1: left, x2: width - right, y1: py(found.chance), y2: py(found.chance) }, svg("title", {}, `without clusters ${two(found.chance)}`)) : null,
    svg("text", { x: width / 2, y: height - 4, "text-anchor": "middle" }, "number of clusters"));
  return section("How many clusters?", `${found.words} Bars show how far clusterings by different methods agree${known(found.chance) ? "; the line, how far they agree on data without clusters" : ""}.`,
    el("figure", { class: "panel" }, el("div", { class: "plot" }, picture)));
}

// Merges are rows of scipy's linkage matrix; leaves have a cluster and a size.
function treeView(tree) {
  if (!tree || tree.leaves.length < 2) return el("span");
  const nodes = tree.leaves.map((leaf) => ({ ...leaf, height: 0, parts: [] }));
  for (const [a, b, height] of tree.merges) {
    const parts = [nodes[a], nodes[b]], same = parts[0].cluster === parts[1].cluster;
    nodes.push({ parts, height, size: parts[0].size + parts[1].size, cluster: same ? parts[0].cluster : null });
  }
  const root = nodes[nodes.length - 1], holder = el("div", { class: "plot" });
  const draw = (top) => {
    const rows = [], within = known(top.cluster), list = (node) => (node.parts.length && (within || !known(node.cluster)) ? node.parts.forEach(list) : rows.push(node));
    list(top);
    const width = 640, step = 22, height = 12 + step * rows.length, right = 150, scale = top.height || 1;
    const px = (node) => 12 + (1 - node.height / scale) * (width - right - 12), place = new Map(rows.map((node, i) => [node, 16 + step * i]));
    const y = (node) => place.get(node) ?? (y(node.parts[0]) + y(node.parts[1])) / 2, lines = [];
    const walk = (node) => {
      if (place.has(node)) return;
      for (const part of node.parts) {
        lines.push(svg("path", { class: "axis", fill: "none", d: `M${px(node)},${y(node)}V${y(part)}H${place.has(part) ? width - right : px(part)}` }));
        walk(part);
      }
    };
    walk(top);
    const title = (node) => (known(node.cluster) ? (within ? "part" : `cluster ${node.cluster}`) : "clusters");
    holder.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Tree of clusters" }, lines,
      rows.map((node) => svg("text", { x: width - right + 6, y: place.get(node) + 4, class: node.parts.length ? "link" : null, style: node.parts.length ? { cursor: "zoom-in" } : {},
        onclick: () => node.parts.length && draw(node) }, `${title(node)} · ${node.size.toLocaleString("en")}`))),
    top === root ? el("span") : el("button", { type: "button", class: "more", onclick: () => draw(root) }, "Show all clusters"));
  };
  draw(root);
  return section("Tree of clusters", "Clusters that merge further to the right are more alike. A click on a cluster shows its parts.", el("figure", { class: "panel" }, holder));
}
