# SPDX-License-Identifier: Apache-2.0
"""no_nftables.py - run a command as a kernel without nftables would.

`python3 no_nftables.py ERRNO COMMAND...`: from here on, in this process and
all below it, a socket of NETLINK_NETFILTER is refused with ERRNO, as by a
kernel that was built without it, or whose module is not there.  Everything
else is as it was.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ALLOW = 0x7fff0000
SECCOMP_RET_ERRNO = 0x00050000

AF_NETLINK = 16
NETLINK_NETFILTER = 12
SOCKET_CALL = {"x86_64": 41, "aarch64": 198}

LOAD_WORD = 0x20        # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15       # BPF_JMP | BPF_JEQ | BPF_K
RETURN = 0x06           # BPF_RET | BPF_K
# Of struct seccomp_data, little endian: the call, its first and third argument.
NR, FAMILY, PROTOCOL = 0, 16, 32


def program(error):
    """Each line: operation, where to when true, when not, operand."""
    lines = [
        (LOAD_WORD, 0, 0, NR),
        (JUMP_EQUAL, 0, 5, SOCKET_CALL[platform.machine()]),
        (LOAD_WORD, 0, 0, FAMILY),
        (JUMP_EQUAL, 0, 3, AF_NETLINK),
        (LOAD_WORD, 0, 0, PROTOCOL),
        (JUMP_EQUAL, 0, 1, NETLINK_NETFILTER),
        (RETURN, 0, 0, SECCOMP_RET_ERRNO | error),
        (RETURN, 0, 0, SECCOMP_RET_ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines), len(lines)


def main():
    code, count = program(getattr(errno, sys.argv[1]))
    text = ctypes.create_string_buffer(code)
    filter_ = ctypes.create_string_buffer(
        struct.pack("@HP", count, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_, 0, 0)):
        sys.exit("no_nftables: " + os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
