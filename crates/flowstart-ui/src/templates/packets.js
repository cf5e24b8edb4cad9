// The packets of one run on their way: the queue fills, acknowledgements return.
"use strict";

const start = JSON.parse(document.getElementById("start").textContent);
const { packets, steps, completed } = start.run;
const element = (id) => document.getElementById(id);
const scene = element("scene");
const still = matchMedia("(prefers-reduced-motion: reduce)");

// Ends of the shown time.
const last = Math.max(1, completed ?? 0, ...packets.map((one) => one.reached ?? one.dropped ?? one.departed ?? one.left));
// For so long a dropped packet is to be seen, in milliseconds of the run.
const SEEN_MS = Math.max(4, start.rtt_ms / 8);
// Steps of Play where nothing shall move, each second.
const STEPS_PER_SECOND = 3;

// Every event, in order: its time and what it says.
function named(packet) {
  if (packet.carries === "handshake") return "a handshake packet";
  if (packet.carries === "ack") return "an acknowledgement";
  const again = packet.carries === "again" ? " again" : "";
  return `data from byte ${packet.position.toLocaleString("en")}${again}`;
}
const events = packets.flatMap((packet) => {
  const [from, to] = packet.returns ? ["The receiver", "the sender"] : ["The sender", "the receiver"];
  const all = [[packet.left, `${from} sends ${named(packet)}.`]];
  if (packet.departed !== null) all.push([packet.departed, `The link has carried ${named(packet)}.`]);
  if (packet.dropped !== null) all.push([packet.dropped, `${named(packet)} is dropped.`.replace(/^./, (letter) => letter.toUpperCase())]);
  if (packet.reached !== null) all.push([packet.reached, `${named(packet)} reaches ${to}.`.replace(/^./, (letter) => letter.toUpperCase())]);
  return all;
}).filter(([time]) => time >= 0).sort((one, other) => one[0] - other[0]);

// ---------------------------------------------------------------- the scene

const HEIGHT = 250;
const LANE = { data: 70, ack: 190 };
let layout;

const mostWaiting = Math.max(4, ...steps.map((step) => step.queue));
const held = start.buffer ? Math.ceil(start.buffer / 1500) : mostWaiting;
const slots = Math.max(4, Math.min(600, Math.max(held, mostWaiting)));

function build() {
  const width = Math.max(320, scene.clientWidth || 900);
  const narrow = width < 560;
  const box = narrow ? 54 : 86;
  // The queue is a grid with room for all that it holds.
  const rows = 8;
  const columns = Math.ceil(slots / rows);
  const queueWidth = Math.min(width * .34, Math.max(40, columns * 8));
  const cell = Math.min(8, queueWidth / columns);
  const queue = { x: box + 24, width: cell * columns, rows, columns, cell };
  queue.height = Math.min(8, Math.max(4, cell)) * rows;
  queue.row = queue.height / rows;
  queue.y = LANE.data - queue.height / 2;
  layout = { width, box, queue, wire: [queue.x + queue.width + 8, width - box - 10] };
  scene.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  scene.setAttribute("height", HEIGHT);
  const fixed = svg("g");
  const boxAt = (x, label) => {
    fixed.append(svg("rect", { class: "box", x, y: 34, width: box - 10, height: 180, rx: 5 }));
    fixed.append(svg("text", { x: x + (box - 10) / 2, y: 24, "text-anchor": "middle" }, label));
  };
  boxAt(4, "sender");
  boxAt(width - box + 6, "receiver");
  fixed.append(svg("line", { class: "wire", x1: layout.wire[0], x2: layout.wire[1], y1: LANE.data, y2: LANE.data }));
  fixed.append(svg("line", { class: "wire", x1: box, x2: layout.wire[1], y1: LANE.ack, y2: LANE.ack }));
  fixed.append(svg("rect", { class: "box", x: queue.x - 3, y: queue.y - 3, width: queue.width + 6, height: queue.height + 6, rx: 3 }));
  fixed.append(svg("text", { x: queue.x, y: queue.y - 9 }, narrow ? "queue" : "queue at the bottleneck"));
  fixed.append(svg("text", { class: "note", x: (layout.wire[0] + layout.wire[1]) / 2, y: LANE.data - 14, "text-anchor": "middle" }, start.rate));
  fixed.append(svg("text", { class: "note", x: (box + layout.wire[1]) / 2, y: LANE.ack + 24, "text-anchor": "middle" }, "acknowledgements return"));
  layout.count = svg("text", { class: "note", x: queue.x, y: queue.y + queue.height + 20 });
  layout.window = svg("text", { class: "note", x: 4, y: HEIGHT - 12 });
  layout.moving = svg("g");
  layout.pool = [];
  scene.replaceChildren(fixed, layout.count, layout.window, layout.moving);
}

// The step in force at a time.
function stepAt(time) {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle].time <= time) low = middle + 1; else high = middle;
  }
  return steps[low - 1] ?? { queue: 0, cwnd: 0, in_flight: 0 };
}

const KINDS = { handshake: "hand", data: "data", again: "again", ack: "ack" };
let used;

// A rectangle or a cross from the pool.
function put(kind, x, y, width, height) {
  let one = layout.pool[used];
  if (!one) layout.pool.push(one = layout.moving.appendChild(svg("path")));
  used += 1;
  const d = kind === "lost"
    ? `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`
    : `M${x.toFixed(1)} ${y.toFixed(1)}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`;
  one.setAttribute("d", d);
  one.setAttribute("class", kind === "lost" ? "lost" : `packet ${kind}`);
  one.removeAttribute("visibility");
}

// Packets leave in order, and none is longer under way than this.
const longest = Math.max(...packets.map((one) => (one.reached ?? one.dropped ?? one.departed ?? one.left) - one.left), 0) + SEEN_MS + 1;
function firstAfter(time) {
  let low = 0, high = packets.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (packets[middle].left < time) low = middle + 1; else high = middle;
  }
  return low;
}

let now = 0;

function draw() {
  used = 0;
  const { queue, wire, box } = layout;
  const waiting = [];
  const state = stepAt(now);
  for (let place = firstAfter(now - longest); place < packets.length && packets[place].left <= now; place += 1) {
    const packet = packets[place];
    const kind = KINDS[packet.carries];
    if (packet.dropped !== null && packet.dropped <= now) {
      if (now - packet.dropped < SEEN_MS) {
        const isBehind = packet.departed !== null && packet.departed < packet.dropped;
        put("lost", isBehind ? (wire[0] + wire[1]) / 2 : queue.x + queue.width / 2, LANE.data + queue.height / 2 + 34 + (now - packet.dropped) / SEEN_MS * 26, 0, 0);
      }
      continue;
    }
    if (packet.reached !== null && packet.reached <= now) continue;
    const part = (from, to) => to === null || to <= from ? 0 : Math.min(1, (now - from) / (to - from));
    if (packet.returns) {
      const at = part(packet.left, packet.reached);
      put(kind, wire[1] - at * (wire[1] - box) - 2, LANE.ack - 5, 3, 10);
    } else if (packet.departed === null || packet.departed > now) {
      waiting.push(kind);
    } else {
      const at = part(packet.departed, packet.reached);
      put(kind, wire[0] + at * (wire[1] - wire[0]) - 3, LANE.data - 6, 5, 12);
    }
  }
  // The head of the queue is on the right. What others have in it stands behind: nobody knows in which order.
  const others = Math.max(0, state.queue - waiting.length);
  const size = Math.max(2, Math.min(queue.cell, queue.row) - 1);
  // Some are still on their way from the sender to the queue.
  const all = [...waiting.slice(0, Math.max(1, state.queue)), ...Array(Math.min(others, slots)).fill("other")];
  all.slice(0, queue.rows * queue.columns).forEach((kind, place) => {
    const column = Math.floor(place / queue.rows);
    put(kind, queue.x + queue.width - (column + 1) * queue.cell + .5, queue.y + (place % queue.rows) * queue.row + .5, Math.max(1.5, queue.cell - 1), size);
  });
  for (let place = used; place < layout.pool.length; place += 1) layout.pool[place].setAttribute("visibility", "hidden");
  layout.count.textContent = `${state.queue} waiting${start.buffer ? ` of ${held}` : ""}`;
  const payload = start.payload || 1;
  layout.window.textContent = `cwnd ${Math.round(state.cwnd / payload)} packets, ${Math.round(state.in_flight / payload)} in flight`;
  element("clock").textContent = `${now.toFixed(1)} ms`;
  element("time").value = Math.round(now / last * 1000);
  element("time").setAttribute("aria-valuetext", `${now.toFixed(1)} milliseconds`);
  for (const mark of marks) for (const [key, value] of [["x1", mark.x(now)], ["x2", mark.x(now)]]) mark.line.setAttribute(key, value);
}

// ---------------------------------------------------------------- time

// The number of events up to a time.
function eventsUntil(time) {
  let low = 0, high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle][0] <= time + 1e-9) low = middle + 1; else high = middle;
  }
  return low;
}

function go(time) {
  now = Math.min(Math.max(0, time), last);
  draw();
}

function say() {
  const place = eventsUntil(now) - 1;
  element("event").textContent = place >= 0 ? `${events[place][0].toFixed(2)} ms: ${events[place][1]}` : "Before the first packet.";
}

function step(direction) {
  pause();
  const place = eventsUntil(now);
  if (direction > 0) go(events[place]?.[0] ?? last);
  else {
    // All events of this time count as one.
    const at = events[place - 1]?.[0] ?? 0;
    let before = place - 1;
    while (before >= 0 && events[before][0] >= at - 1e-9) before -= 1;
    go(events[before]?.[0] ?? 0);
  }
  say();
}

let playing = false;
let latest;

function tick(at) {
  if (!playing) return;
  const passed = at - (latest ?? at);
  if (still.matches) {
    if (latest === undefined || passed >= 1000 / STEPS_PER_SECOND) {
      latest = at;
      go(now + 1000 / STEPS_PER_SECOND * Number(element("speed").value));
    }
  } else {
    latest = at;
    go(now + passed * Number(element("speed").value));
  }
  if (now >= last) { pause(); say(); return; }
  requestAnimationFrame(tick);
}

function pause() {
  playing = false;
  element("play").textContent = "Play";
  say();
}

function play() {
  if (playing) { pause(); return; }
  if (now >= last) go(0);
  playing = true;
  latest = undefined;
  element("play").textContent = "Pause";
  element("event").textContent = "";
  requestAnimationFrame(tick);
}

element("play").addEventListener("click", play);
element("step").addEventListener("click", () => step(1));
element("back").addEventListener("click", () => step(-1));
element("time").addEventListener("input", (event) => { pause(); go(Number(event.target.value) / 1000 * last); say(); });
addEventListener("keydown", (event) => {
  const within = event.target.closest("input, select, svg[tabindex], a, summary");
  if (event.key === " " && !within && event.target.tagName !== "BUTTON") { event.preventDefault(); play(); }
  if (within || event.altKey || event.ctrlKey || event.metaKey) return;
  const act = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => { pause(); go(0); say(); }, End: () => { pause(); go(last); say(); } }[event.key];
  if (act) { event.preventDefault(); act(); }
});

// ---------------------------------------------------------------- at the start

let marks = [];
function charts() {
  const plots = Object.fromEntries([...document.querySelectorAll(".plot")].map((plot) => [plot.dataset.chart, plot]));
  const line = (of) => steps.map((one) => [one.time, of(one)]);
  const drawn = [
    lineChart(plots.window, { unit: "bytes", end: last, marks: [0], lines: [
      { label: "congestion window", colour: 1, step: true, points: line((one) => one.cwnd) },
      { label: "bytes in flight", colour: 2, step: true, points: line((one) => one.in_flight) }] }),
    lineChart(plots.queue, { unit: "packets", end: last, marks: [0], lines: [{ label: "waiting", colour: 1, step: true, points: line((one) => one.queue) }] }),
  ];
  marks = drawn.map(({ x, root }) => ({ x, line: root.querySelector(".now") }));
}

let drawnWidth;
function all() {
  if (drawnWidth === innerWidth) return;
  drawnWidth = innerWidth;
  build();
  charts();
  draw();
}
all();
addEventListener("resize", all);
say();
document.documentElement.dataset.ready = "yes";
