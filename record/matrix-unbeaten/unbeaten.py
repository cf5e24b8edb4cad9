"""Who is unbeaten where. Standard input is what `flowstart run matrix-.. --json` prints: all AQMs and schemes on
several links with several sizes.

A pair of AQM and scheme is unbeaten in a setting (a link and a size) if no other pair is at least as good in both the
completion time and the peak of the queue, and better in one; `flowstart` marks them. Pairs that are equal in both are
all unbeaten. Rows are `AQM/SCHEME/COMPETITOR`, with `any-aqm` or `any-scheme` for all of them:
- unbeaten: in how many settings the pair, or any pair with this AQM or scheme, is unbeaten;
- fct: the completion time over the physical limit, in the median over the settings, and fct_worst the largest;
- peak_ms: the longest wait in the queue, in the median, and peak_worst_ms the largest;
- twice: the part of the payload that was sent twice, in the median;
- taken: what the competing flows delivered less because of it, in payloads, in the median;
- faster, by_waste, slower: of all comparisons of a scheme with slow start behind the same AQM, those with this verdict;
- choice: 1 if no other pair has both a lower median of the time and a lower median of the peak.

Rows `LINK/SIZE/COMPETITOR/fastest/AQM/SCHEME` and `../lowest/..` are the unbeaten pair with the shortest time and the
one with the lowest peak, the first of equals; there `unbeaten` says how many pairs are.
"""

import json
import sys
from collections import Counter
from math import inf
from statistics import median


def or_longest(mean):
    """Where no transfer finished in time there is no mean: it counts as longer than any."""
    return inf if mean is None else mean


summary = json.load(sys.stdin)
competitor = summary["cells"][0]["competitor"]
pairs, unbeaten, settings, verdicts = {}, {}, {}, Counter()
for cell in summary["cells"]:
    means = {name: or_longest(cell["metrics"][name]["mean"]) for name in ("fct_ms", "max_queue_delay_ms", "inflation")}
    time, peak = means["fct_ms"] / cell["ideal_fct_ms"], means["max_queue_delay_ms"]
    verdicts[cell["scheme"], (cell["vs_baseline"] or {}).get("verdict")] += 1
    lost = cell["others"]["goodput_lost_mbit"]["mean"] if cell["others"] else 0.0
    taken = inf if lost is None else lost * 1e6 / 8 / cell["size_bytes"]
    pairs.setdefault((cell["aqm"], cell["scheme"]), []).append((time, peak, means["inflation"], taken))
for setting in summary["unbeaten_pairs"]:
    found = [pair for pair in setting["pairs"] if pair["is_unbeaten"]]
    names = {(pair["aqm"], pair["scheme"]) for pair in found}
    for name in names | {(aqm, "*") for aqm, _ in names} | {("*", scheme) for _, scheme in names}:
        unbeaten[name] = unbeaten.get(name, 0) + 1
    settings[setting["setting"].replace(", ", "/")] = found


def middle(name, place):
    return median(values[place] for values in pairs[name])


for setting, found in settings.items():
    ends = {"fastest": ("fct_ms", "max_queue_delay_ms"), "lowest": ("max_queue_delay_ms", "fct_ms")}
    for end, order in ends.items():
        best = min(found, key=lambda pair: [pair[metric] for metric in order])
        print(
            f"{setting}/{competitor}/{end}/{best['aqm']}/{best['scheme']}: unbeaten {len(found)} "
            f"fct {best['fct_ms'] / best['ideal_fct_ms']:.4f} peak_ms {best['max_queue_delay_ms']:.2f}"
        )
for aqm in sorted({aqm for aqm, _ in pairs}):
    print(f"{aqm}/any-scheme/{competitor}: unbeaten {unbeaten.get((aqm, '*'), 0)}")
for scheme in sorted({scheme for _, scheme in pairs}):
    faster, by_waste, slower = (verdicts[scheme, verdict] for verdict in ("faster", "faster-by-waste", "slower"))
    print(
        f"any-aqm/{scheme}/{competitor}: unbeaten {unbeaten.get(('*', scheme), 0)} "
        f"faster {faster} by_waste {by_waste} slower {slower}"
    )
for name in sorted(pairs):
    time, peak, twice, taken = (middle(name, place) for place in range(4))
    is_beaten = any(
        middle(other, 0) <= time and middle(other, 1) <= peak and (middle(other, 0), middle(other, 1)) != (time, peak)
        for other in pairs
    )
    worst = [max(values[place] for values in pairs[name]) for place in range(2)]
    print(
        f"{'/'.join(name)}/{competitor}: unbeaten {unbeaten.get(name, 0)} fct {time:.4f} fct_worst {worst[0]:.4f} "
        f"peak_ms {peak:.2f} peak_worst_ms {worst[1]:.2f} twice {twice:.4f} taken {taken:.4f} "
        f"choice {int(not is_beaten)}"
    )
