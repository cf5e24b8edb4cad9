"""How far a scenario is from Table 1 of the Blitzstart paper. The arguments are what `flowstart run SCENARIO --out`
writes, `summary.json`, and what it prints, which has the score: the median |log2| of our speed-up over the paper's. The
factors are those between the FCTs, which start with the request; the paper's are its baseline's and a difference."""

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
    ours[link, size, float(found[1]) if found else None] = cell["metrics"]["fct_request_ms"]["mean"]

paper = {}
with open("validation/blitzstart/baseline_implied.csv", newline="") as file:
    for row in csv.DictReader(file):
        low, high = float(row["baseline_fct_ms_low"]), float(row["baseline_fct_ms_high"])
        paper[row["link"], row["size"], None] = (low + high) / 2
with open("validation/blitzstart/table1.csv", newline="") as file:
    for row in csv.DictReader(file):
        baseline = paper[row["link"], row["size"], None]
        paper[row["link"], row["size"], float(row["bandwidth_estimate_factor"])] = baseline + float(row["fct_delta_ms"])

distances = {cell: abs(math.log2(ours[cell] / fct)) for cell, fct in paper.items()}
long = [distance for (_, size, _), distance in distances.items() if size != "70KB"]
factor, most = 2 ** statistics.median(long), 2 ** statistics.quantiles(long, n=10)[-1]
with open(sys.argv[2]) as file:
    score = re.search(r"Median of \|log2.*?([\d.]+) over 45 cells", file.read())[1]
print(f"2MB and 10MB: median factor {factor:.6g}, nine of ten below {most:.6g}, score {score}")
