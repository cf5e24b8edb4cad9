// Charts, sorting, filtering and copying. Everything the page needs is in it; it loads nothing.
"use strict";

// ---------------------------------------------------------------- charts

const refuse = { load: () => Promise.reject(new Error("this page loads nothing")), sanitize: (uri) => Promise.resolve({ href: uri }) };

function readSpec(figure) {
  return JSON.parse(figure.querySelector("script.spec").textContent);
}

// The part of a specification that goes into one element, in the element's width.
function fitted(figure, spec, element) {
  if (figure.dataset.mode === "grid") {
    const panel = spec.concat[Number(element.dataset.panel)];
    const label = element.parentElement.previousElementSibling;
    if (label?.className === "rowlabel") delete panel.title; // the row's label says it
    panel.width = "container";
    panel.$schema = spec.$schema;
    panel.config = { ...spec.config, legend: { disable: true } }; // the legend is above the panels
    return panel;
  }
  const width = Math.max(180, element.clientWidth - 92); // room for axis labels and title
  for (const panel of spec.vconcat) panel.width = width;
  return spec;
}

async function draw(figure, element) {
  if (element.view) element.view.finalize();
  const options = { mode: "vega-lite", actions: false, renderer: figure.dataset.renderer, loader: refuse };
  try {
    const result = await vegaEmbed(element, fitted(figure, readSpec(figure), element), options);
    element.view = result.view;
    for (const button of figure.querySelectorAll("button.toggle")) show(figure, button);
    element.drawnWidth = element.clientWidth;
  } catch (error) {
    element.textContent = "This chart could not be drawn: " + error.message;
  }
}

async function drawAll(changedOnly) {
  for (const figure of document.querySelectorAll("figure.chart")) {
    for (const element of figure.querySelectorAll(".panel:not(.missing)")) {
      // A grid's panels follow the width of their element by themselves.
      if (changedOnly && (figure.dataset.mode === "grid" || element.drawnWidth === element.clientWidth)) continue;
      await draw(figure, element);
      await new Promise((done) => setTimeout(done)); // let the page scroll meanwhile
    }
  }
}

if (typeof vegaEmbed === "function") {
  drawAll(false);
  let pending;
  addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(() => drawAll(true), 200);
  });
  for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;
}

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
  if (filter && original.length > 12) {
    filter.hidden = false;
    filter.querySelector("input").addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
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
