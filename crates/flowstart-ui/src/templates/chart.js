// Small charts in SVG, as wide as their place. Everything stands in this file; nothing is loaded.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A few round numbers from 0 to the largest.
function ticks(most, count) {
  if (!(most > 0)) return [0];
  const raw = most / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw);
  const all = [];
  for (let at = 0; at <= most * 1.0001; at += step) all.push(Math.round(at / power * 10) * power / 10);
  return all;
}

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

// What bytes are written in.
function bytes(most) {
  if (most >= 2e6) return [1e6, "MB"];
  return most >= 2e3 ? [1e3, "KB"] : [1, "bytes"];
}

const MARGIN = { left: 46, right: 10, top: 20, bottom: 34 };

// The value of a step line, or of a straight one, at a time.
function valueAt(points, time) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= time) low = middle + 1; else high = middle;
  }
  return low > 0 ? points[low - 1][1] : undefined;
}

// Lines over time. Each of `lines` has label, colour (a place), points, and maybe step, thin and crosses.
function lineChart(place, { lines, unit, end, marks = [], height = 190 }) {
  const width = Math.max(240, place.clientWidth || 480);
  const most = Math.max(1e-9, ...lines.flatMap((line) => line.points.map((point) => point[1])));
  const [scale, name] = unit === "bytes" ? bytes(most) : [1, unit];
  const x = (time) => MARGIN.left + (time / Math.max(end, 1e-9)) * (width - MARGIN.left - MARGIN.right);
  const y = (value) => height - MARGIN.bottom - (value / most) * (height - MARGIN.top - MARGIN.bottom);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "img" });
  const names = [...new Set(lines.map((line) => line.label))].join(", ");
  root.setAttribute("aria-label", `${place.closest("figure")?.querySelector("h2")?.textContent ?? "Chart"} of ${names}, ${name} over time`);
  for (const value of ticks(most / scale, 4)) {
    root.append(svg("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value * scale), y2: y(value * scale) }));
    root.append(svg("text", { x: MARGIN.left - 6, y: y(value * scale) + 4, "text-anchor": "end" }, number.format(value)));
  }
  for (const time of ticks(end, Math.min(8, width / 70))) {
    root.append(svg("line", { class: "axis", x1: x(time), x2: x(time), y1: height - MARGIN.bottom, y2: height - MARGIN.bottom + 4 }));
    root.append(svg("text", { x: x(time), y: height - MARGIN.bottom + 16, "text-anchor": "middle" }, number.format(time)));
  }
  root.append(svg("text", { x: width - MARGIN.right, y: height - 4, "text-anchor": "end" }, "time from the start, ms"));
  root.append(svg("text", { x: MARGIN.left - 6, y: 9, "text-anchor": "end" }, name));
  for (const line of lines) {
    let path = "";
    let last;
    for (const [time, value] of line.points) {
      if (time > end) break;
      const [at, up] = [x(time).toFixed(1), y(value).toFixed(1)];
      path += last === undefined ? `M${at} ${up}` : line.step ? `H${at}V${up}` : `L${at} ${up}`;
      last = value;
    }
    if (line.step && last !== undefined) path += `H${x(Math.min(end, line.until ?? end)).toFixed(1)}`;
    root.append(svg("path", { class: `line s${line.colour}${line.thin ? " thin" : ""}`, d: path || "M0 0" }));
    for (const [time, value] of line.crosses ?? []) {
      if (time > end) continue;
      const [at, up] = [x(time), y(value)];
      root.append(svg("path", { class: `cross s${line.colour}`, d: `M${at - 3} ${up - 3}l6 6m0 -6l-6 6` }));
    }
  }
  const cursor = svg("line", { class: "cursor", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
  root.append(cursor);
  for (const mark of marks) root.append(svg("line", { class: "now", x1: x(mark), x2: x(mark), y1: MARGIN.top, y2: height - MARGIN.bottom }));
  const readout = html("div", { class: "readout", hidden: "" });
  const show = (time) => {
    const at = Math.min(Math.max(time, 0), end);
    for (const [key, value] of [["x1", x(at)], ["x2", x(at)], ["visibility", "visible"]]) cursor.setAttribute(key, value);
    readout.hidden = false;
    readout.replaceChildren(`${number.format(at)} ms`);
    for (const line of lines.filter((one) => !one.thin)) {
      const value = valueAt(line.points, at);
      if (value === undefined) continue;
      readout.append(html("i", { class: `key s${line.colour}` }), `${line.label} ${number.format(value / scale)} ${name}`);
    }
    cursor.dataset.time = at;
  };
  const hide = () => { cursor.setAttribute("visibility", "hidden"); readout.hidden = true; };
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    const inside = (event.clientX - box.left) / box.width * width - MARGIN.left;
    show(inside / (width - MARGIN.left - MARGIN.right) * end);
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("focus", () => show(Number(cursor.dataset.time ?? 0)));
  root.addEventListener("blur", hide);
  root.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show(Number(cursor.dataset.time ?? 0) + step * end / 60);
  });
  place.replaceChildren(root, readout);
  return { x, root, width, height };
}

// Bars of parts from left to right, a bar for each of `bars`: label and parts, each a name and milliseconds.
function barChart(place, { bars, end }) {
  const width = Math.max(240, place.clientWidth || 480);
  const [row, left] = [26, Math.min(150, width * .32)];
  const height = bars.length * row + 26;
  const x = (ms) => left + ms / Math.max(end, 1e-9) * (width - left - 60);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
  const told = bars.map((bar) => `${bar.label}: ${bar.parts.filter((part) => part[1] > 0).map((part) => `${part[0]} ${number.format(part[1])} ms`).join(", ")}`);
  root.setAttribute("aria-label", `Where the time went. ${told.join("; ")}`);
  const used = new Set();
  bars.forEach((bar, place) => {
    const top = place * row + 4;
    const label = svg("text", { class: "label", x: 0, y: top + 13 }, bar.label.length > left / 6.2 ? bar.label.slice(0, left / 6.2 - 1) + "…" : bar.label);
    label.append(svg("title", {}, bar.label));
    root.append(label);
    let at = 0;
    bar.parts.forEach(([name, ms], kind) => {
      if (!(ms > 0.05)) return;
      used.add(kind);
      const part = svg("rect", { class: `bar-part c${kind}`, x: x(at), y: top, width: Math.max(.5, x(at + ms) - x(at)), height: row - 9 });
      part.append(svg("title", {}, `${name}: ${number.format(ms)} ms`));
      root.append(part);
      at += ms;
    });
    root.append(svg("text", { x: x(at) + 6, y: top + 13 }, `${number.format(at)} ms`));
  });
  for (const time of ticks(end, Math.min(6, (width - left) / 90))) root.append(svg("text", { x: x(time), y: height - 4, "text-anchor": "middle" }, number.format(time)));
  const legend = html("ul", { class: "keys-now" });
  const names = bars[0]?.parts ?? [];
  names.forEach(([name], kind) => { if (used.has(kind)) legend.append(html("li", {}, html("i", { class: `key c${kind}` }), name)); });
  place.replaceChildren(root, legend);
}

// A row of dots for each of `rows`: label, colour and values.
function dotChart(place, { rows, unit }) {
  const width = Math.max(240, place.clientWidth || 480);
  const [row, left] = [Math.max(18, Math.min(34, 156 / Math.max(1, rows.length))), Math.min(130, width * .3)];
  const height = Math.max(60, rows.length * row + 40);
  const all = rows.flatMap((one) => one.values);
  const [low, high] = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
  const pad = Math.max((high - low) * .05, high * .01, 1e-6);
  const [from, to] = [Math.max(0, low - pad), high + pad];
  const x = (value) => left + (value - from) / (to - from) * (width - left - 12);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
  root.setAttribute("aria-label", `Completion times of the runs of ${rows.map((one) => one.label).join(", ")}`);
  rows.forEach((one, place) => {
    const middle = place * row + row / 2 + 4;
    const label = svg("text", { class: "label", x: 0, y: middle + 4 }, one.label.length > left / 6.2 ? one.label.slice(0, left / 6.2 - 1) + "…" : one.label);
    label.append(svg("title", {}, one.label));
    root.append(label);
    root.append(svg("line", { class: "axis", x1: left, x2: width - 10, y1: middle, y2: middle }));
    one.values.forEach((value, number) => root.append(svg("circle", { class: `dot s${one.colour}`, cx: x(value), cy: middle + ((number * 7) % 5 - 2) * row / 14, r: 3 })));
    if (one.values.length) {
      const mean = one.values.reduce((sum, value) => sum + value, 0) / one.values.length;
      root.append(svg("line", { class: `mean s${one.colour}`, x1: x(mean), x2: x(mean), y1: middle - row * .36, y2: middle + row * .36 }));
    }
  });
  const span = to - from;
  const power = 10 ** Math.floor(Math.log10(span / 4));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= span / 4);
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    root.append(svg("text", { x: x(at), y: height - 20, "text-anchor": "middle" }, String(Number(at.toPrecision(6)))));
  }
  root.append(svg("text", { x: width - 10, y: height - 4, "text-anchor": "end" }, unit));
  place.replaceChildren(root);
}
