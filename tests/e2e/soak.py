# SPDX-License-Identifier: Apache-2.0
"""soak.py SECONDS - churn of everything in one sandbox, memory and fds flat.

One `penstock run` in the lab; inside, a program opens tunnels, sends requests,
asks names, is refused, resets and half-closes, without a pause and for the
given time.  Outside, the resident memory and the descriptors of its penstockd
are sampled; after a warm-up of a fifth of the time they must not grow.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import conftest  # noqa: E402
from lab import Lab  # noqa: E402

GROWTH_KB = 2048
SAMPLES = 20

CHURN = r"""
import os, random, socket, struct, sys, threading, time
end = time.monotonic() + float(sys.argv[1])
random.seed(1)
done = [0] * 8

def connect(target, first=b""):
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(b"CONNECT " + target + b" HTTP/1.1\r\n\r\n" + first)
    return s

def tunnel():
    s = connect(b"web.example.com:80",
                b"GET /bytes/20000 HTTP/1.1\r\nHost: web.example.com\r\n"
                b"Connection: close\r\n\r\n")
    while s.recv(65536):
        pass
    s.close()

def reset():
    s = connect(b"web.example.com:80", b"GET /bytes/5000000 HTTP/1.1\r\n"
                b"Host: web.example.com\r\n\r\n")
    s.recv(1000)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()

def half_close():
    s = socket.create_connection(("git.example.com", 7), 30)
    s.sendall(b"x" * 30000)
    s.shutdown(socket.SHUT_WR)
    while s.recv(65536):
        pass
    s.close()

def refused():
    s = connect(b"denied%d.example.net:443" % random.randrange(1000))
    s.recv(65536)
    s.close()

def metadata():
    s = socket.socket()
    s.settimeout(30)
    try:
        s.connect(("169.254.169.254", 80))
        s.recv(1)
    except OSError:
        pass
    s.close()

def names():
    for name in ("web.example.com", "denied.example.net", "v6.example.com"):
        try:
            socket.getaddrinfo(name, 443)
        except OSError:
            pass

def malformed():
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(random.randbytes(200) + b"\r\n\r\n")
    try:
        s.recv(65536)
    except OSError:
        pass
    s.close()

def datagram():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.sendto(b"x", ("203.0.113.10", 443))
    except OSError:
        pass
    s.close()

WORK = [tunnel, reset, half_close, refused, metadata, names, malformed, datagram]

def worker(i):
    while time.monotonic() < end:
        WORK[i]()
        done[i] += 1

threads = [threading.Thread(target=worker, args=(i,)) for i in range(len(WORK))]
for t in threads: t.start()
for t in threads: t.join()
print(dict(zip([w.__name__ for w in WORK], done)))
"""

POLICY = conftest.POLICY + """
[allow echo]
hosts     = git.example.com
addresses = %s
ports     = 7
owner     = soak
reason    = soak
""" % conftest.ADDRESSES


def sample(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        rss = next(int(line.split()[1]) for line in status
                   if line.startswith("VmRSS"))
    return rss, len(os.listdir("/proc/%d/fd" % pid))


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600
    lab = Lab()
    try:
        subprocess.run(["make", "-s", "-C", os.environ["PENSTOCK_BUILD"],
                        "install", "DESTDIR=" + lab.dir + "/stage"], check=True,
                       stdout=subprocess.DEVNULL)
        lab.home = lab.workdir("home", conftest.USER)
        user = conftest.Penstock(lab, conftest.USER)
        process = user.start("/usr/bin/python3", "-c", CHURN, str(seconds),
                             policy=POLICY)
        daemon = None
        while daemon is None and process.poll() is None:
            daemon = conftest.daemon_of(process)
            time.sleep(0.1)
        curve = []
        for _ in range(SAMPLES):
            time.sleep(seconds / (SAMPLES + 1))
            curve.append(sample(daemon))
            print("rss %d kB, %d descriptors" % curve[-1], flush=True)
        out, err = process.communicate(timeout=seconds + 120)
        print(out.decode().strip())
        warm = max(rss for rss, _ in curve[:SAMPLES // 5])
        grown = max(rss for rss, _ in curve[-SAMPLES // 5:]) - warm
        print("grown by %d kB after the warm-up" % grown)
        if process.returncode or grown > GROWTH_KB:
            sys.exit("soak: failed: %s" % err.decode())
        print("soak: passed")
    finally:
        lab.close()


if __name__ == "__main__":
    main()
