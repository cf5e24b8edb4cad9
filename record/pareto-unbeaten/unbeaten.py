"""In how many combinations of link and size no other scheme beats one, in the means of FCT and cost: inflation where
the flow is alone, the other flow's lost goodput elsewhere. Standard input is what `flowstart run pareto --json`
prints."""

import json
import sys

combinations = {}
for cell in json.load(sys.stdin)["cells"]:
    others = cell.get("others")
    cost = others["goodput_lost_mbit"] if others else cell["metrics"]["inflation"]
    place = (cell["competitor"], cell["link"], cell["size_bytes"])
    combinations.setdefault(place, {})[cell["scheme"]] = (cell["metrics"]["fct_ms"]["mean"], cost["mean"])
counts = {}
for (competitor, *_), schemes in combinations.items():
    for scheme, one in schemes.items():
        beaten = any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in schemes.values())
        name = f"{scheme}/{competitor}"
        counts[name] = counts.get(name, 0) + (not beaten)
for name, count in counts.items():
    print(f"{name}: unbeaten in {count}")
