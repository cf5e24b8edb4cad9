"""Mean FCTs of each cell with several transports. The arguments are the columns' names, the input is the summaries of
as many runs of the same scenario, one after the other."""

import json
import sys

decoder, text, runs = json.JSONDecoder(), sys.stdin.read(), []
while text.strip():
    summary, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    runs.append({cell["id"]: cell["metrics"]["fct_ms"]["mean"] for cell in summary["cells"]})
for cell in runs[0]:
    times = ", ".join(f"{name} {run[cell]:.6g} ms" for name, run in zip(sys.argv[1:], runs, strict=True))
    print(f"{cell}: {times}")
