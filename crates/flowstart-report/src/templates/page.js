// Charts, sorting, filtering and copying. Everything the page needs is in it; it loads nothing.
"use strict";

// ---------------------------------------------------------------- charts

const refuse = { load: () => Promise.reject(new Error("this page loads nothing")), sanitize: (uri) => Promise.resolve({ href: uri }) };

function readSpec(figure) {
  return JSON.parse(figure.querySelector("script.spec").textContent);
}

// ---- light and dark

const darkScreen = matchMedia("screen and (prefers-color-scheme: dark)");

// What specifications say for a light page, and what it becomes on a dark one. White letters on a colour stay white.
const darkOf = new Map(Object.entries(DARK));

// Swatches have the same colours. A rule for screens leaves them light on paper.
const swatches = document.createElement("style");
swatches.textContent = "@media screen and (prefers-color-scheme: dark) {" + Array.from(darkOf, ([light, dark]) =>
  ["fill", "stroke"].map((what) => `.swatch [${what}="${light}" i] { ${what}: ${dark}; }`).join(" ")).join("\n") + "}";
document.head.append(swatches);

function themed(value) {
  if (typeof value === "string") return darkOf.get(value.toLowerCase()) ?? value;
  if (Array.isArray(value)) return value.map(themed);
  if (value && typeof value === "object") {
    // Data are not colours.
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, key === "data" && inner.format ? inner : themed(inner)]));
  }
  return value;
}

const ruler = document.createElement("canvas").getContext("2d");

// A title in as many lines as it needs, broken at blanks and behind commas. What no line has room for is cut by Vega.
function titleLines(text, width) {
  ruler.font = "600 12px " + getComputedStyle(document.body).fontFamily;
  const lines = [""];
  for (const part of text.match(/[^ ,]*,? */g)) {
    const longer = lines.at(-1) + part;
    if (lines.at(-1) && ruler.measureText(longer.trimEnd()).width > width) lines.push(part);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line) => line.trimEnd());
}

// Titles of panels that stand beside each other have equally many lines, so that their axes are at one height.
function panelTitle(spec, panel, width) {
  const text = (one) => one.title?.text ?? one.title ?? "";
  const most = Math.max(...spec.concat.map((one) => titleLines(text(one), width).length));
  const lines = titleLines(text(panel), width);
  while (lines.length < most) lines.push(" ");
  return { text: lines, limit: width };
}

// The part of a specification that goes into one element, in the element's width.
function fitted(figure, spec, element) {
  if (darkScreen.matches) spec = themed(spec);
  // An element in a closed fold has no width.
  const panels = element.parentElement.classList.contains("panels") ? element.parentElement : null;
  const columns = Number(panels?.className.match(/columns-(\d)/)?.[1] ?? 1);
  const width = element.clientWidth || document.querySelector("main").clientWidth / columns - 40;
  if (figure.dataset.mode === "grid") {
    const panel = spec.concat[Number(element.dataset.panel)];
    panel.width = element.clientWidth ? "container" : width - 60;
    if (panel.title) panel.title = panelTitle(spec, panel, Math.max(120, width - 20));
    panel.$schema = spec.$schema;
    panel.config = { ...spec.config, legend: { disable: true } }; // the legend is above the panels
    return panel;
  }
  if (figure.dataset.mode === "forest") {
    const { narrow, plot, taken } = spec.usermeta;
    const { hconcat, usermeta, ...common } = spec;
    const room = width - taken;
    if (room < 220) return { ...common, ...narrow, width: width - 16 };
    hconcat[plot].width = Math.min(room, 620);
    return { ...common, hconcat };
  }
  for (const panel of spec.vconcat) panel.width = Math.max(180, width - 92); // room for axis labels and title
  return spec;
}

async function draw(figure, element) {
  if (element.view) element.view.finalize();
  const isDark = darkScreen.matches;
  const options = {
    mode: "vega-lite", actions: false, renderer: figure.dataset.renderer, loader: refuse,
    tooltip: { theme: isDark ? "dark" : "light" },
  };
  try {
    const result = await vegaEmbed(element, fitted(figure, readSpec(figure), element), options);
    element.view = result.view;
    element.classList.toggle("dark-drawn", isDark);
    for (const button of figure.querySelectorAll("button.toggle")) show(figure, button);
    element.drawnWidth = element.clientWidth;
  } catch (error) {
    element.textContent = "This chart could not be drawn: " + error.message;
  }
}

async function drawAll(changedOnly, within = document) {
  for (const figure of within.querySelectorAll("figure.chart")) {
    for (const element of figure.querySelectorAll(".panel:not(.missing)")) {
      // A grid's panels follow the width of their element by themselves.
      const follows = figure.dataset.mode === "grid" && element.drawnWidth > 0;
      if (changedOnly && (follows || element.drawnWidth === element.clientWidth)) continue;
      await draw(figure, element);
      await new Promise((done) => setTimeout(done)); // let the page scroll meanwhile
    }
  }
  document.documentElement.dataset.drawn = "yes";
}

if (typeof vegaEmbed === "function") {
  drawAll(false);
  let pending;
  addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(() => drawAll(true), 200);
  });
  darkScreen.addEventListener("change", () => drawAll(false));
  for (const fold of document.querySelectorAll("details")) {
    fold.addEventListener("toggle", () => { if (fold.open) drawAll(true, fold); });
  }
  // What a link leads to is shown.
  const unfold = () => { const fold = location.hash && document.querySelector(location.hash); if (fold?.tagName === "DETAILS") fold.open = true; };
  addEventListener("hashchange", unfold);
  unfold();
  for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;
}

// On paper nothing can be unfolded.
const unfolded = [];
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not([open]):not(.licences)")) {
    fold.open = true;
    unfolded.push(fold);
  }
});
addEventListener("afterprint", () => unfolded.splice(0).forEach((fold) => { fold.open = false; }));

// Hides or shows the lines that a button of the legend names.
function show(figure, button) {
  const view = figure.querySelector(".panel").view;
  if (view) view.signal(button.dataset.signal, button.getAttribute("aria-pressed") === "true").runAsync();
}

for (const button of document.querySelectorAll("button.toggle")) {
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    show(button.closest("figure"), button);
  });
}

for (const button of document.querySelectorAll("button.spec")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const figure = button.closest("figure");
    const blob = new Blob([JSON.stringify(readSpec(figure), null, 1)], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = figure.id + ".vl.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

// ---------------------------------------------------------------- tables

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const original = [...body.rows];
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? cell.textContent.trim() : cell.dataset.sort;
  };
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const first = button.dataset.first === "down" ? "descending" : "ascending";
      const second = first === "ascending" ? "descending" : "ascending";
      const now = head.getAttribute("aria-sort");
      const order = now === first ? second : now === second ? "none" : first;
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", order);
      let rows = [...original];
      if (order !== "none") {
        const sign = order === "ascending" ? 1 : -1;
        rows.sort((a, b) => {
          const x = key(a, column), y = key(b, column);
          if (x === "" || y === "") return (x === "") - (y === ""); // nothing sorts last
          const numbers = !Number.isNaN(Number(x)) && !Number.isNaN(Number(y));
          return sign * (numbers ? x - y : x.localeCompare(y, undefined, { numeric: true }));
        });
      }
      body.append(...rows);
    });
  });
  const filter = table.closest("section").querySelector(".filter");
  // The first rows, and a button that says how many more there are. Five more are no reason for a button.
  const first = original.length > 60 ? 3 : 20;
  if (original.length > first + 5) {
    table.classList.add(first === 20 ? "capped" : "capped-short");
    const more = document.createElement("button");
    more.type = "button";
    more.className = "more-rows";
    more.textContent = "show " + (original.length - first) + " more rows";
    more.addEventListener("click", () => { table.classList.remove("capped", "capped-short"); more.remove(); });
    table.parentElement.after(more);
  }
  if (filter && original.length > 12) {
    filter.hidden = false;
    filter.querySelector("input").addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      // Among all rows, not only the first.
      table.classList.remove("capped", "capped-short");
      table.closest("section").querySelector(".more-rows")?.remove();
      let shown = 0;
      for (const row of original) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      filter.querySelector(".count").textContent = words.length ? shown + " of " + original.length : "";
    });
  }
}

// ---------------------------------------------------------------- commands

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Older browsers refuse the clipboard to a page opened from a file.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  await copy(button.previousElementSibling.textContent);
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 1200);
});
