"""How many starts the example `estimate_accuracy` leaves out: those before which, or after which, the link gave nothing
for two seconds; and the share of all starts at which the last transfer's rate is within a factor of two of the truth.
The arguments are recordings of Mahimahi's format."""

import sys

# As in the example: seconds of a transfer, and Mbit of an opportunity.
TRANSFER = 2
MBIT = 0.012


def mean(seconds):
    """Their mean."""
    return sum(seconds) / len(seconds)


for path in sys.argv[1:]:
    times = [int(line) for line in open(path) if line.strip()]
    rates = [0.0] * (times[-1] // 1000)
    for time in times:
        if time // 1000 < len(rates):
            rates[time // 1000] += MBIT
    for age in (0, 10, 60, 300):
        starts = range(TRANSFER + age, len(rates) - TRANSFER)
        if not starts:
            continue
        pairs = [
            (mean(rates[start - age - TRANSFER : start - age]), mean(rates[start : start + TRANSFER]))
            for start in starts
        ]
        both = [said / truth for said, truth in pairs if said and truth]
        within = sum(0.5 <= ratio <= 2 for ratio in both)
        left_out = 100 * (1 - len(both) / len(pairs))
        shares = [100 * within / count for count in (len(both), len(pairs))]
        print(
            f"{path.rsplit('/', 1)[-1]}/{age}: {len(pairs)} starts, {left_out:.1f} % left out, "
            f"within {shares[0]:.1f} % of the others, {shares[1]:.1f} % of all"
        )
