// The page of a question: asks it again when a control changes, and draws what comes.
"use strict";

const start = JSON.parse(document.getElementById("start").textContent);
const form = document.getElementById("question");
const element = (id) => document.getElementById(id);
const plots = Object.fromEntries([...document.querySelectorAll(".plot")].map((plot) => [plot.dataset.chart, plot]));
const COLOURS = 7;
// Time for a hand that still moves.
const DEBOUNCE_MS = 40;
// Until a report is made that nobody may want.
const REST_MS = 900;

let asked = start.asked;
let runs = start.runs ?? [];
let times = start.times ?? [];
let request;
let pending;
let resting;

// ---------------------------------------------------------------- drawing

function draw() {
  const end = Math.max(1, ...runs.map((run) => run.fct_ms ?? run.sent.at(-1)?.[0] ?? 0)) * 1.02;
  const of = (run) => ({ label: run.label, colour: run.cell % COLOURS, until: run.fct_ms ?? end });
  if (runs.length) {
    const sent = (run) => { let most = 0; return run.sent.map(([time, offset]) => [time, most = Math.max(most, offset)]); };
    lineChart(plots.sequence, { unit: "bytes", end, lines: runs.map((run) => ({ ...of(run), points: sent(run), crosses: run.dropped.slice(0, 200) })) });
    lineChart(plots.window, { unit: "bytes", end, lines: runs.flatMap((run) => [
      { ...of(run), points: run.cwnd, step: true }, { ...of(run), points: run.in_flight, step: true, thin: true }]) });
    lineChart(plots.queue, { unit: "packets", end, lines: runs.map((run) => ({ ...of(run), points: run.queue, step: true })) });
    const bars = runs.filter((run) => run.causes).map((run) => ({ label: run.label, parts: run.causes }));
    const total = (bar) => bar.parts.reduce((sum, part) => sum + Math.max(0, part[1]), 0);
    if (bars.length) barChart(plots.waterfall, { bars, end: Math.max(1, ...bars.map(total)) });
    plots.waterfall.closest("figure").hidden = !bars.length;
  }
  drawTimes();
}

function drawTimes() {
  const rows = (asked.labels ?? []).slice(0, 12).map((label, cell) => ({
    label, colour: cell % COLOURS, values: times.filter((one) => one[0] === cell && one[2] !== null).map((one) => one[2]),
  }));
  dotChart(plots.times, { rows, unit: "completion time, ms" });
}

let frame;
function drawSoon() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(draw);
}

// ---------------------------------------------------------------- controls

// A slider's places are tenths of a power of ten, or finer, so that its steps are equal in ratio.
const sliders = {
  rate: { of: (place) => 0.1 * 10 ** (place / 100), to: (mbit) => 100 * Math.log10(mbit / 0.1), value: () => asked.rate_mbit,
    text: (mbit) => `${number.format(mbit)} Mbit/s`, key: (mbit) => ["rate", `${Number(mbit.toPrecision(3))}mbit`] },
  rtt: { of: (place) => 10 ** (place / 100), to: (ms) => 100 * Math.log10(ms), value: () => asked.rtt_ms,
    text: (ms) => `${number.format(ms)} ms`, key: (ms) => ["rtt", `${Number(ms.toPrecision(3))}ms`] },
  buffer: { of: (place) => 0.1 * 10 ** (place / 100), to: (bdp) => 100 * Math.log10(bdp / 0.1), value: () => asked.buffer_bdp,
    text: (bdp) => `${number.format(bdp)} BDP`, key: (bdp) => ["buffer", `${Number(bdp.toPrecision(3))}bdp`] },
  size: { of: (place) => 1e4 * 10 ** (place / 100), to: (size) => 100 * Math.log10(size / 1e4), value: () => asked.size_bytes,
    text: (size) => { const [scale, name] = bytes(size * 2); return `${number.format(size / scale)} ${name}`; } },
};

const input = (key) => form.elements.namedItem(key);

// A link's text with another value for a key; the other keys stay.
function withKey(link, key, value) {
  const parts = link.split(",").map((part) => part.trim()).filter(Boolean);
  const at = parts.findIndex((part) => part.toLowerCase().startsWith(`${key}=`));
  if (at >= 0) parts[at] = `${key}=${value}`;
  else parts.push(`${key}=${value}`);
  return parts.join(",");
}

// What the sliders show follows the question, but for the one under the hand.
function showSliders() {
  for (const [name, slider] of Object.entries(sliders)) {
    const control = element(`s-${name}`);
    const value = slider.value();
    const several = name === "size" ? asked.sizes !== 1 : asked.links !== 1;
    control.disabled = several || (value === null && name === "size");
    element(`o-${name}`).textContent = several ? "several" : value === null ? "unlimited" : slider.text(value);
    if (document.activeElement !== control && value !== null) control.value = slider.to(value);
    control.setAttribute("aria-valuetext", element(`o-${name}`).textContent);
  }
}

for (const [name, slider] of Object.entries(sliders)) {
  element(`s-${name}`).addEventListener("input", (event) => {
    const value = slider.of(Number(event.target.value));
    element(`o-${name}`).textContent = slider.text(value);
    event.target.setAttribute("aria-valuetext", slider.text(value));
    if (name === "size") {
      input("size").value = value < 1e6 ? `${Number((value / 1e3).toPrecision(3))}KB` : `${Number((value / 1e6).toPrecision(3))}MB`;
    } else {
      const link = input("link");
      const [key, text] = slider.key(value);
      link.value = withKey(link.value, key, text);
    }
    showChoices();
    askSoon();
  });
}

const words = (text) => text.split(/\s+/).filter(Boolean);

function showChoices() {
  for (const field of form.querySelectorAll(".field[data-key]")) {
    const control = field.querySelector("input");
    const chosen = words(control.value || control.placeholder);
    for (const button of field.querySelectorAll(".choice")) button.setAttribute("aria-pressed", String(chosen.includes(button.value)));
  }
}

for (const button of form.querySelectorAll(".choice")) {
  button.addEventListener("click", () => {
    const field = button.closest(".field");
    const control = field.querySelector("input");
    const chosen = words(control.value || control.placeholder);
    if (!field.hasAttribute("data-several")) control.value = button.value;
    else if (!chosen.includes(button.value)) control.value = [...chosen, button.value].join(" ");
    // One has to stay.
    else if (chosen.length > 1) control.value = chosen.filter((one) => one !== button.value).join(" ");
    showChoices();
    askSoon();
  });
}

// The address of what the form says.
function query() {
  const pairs = [];
  for (const [name, value] of new FormData(form)) {
    if (typeof value === "string" && value.trim()) pairs.push([name, value.trim()]);
  }
  return new URLSearchParams(pairs).toString();
}

// ---------------------------------------------------------------- asking

function askSoon() {
  clearTimeout(pending);
  pending = setTimeout(() => ask(query(), true), DEBOUNCE_MS);
}

function problem(text) {
  element("problem").textContent = text ?? "";
  element("problem").hidden = !text;
}

async function ask(text, isNew) {
  request?.abort();
  const mine = new AbortController();
  request = mine;
  clearTimeout(resting);
  element("answer").classList.add("stale");
  const began = performance.now();
  try {
    await source.ask(text, mine.signal, (event, data) => take(event, data, isNew, began));
  } catch (error) {
    if (error.name === "AbortError") return;
    problem(error.message);
    element("status").textContent = "";
  }
}

// What came of the question.
function take(event, data, isNew, began) {
  if (event === "asked") {
    problem();
    asked = data;
    [runs, times] = [[], []];
    showSliders();
    element("command").textContent = data.command;
    element("link").href = `?${data.query}`;
    source.asked(data);
    if (isNew) history.replaceState(null, "", `?${data.query}`);
  } else if (event === "run") {
    runs.push(data);
    drawSoon();
  } else if (event === "times") {
    times.push(...data.times);
    const progress = element("progress");
    progress.max = Math.max(1, data.runs);
    progress.value = data.done;
    progress.classList.toggle("done", data.done >= data.runs);
    element("status").textContent = data.done < data.runs ? `${data.done} of ${data.runs} runs` : "";
    drawSoon();
  } else if (event === "answer") {
    show(data);
    document.documentElement.dataset.latency = (performance.now() - began).toFixed(1);
  } else if (event === "failed") {
    problem(data.problem);
  }
}

// The answer, and the report once nobody has asked again for a while.
function show(answer) {
  element("answer").innerHTML = answer.html;
  element("answer").classList.remove("stale");
  element("progress").classList.add("done");
  element("status").textContent = "";
  source.answered(answer);
  document.documentElement.dataset.answered = answer.query;
  drawSoon();
  resting = setTimeout(() => source.report(answer, element("report")), REST_MS);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pending);
  ask(query(), true);
});
form.addEventListener("change", (event) => {
  if (event.target.type === "range" || event.target.type === "file") return;
  showChoices();
  askSoon();
});

// ---------------------------------------------------------------- study files

const opened = element("open");
opened.parentElement.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); opened.click(); }
});
opened.addEventListener("change", async () => {
  const file = opened.files[0];
  if (!file) return;
  try {
    location.assign(await source.opened(await file.text()));
  } catch (error) {
    problem(`${file.name}: ${error.message}`);
  }
  opened.value = "";
});

// ---------------------------------------------------------------- at the start

showSliders();
source.asked(asked);
draw();
let drawnWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; drawSoon(); } });
const hasProblem = !element("problem").hidden;
if (start.answer) {
  show(start.answer);
} else if (!hasProblem) {
  ask(asked.query, false);
} else {
  element("answer").replaceChildren();
}
