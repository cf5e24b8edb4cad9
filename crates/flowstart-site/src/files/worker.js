// The simulator in a thread of its own: does what a page wants, and tells what happens.
"use strict";

let simulator;
const page = {
  now: () => performance.now(),
  tell: (place, length) => postMessage(new TextDecoder().decode(new Uint8Array(simulator.memory.buffer, place, length))),
};

onmessage = async ({ data: { compiled, wanted } }) => {
  try {
    simulator ??= (await WebAssembly.instantiate(compiled, { page })).exports;
    const text = new TextEncoder().encode(JSON.stringify(wanted));
    const room = simulator.room(text.length);
    new Uint8Array(simulator.memory.buffer, room, text.length).set(text);
    simulator.answer(room, text.length);
    postMessage(JSON.stringify({ event: "end" }));
  } catch (error) {
    // After this the simulator cannot be used any more.
    postMessage(JSON.stringify({ event: "broken", data: { problem: String(error.message ?? error) } }));
  }
};
