// Where answers come from: the simulator in a worker of this page.
"use strict";

// ---------------------------------------------------------------- the simulator

let loaded;
let asking;

// The compiled simulator, which all workers share.
function compiled() {
  const fetched = async () => {
    const response = await fetch("simulator.wasm");
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    // Some servers do not know what this file is; then it is compiled when all of it is there.
    const isKnown = response.headers.get("content-type")?.startsWith("application/wasm");
    return isKnown ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
  };
  loaded ??= fetched().catch((error) => {
    loaded = undefined;
    const why = location.protocol === "file:" ? "these files have to come from a web server" : error.message;
    throw new Error(`The simulator cannot be loaded: ${why}`);
  });
  return loaded;
}

const gone = () => new DOMException("Nobody waits any more.", "AbortError");

// A worker, and whether it works.
class Simulator {
  // Has something done; `take` gets what happens. Throws what is wrong. One thing at a time.
  async tell(wanted, take) {
    this.isBusy = true;
    try {
      const module = await compiled();
      if (this.isEnded) throw gone();
      this.worker ??= new Worker("worker.js");
      await this.done({ compiled: module, wanted }, take);
    } finally {
      this.isBusy = false;
    }
  }

  done(message, take) {
    return new Promise((resolve, reject) => {
      const broken = (problem) => { reject(new Error(problem)); this.end(); };
      let problem;
      this.refuse = reject;
      this.worker.onerror = (event) => broken(event.message || "The worker cannot be loaded.");
      this.worker.onmessage = ({ data: text }) => {
        const { event, data } = JSON.parse(text);
        if (event === "broken") broken(problem ?? data.problem);
        else if (event === "failed") problem = data.problem;
        else if (event !== "end") take(event, data);
        else if (problem) reject(new Error(problem));
        else resolve();
      };
      this.worker.postMessage(message);
    });
  }

  // What goes on has no end for those who wait for it.
  end() {
    this.isEnded = true;
    this.worker?.terminate();
    this.refuse?.(gone());
  }
}

// Has one thing done beside what is going on: what comes of it.
async function once(wanted) {
  const simulator = new Simulator();
  let told;
  try {
    await simulator.tell(wanted, (event, data) => { told = data; });
  } finally {
    simulator.end();
  }
  return told;
}

// ---------------------------------------------------------------- what the lab's page needs

let current;
let shown;

const source = {
  // What happens while a question is performed, for `take`: a name, and what it says. Throws what is wrong.
  async ask(query, signal, take) {
    // A simulation does not look up from its work.
    if (asking?.isBusy) asking.end();
    if (!asking || asking.isEnded) asking = new Simulator();
    await asking.tell({ ask: query }, (event, data) => { if (!signal.aborted) take(event, data); });
  },

  // The address of a study file's question. Throws what is wrong.
  async opened(text) {
    return `?${(await once({ open: text })).query}`;
  },

  // What belongs to a question that is understood.
  asked({ query }) {
    current = query;
  },

  // What belongs to an answer.
  answered() {},

  // Shows the report of an answer.
  async report({ query }, frame) {
    try {
      shown = await part("report.html", query);
      frame.src = "report.html";
    } catch (error) {
      if (error.name !== "AbortError") problem(error.message);
    }
  },
};

// The frame of the report asks for its content when it is there.
addEventListener("message", ({ data, source: from }) => {
  if (data === "report" && from === document.getElementById("report")?.contentWindow) from.postMessage({ report: shown }, "*");
});

// What belongs to the answer to a question: of the simulator that has just answered it, if that has nothing to do.
async function part(name, of) {
  const wanted = { part: { name, query: of } };
  if (!asking || asking.isBusy || asking.isEnded) return (await once(wanted)).text;
  let told;
  await asking.tell(wanted, (event, data) => { told = data; });
  return told.text;
}

// Buttons that keep what belongs to the answer.
addEventListener("click", async ({ target }) => {
  const button = target.closest?.("button.part");
  if (!button) return;
  button.disabled = true;
  try {
    const text = await part(button.value, current);
    const address = URL.createObjectURL(new Blob([text]));
    Object.assign(document.createElement("a"), { href: address, download: button.value }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  } catch (error) {
    if (error.name !== "AbortError") problem(error.message);
  }
  button.disabled = false;
});

// ---------------------------------------------------------------- the page of an address

// The file has one question. Another one in the address has a page of its own, which takes the place of this one.
async function begin(scripts) {
  const main = document.getElementById("main");
  const wanted = location.search.slice(1);
  if (wanted) {
    main.innerHTML = '<p class="answer waiting">Simulating…</p>';
    try {
      const { html } = await once(location.pathname.endsWith("packets.html") ? { packets: wanted } : { page: wanted });
      const page = new DOMParser().parseFromString(html, "text/html");
      document.title = page.title;
      main.replaceWith(page.getElementById("main"));
    } catch (error) {
      main.firstChild.textContent = error.message;
      return;
    }
  }
  for (const name of document.querySelector("#start") ? scripts : []) {
    const script = Object.assign(document.createElement("script"), { src: name });
    const done = new Promise((resolve) => { script.onload = resolve; });
    document.body.append(script);
    await done;
  }
  // The next question finds it ready.
  compiled().catch(() => {});
}

begin(document.currentScript.dataset.scripts.split(" ").filter(Boolean));
