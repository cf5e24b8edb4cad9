// Where answers come from: the server that these pages are of.
"use strict";

const source = {
  // What happens while a question is performed, for `take`: a name, and what it says. Throws what is wrong.
  async ask(query, signal, take) {
    const lost = (error) => {
      throw error.name === "AbortError" ? error : new Error(`The lab cannot be reached any more: ${error.message}`);
    };
    const response = await fetch(`/events?${query}`, { signal }).catch(lost);
    if (!response.ok) throw new Error((await response.text().catch(lost)).trim());
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read().catch(lost);
      if (done) break;
      rest += value;
      for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
        if (signal.aborted) return;
        const [first, second] = rest.slice(0, end).split("\n");
        take(first.slice(7), JSON.parse(second.slice(6)));
      }
    }
  },

  // The address of a study file's question. Throws what is wrong.
  async opened(text) {
    const response = await fetch("/question", { method: "POST", body: text, headers: { "content-type": "application/toml" } });
    const answer = (await response.text()).trim();
    if (!response.ok) throw new Error(answer);
    return answer;
  },

  // What belongs to a question that is understood.
  asked({ query }) {
    document.getElementById("file").href = `/question.toml?${query}`;
  },

  // What belongs to an answer.
  answered({ report }) {
    document.getElementById("alone").href = report;
  },

  // Shows the report of an answer.
  report({ report }, frame) {
    frame.src = report;
  },
};
