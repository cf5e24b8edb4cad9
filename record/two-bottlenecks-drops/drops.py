"""How many packets of a newcomer of 70 KB the first and the second link drop: the mean over 20 runs beside two CUBIC
flows at the first, at the second, and one at each link, and the number of runs with a drop. Traces each run."""

import csv
import os
import subprocess
import tempfile

RUNS = 20

for cross in ("first=1", "second=2", "each=each"):
    name, value = cross.split("=")
    for scheme in ("initial-start", "more-start"):
        drops, hit = [0, 0], [0, 0]
        for rep in range(RUNS):
            with tempfile.TemporaryDirectory() as folder:
                command = ["flowstart", "trace", "--size", "70KB", "--scheme", scheme, "--avoidance", "cubic"]
                link = f"{name}=rate=20mbit,rtt=60ms,buffer=1bdp,hops=2,cross={value},access_jitter=1ms/1ms"
                command += ["--link", link]
                command += ["--competitor", "bulk:cubic,count=2", "--arrival", "together:flows=1,rtts=60ms/160ms"]
                command += ["--transport", "model-tcp:profile=tcp-linux", "--rep", str(rep), "--out", folder]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                lost = [0, 0]
                with open(os.path.join(folder, "trace.csv"), newline="") as file:
                    # Flows 0 and 1 are the CUBIC flows.
                    for line in csv.DictReader(file):
                        if line["event"] == "dropped" and line["flow"] == "2":
                            lost["queue of link 1" in line["detail"]] += 1
                for link in (0, 1):
                    drops[link] += lost[link]
                    hit[link] += lost[link] > 0
        print(
            f"{name}/{scheme}: the first link drops {drops[0] / RUNS:g} packets, in {hit[0]} runs, "
            f"the second {drops[1] / RUNS:g}, in {hit[1]}"
        )
