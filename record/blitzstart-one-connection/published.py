"""How far a scenario is from Table 1 of the Blitzstart paper. The argument is what `flowstart run SCENARIO --out` writes,
`summary.json`. The factors are those between the FCTs, which start with the request; the paper's are its baseline's and
a difference. The score is the median |log2| of our speed-up over the paper's."""

import csv
import json
import math
import re
import statistics
import sys

ours = {}
with open(sys.argv[1]) as file:
    cells = json.load(file)["cells"]
for cell in cells:
    link, _, size, scheme = cell["id"].split("/")[:4]
    found = re.search(r"estimate=([\d.]+)", scheme)
    estimate = float(found[1]) if found else None
    ours[link, size, estimate] = cell["metrics"]["fct_request_ms"]["mean"]

paper, errors = {}, []
with open("validation/blitzstart/baseline_implied.csv", newline="") as file:
    for row in csv.DictReader(file):
        low, high = float(row["baseline_fct_ms_low"]), float(row["baseline_fct_ms_high"])
        paper[row["link"], row["size"], None] = (low + high) / 2
with open("validation/blitzstart/table1.csv", newline="") as file:
    for row in csv.DictReader(file):
        baseline = paper[row["link"], row["size"], None]
        estimate, factor = float(row["bandwidth_estimate_factor"]), float(row["fct_factor"])
        paper[row["link"], row["size"], estimate] = baseline + float(row["fct_delta_ms"])
        published = 1 / factor if row["fct_change"] == "slower" else factor
        # These take one or two round trips, so they do not count.
        if row["size"] != "70KB" or row["link"] not in ["dsl-slow", "dsl-fast", "3g"]:
            speedup = ours[row["link"], row["size"], None] / ours[row["link"], row["size"], estimate]
            errors.append(abs(math.log2(speedup / published)))

distances = {cell: abs(math.log2(ours[cell] / fct)) for cell, fct in paper.items()}
long = [distance for (_, size, _), distance in distances.items() if size != "70KB"]
factor, most = 2 ** statistics.median(long), 2 ** statistics.quantiles(long, n=10)[-1]
print(f"2MB and 10MB: median factor {factor:.6g}, nine of ten below {most:.6g}, score {statistics.median(errors):.3f}")
