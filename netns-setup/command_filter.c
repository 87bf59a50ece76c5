/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_filter.c - the second door: what a command may ask of the kernel
 *
 * The command is any program at all, so the filter names what is refused and
 * lets the rest through; the namespaces and the empty capability sets are the
 * first wall, this is the one for what neither of them confines:
 *
 *   socket families	only UNIX, INET, INET6 with TCP and UDP, and
 *			NETLINK_ROUTE: a VM socket, QRTR or SMC would pass by
 *			the network namespace; raw and packet sockets by nft
 *   new namespaces	would give capabilities back, over things of their own
 *			but through kernel code that is not meant for strangers
 *   io_uring		makes system calls that no filter sees
 *   foreign ABIs	have other numbers for everything
 *   set-user-id files	in the working directory would outlive the sandbox
 *
 * ptrace(2) is allowed: a debugger works on what is in the same sandbox, and
 * its init is undumpable and in a parent user namespace.
 *
 * The program is assembled here and not by libseccomp because it runs at every
 * start: this takes a microsecond, 40 plain rules by libseccomp 700, and
 * "this argument is one of these" cannot be said to it.  clone3 and openat2
 * answer ENOSYS, since their arguments are out of a filter's sight and every
 * libc falls back.
 *
 * A program is a row of blocks; each looks at the number in the accumulator
 * and either returns or leaves it as it was.
 */
#include "netns-setup/command_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FILTER_ARCH	AUDIT_ARCH_X86_64
#define FILTER_X32_BIT	0x40000000u
#elif defined(__aarch64__)
#define FILTER_ARCH	AUDIT_ARCH_AARCH64
#define FILTER_X32_BIT	0x40000000u	/* no such numbers: harmless */
#else
#error "this architecture has no filter yet: see FILTER_ARCH"
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "arg_low() reads the low half of an argument");

#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define NEW_TIME	0x80u	/* CLONE_NEWTIME: only unshare(2) takes it */
#define SOCK_KIND	0xfu	/* the type without SOCK_CLOEXEC, _NONBLOCK */
#define TMPFILE_BIT	(O_TMPFILE & ~O_DIRECTORY)

/* Numbers that older headers do not have; the same on every architecture. */
enum {
	NR_MOUNT_SETATTR = 442,
	NR_QUOTACTL_FD = 443,
	NR_FCHMODAT2 = 452,
	NR_OPEN_TREE_ATTR = 467,
};

static const int refused[] = {
	/* namespaces and mounts */
	SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot,
	SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
	SYS_fspick, NR_MOUNT_SETATTR, NR_OPEN_TREE_ATTR,
	SYS_open_by_handle_at, SYS_fanotify_init,
	/* kernel doors with a history */
	SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key,
	SYS_request_key, SYS_keyctl, SYS_process_vm_readv,
	SYS_process_vm_writev, SYS_kcmp, SYS_lookup_dcookie,
	/* the machine */
	SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module,
	SYS_delete_module, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_acct,
	SYS_quotactl, NR_QUOTACTL_FD, SYS_settimeofday, SYS_clock_settime,
	SYS_clock_adjtime, SYS_vhangup, SYS_syslog, SYS_nfsservctl,
#ifdef __x86_64__
	SYS_iopl, SYS_ioperm, SYS_uselib, SYS__sysctl, SYS_ustat, SYS_sysfs,
#endif
};

static const int absent[] = {
	SYS_clone3, SYS_io_uring_setup, SYS_io_uring_enter,
	SYS_io_uring_register, SYS_openat2,
};

/* Calls that give a file its mode, and which argument that is. */
static const struct mode_call {
	int number;
	int mode_arg;
	int flags_arg;	/* of open(2): the mode counts only with O_CREAT */
} mode_calls[] = {
	{ SYS_fchmod, 1, -1 }, { SYS_fchmodat, 2, -1 },
	{ NR_FCHMODAT2, 2, -1 }, { SYS_mknodat, 2, -1 },
	{ SYS_openat, 3, 2 },
#ifdef __x86_64__
	{ SYS_chmod, 1, -1 }, { SYS_creat, 1, -1 }, { SYS_mknod, 1, -1 },
	{ SYS_open, 2, 1 },
#endif
};

struct program {
	struct sock_filter *f;
	size_t n;
};

static void emit(struct program *p, uint16_t code, uint32_t k, size_t yes,
		 size_t no)
{
	REQUIRE(p->n < COMMAND_FILTER_MAX && yes < 256 && no < 256);
	p->f[p->n++] = (struct sock_filter){ code, (uint8_t)yes, (uint8_t)no,
					     k };
}

static void ret(struct program *p, uint32_t what)
{
	emit(p, BPF_RET | BPF_K, what, 0, 0);
}

static void ret_errno(struct program *p, int e)
{
	ret(p, SECCOMP_RET_ERRNO | ((uint32_t)e & SECCOMP_RET_DATA));
}

static void load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The kernel, too, takes only the low half of an int. */
static void arg_low(struct program *p, int index)
{
	load(p, offsetof(struct seccomp_data, args) + (size_t)index * 8);
}

static void if_equal(struct program *p, uint32_t k, size_t yes, size_t no)
{
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, k, yes, no);
}

static void if_bits(struct program *p, uint32_t k, size_t yes, size_t no)
{
	emit(p, BPF_JMP | BPF_JSET | BPF_K, k, yes, no);
}

/* Every number of a list, with one answer for all. */
static void block_list(struct program *p, const int *number, size_t n, int e)
{
	for (size_t i = 0; i < n; i++)
		if_equal(p, (uint32_t)number[i], n - i, 0);
	emit(p, BPF_JMP | BPF_JA, 1, 0, 0);
	ret_errno(p, e);
}

/* @number is refused when argument @index has one of @bits. */
static void block_bits(struct program *p, int number, int index, uint32_t bits)
{
	if_equal(p, (uint32_t)number, 0, 4);
	arg_low(p, index);
	if_bits(p, bits, 0, 1);
	ret_errno(p, EPERM);
	ret(p, SECCOMP_RET_ALLOW);
}

static void block_socket(struct program *p)
{
	if_equal(p, SYS_socket, 0, 20);
	arg_low(p, 0);
	if_equal(p, AF_UNIX, 17, 0);		/* to allow */
	if_equal(p, AF_NETLINK, 13, 0);		/* to netlink */
	if_equal(p, AF_INET, 2, 0);
	if_equal(p, AF_INET6, 1, 0);
	ret_errno(p, EAFNOSUPPORT);
	/* inet: */
	arg_low(p, 1);
	emit(p, BPF_ALU | BPF_AND | BPF_K, SOCK_KIND, 0, 0);
	if_equal(p, SOCK_STREAM, 2, 0);
	if_equal(p, SOCK_DGRAM, 1, 0);
	ret_errno(p, EPERM);
	arg_low(p, 2);
	if_equal(p, 0, 6, 0);			/* to allow */
	if_equal(p, IPPROTO_TCP, 5, 0);
	if_equal(p, IPPROTO_UDP, 4, 0);
	ret_errno(p, EPROTONOSUPPORT);
	/* netlink: */
	arg_low(p, 2);
	if_equal(p, NETLINK_ROUTE, 1, 0);
	ret_errno(p, EPROTONOSUPPORT);
	/* allow: */
	ret(p, SECCOMP_RET_ALLOW);
}

static void block_socketpair(struct program *p)
{
	if_equal(p, SYS_socketpair, 0, 4);
	arg_low(p, 0);
	if_equal(p, AF_UNIX, 1, 0);
	ret_errno(p, EAFNOSUPPORT);
	ret(p, SECCOMP_RET_ALLOW);
}

/* Typing into a terminal that is not ours, or a console's paste buffer. */
static void block_ioctl(struct program *p)
{
	if_equal(p, SYS_ioctl, 0, 5);
	arg_low(p, 1);
	if_equal(p, TIOCSTI, 1, 0);
	if_equal(p, TIOCLINUX, 0, 1);
	ret_errno(p, EPERM);
	ret(p, SECCOMP_RET_ALLOW);
}

static void block_open(struct program *p, const struct mode_call *c,
		       uint32_t bits)
{
	if_equal(p, (uint32_t)c->number, 0, 6);
	arg_low(p, c->flags_arg);
	if_bits(p, O_CREAT | TMPFILE_BIT, 0, 3);
	arg_low(p, c->mode_arg);
	if_bits(p, bits, 0, 1);
	ret_errno(p, EPERM);
	ret(p, SECCOMP_RET_ALLOW);
}

static void block_abi(struct program *p)
{
	load(p, offsetof(struct seccomp_data, arch));
	if_equal(p, FILTER_ARCH, 1, 0);
	ret(p, SECCOMP_RET_KILL_PROCESS);
	load(p, offsetof(struct seccomp_data, nr));
	emit(p, BPF_JMP | BPF_JGE | BPF_K, FILTER_X32_BIT, 0, 1);
	ret(p, SECCOMP_RET_KILL_PROCESS);
}

size_t command_filter_make(struct sock_filter out[COMMAND_FILTER_MAX],
			   uint32_t forbidden_mode)
{
	struct program p = { out, 0 };

	block_abi(&p);
	block_socket(&p);
	block_socketpair(&p);
	block_ioctl(&p);
	block_bits(&p, SYS_clone, 0, NEW_NAMESPACES);
	block_bits(&p, SYS_unshare, 0, NEW_NAMESPACES | NEW_TIME);
	for (size_t i = 0; i < ARRAY_SIZE(mode_calls); i++) {
		if (mode_calls[i].flags_arg >= 0)
			block_open(&p, &mode_calls[i], forbidden_mode);
		else
			block_bits(&p, mode_calls[i].number,
				   mode_calls[i].mode_arg, forbidden_mode);
	}
	block_list(&p, refused, ARRAY_SIZE(refused), EPERM);
	block_list(&p, absent, ARRAY_SIZE(absent), ENOSYS);
	ret(&p, SECCOMP_RET_ALLOW);
	return p.n;
}

int command_filter_load(uint32_t forbidden_mode)
{
	struct sock_filter f[COMMAND_FILTER_MAX];
	struct sock_fprog prog = { .filter = f };

	prog.len = (unsigned short)command_filter_make(f, forbidden_mode);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return -errno;
	return 0;
}
