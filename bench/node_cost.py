"""What the virtual node costs a program that never touches RDMA: libc calls and start-up, with the preloaded library and
without, alternating so that both meet the same machine."""
import os
import subprocess

ROUNDS = 7
STARTS = 40  # of each, a round
BAR = 1.15  # of a call's time without the library; paths below /sys are looked at more closely and have none


def call_costs(bench, env):
    end = subprocess.run([str(bench.build / "bin" / "bench" / "bench_libc_calls")], env=env, capture_output=True, text=True,
                         check=True, timeout=60)
    return {name: float(value) for name, value in (line.split(": ") for line in end.stdout.splitlines())}


def start_cost(env):
    """Microseconds of processor time of a program that does nothing, the best of many."""
    least = 1e9
    for _ in range(STARTS):
        child = os.posix_spawn("/bin/true", ["true"], env)
        used = os.wait4(child, 0)[2]
        least = min(least, (used.ru_utime + used.ru_stime) * 1e6)
    return least


def run(bench, table):
    print(f"\n== a program that never touches RDMA, with the library of the virtual node; best of {ROUNDS}\n")
    plain = dict(os.environ)
    loaded = dict(plain, LD_PRELOAD=str(bench.build / "lib" / "libverbena-preload.so"))
    least = [{}, {}]
    for _ in range(ROUNDS):
        for which, env in enumerate((plain, loaded)):
            costs = call_costs(bench, env)
            costs["start to end (us)"] = start_cost(env)
            for name, value in costs.items():
                least[which][name] = min(value, least[which].get(name, value))
    rows, good = [], True
    for name in least[0]:
        more = least[1][name] - least[0][name]
        barred = "start" not in name and "/sys" not in name
        fine = least[1][name] <= BAR * least[0][name]
        good = good and (fine or not barred)
        word = "" if not barred else "ok" if fine else f"above {BAR}"
        rows.append([name, f"{least[0][name]:.0f}", f"{least[1][name]:.0f}", f"{more:+.0f}", word])
    table(["call (ns)", "plain", "with the node", "more", ""], rows)
    return good
