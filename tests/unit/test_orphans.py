"""CPU time of processes that outlive their parent is counted; exit codes of our own children stay theirs."""

import subprocess
import sys

_PROGRAM = """
import os, resource, signal, subprocess, sys, time
from tests.support.orphans import Orphans

orphans = Orphans()
orphans.adopt()
burning = "import time\\nwhile time.process_time() < 0.7: pass\\ntime.sleep(60)"
quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
words = [sys.executable, "-c", burning]
parent = f"import subprocess; print(subprocess.Popen({words}, **{quiet}).pid)"
pid = int(subprocess.run([sys.executable, "-c", parent], capture_output=True, check=True).stdout)
burnt = lambda: sum(map(int, open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:13]))
while burnt() < 50:
    time.sleep(0.05)
own = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
os.kill(pid, signal.SIGKILL)
while os.path.exists(f"/proc/{pid}"):
    time.sleep(0.05)
    orphans.wait()
print(own.wait(), sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]))
"""


def test_an_orphans_cpu_time_is_counted_and_the_exit_code_of_a_child_is_kept() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    code, cpu_s = done.stdout.split()
    assert code == "7"
    assert float(cpu_s) >= 0.5
