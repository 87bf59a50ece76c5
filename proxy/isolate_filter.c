/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate_filter.c - the system calls of a sealed daemon, and their filter
 *
 * The BPF is assembled here, from the table below, because libseccomp takes
 * half a millisecond to make the same and another fifth to be loaded, which a
 * private daemon pays at each run; this takes some microseconds.  Since Linux
 * 5.11 calls that are allowed whatever their arguments are not even filtered.
 *
 * What is not in the table ends the process (SIGSYS): a daemon that does what
 * it never does is not ours any more.  The few calls that a library tries in
 * vain get an errno.
 *
 * Of an argument the low 32 bits are compared, which is all the kernel reads
 * of an int.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <config.h>

#include "proxy/isolate.h"

#define D	(BIT(ISOLATE_DAEMON) | BIT(ISOLATE_DAEMON_BINDS))
#define DB	BIT(ISOLATE_DAEMON_BINDS)
#define B	BIT(ISOLATE_BROKER)
#define M	BIT(ISOLATE_MARKER)

/*
 * AddressSanitizer opens /proc files, changes mappings and asks for stacks
 * when it reports; a build with it allows those calls too, and is for tests.
 */
#ifdef PENSTOCK_SANITIZED
#define S	(D | B | M)
#else
#define S	0u
#endif

#if defined(__x86_64__)
#define ISOLATE_ARCH	AUDIT_ARCH_X86_64
#define ISOLATE_FOREIGN	0x40000000u	/* x32 calls have this bit */
#elif defined(__aarch64__)
#define ISOLATE_ARCH	AUDIT_ARCH_AARCH64
#define ISOLATE_FOREIGN	0x80000000u
#else
#error "give this architecture its AUDIT_ARCH value"
#endif

/* Newer architectures have only the successors of these. */
#ifndef SYS_epoll_wait
#define SYS_epoll_wait	SYS_epoll_pwait
#endif
#ifndef SYS_poll
#define SYS_poll	SYS_ppoll
#endif
#ifndef SYS_access
#define SYS_access	SYS_faccessat
#endif
#ifndef SYS_readlink
#define SYS_readlink	SYS_readlinkat
#endif

enum filter_test {
	FILTER_ANY,		/* whatever the arguments */
	FILTER_EQ,		/* (arg & mask) == value */
	FILTER_EQ_WIDE,		/* all 64 bits == value; value below 2^32 */
	FILTER_EQ_PID,		/* == our own process id */
};

struct filter_arg {
	uint8_t index;
	uint8_t test;		/* enum filter_test */
	uint32_t mask, value;
};

struct filter_rule {
	uint32_t who;		/* BIT(enum isolate_who) */
	int nr;
	int err;		/* 0: allow, else fail with it */
	struct filter_arg arg[2];
};

#define ARG(i, v)	{ (i), FILTER_EQ, 0xffffffffu, (v) }
#define MASKED(i, m, v)	{ (i), FILTER_EQ, (m), (v) }
#define NONE(i)		{ (i), FILTER_EQ_WIDE, 0, 0 }
#define OWN_PID(i)	{ (i), FILTER_EQ_PID, 0, 0 }

#define SOCK_TYPE_BITS	0xfu	/* of socket()'s type, without its flags */
#define OPEN_WRITES	(O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE)

/* Ordered by how often they are made: the filter is walked from the top. */
static const struct filter_rule filter_rules[] = {
	/* the event loop and its timers */
	{ D,     SYS_epoll_wait, 0, { { 0 } } },
	{ D,     SYS_epoll_pwait, 0, { { 0 } } },
	{ D,     SYS_epoll_ctl, 0, { { 0 } } },
	{ D | B | M, SYS_futex, 0, { { 0 } } },
	{ D | B | M, SYS_clock_gettime, 0, { { 0 } } },	/* where no vDSO is */
	{ D | B | M, SYS_gettimeofday, 0, { { 0 } } },
	/* bytes: relays, DNS, records, mailboxes, control socket */
	{ D | B, SYS_read, 0, { { 0 } } },
	{ D | B | M, SYS_write, 0, { { 0 } } },
	{ D,     SYS_readv, 0, { { 0 } } },
	{ D,     SYS_writev, 0, { { 0 } } },
	{ D,     SYS_splice, 0, { { 0 } } },
	{ D,     SYS_recvfrom, 0, { { 0 } } },
	{ D,     SYS_sendto, 0, { { 0 } } },
	{ D | B | M, SYS_recvmsg, 0, { { 0 } } },
	{ D | B | M, SYS_sendmsg, 0, { { 0 } } },
	{ D,     SYS_recvmmsg, 0, { { 0 } } },
	{ D,     SYS_sendmmsg, 0, { { 0 } } },
	{ D | B | M, SYS_close, 0, { { 0 } } },
	/* sockets: flows out, and questions to the upstream resolvers */
	{ D,     SYS_accept4, 0, { { 0 } } },
	{ D | M, SYS_socket, 0, { ARG(0, AF_INET),
				  MASKED(1, SOCK_TYPE_BITS, SOCK_STREAM) } },
	{ D | M, SYS_socket, 0, { ARG(0, AF_INET6),
				  MASKED(1, SOCK_TYPE_BITS, SOCK_STREAM) } },
	{ D,     SYS_socket, 0, { ARG(0, AF_INET),
				  MASKED(1, SOCK_TYPE_BITS, SOCK_DGRAM) } },
	{ D,     SYS_socket, 0, { ARG(0, AF_INET6),
				  MASKED(1, SOCK_TYPE_BITS, SOCK_DGRAM) } },
	{ D,     SYS_connect, 0, { { 0 } } },
	{ DB,    SYS_bind, 0, { { 0 } } },	/* to leave from a source */
	{ D,     SYS_getsockname, 0, { { 0 } } },
	{ D,     SYS_getpeername, 0, { { 0 } } },
	{ D,     SYS_getsockopt, 0, { { 0 } } },
	{ D,     SYS_setsockopt, 0, { { 0 } } },
	{ M,     SYS_setsockopt, 0, { ARG(1, SOL_SOCKET), ARG(2, SO_MARK) } },
	{ D,     SYS_shutdown, 0, { { 0 } } },
	/* relays: pipes for splice(2), bytes still unsent or unread */
	{ D,     SYS_pipe2, 0, { { 0 } } },
	{ D,     SYS_ioctl, 0, { ARG(1, FIONREAD) } },
	{ D,     SYS_ioctl, 0, { ARG(1, TIOCOUTQ) } },
	/* descriptors that were handed over: state, sealed policy texts */
	{ D | B, SYS_fcntl, 0, { ARG(1, F_GETFL) } },
	{ D | B, SYS_fcntl, 0, { ARG(1, F_SETFL) } },
	{ D,     SYS_fcntl, 0, { ARG(1, F_GETFD) } },
	{ D,     SYS_fcntl, 0, { ARG(1, F_SETFD) } },
	{ D,     SYS_fcntl, 0, { ARG(1, F_DUPFD_CLOEXEC) } },
	{ D,     SYS_fcntl, 0, { ARG(1, F_GET_SEALS) } },
	{ D,     SYS_fcntl, 0, { ARG(1, F_SETPIPE_SZ) } },
	{ D,     SYS_fcntl, 0, { ARG(1, F_GETPIPE_SZ) } },
	{ D | B, SYS_newfstatat, 0, { ARG(3, AT_EMPTY_PATH) } },
	{ D | B, SYS_fstat, 0, { { 0 } } },
	{ D,     SYS_lseek, 0, { { 0 } } },
	{ D,     SYS_pread64, 0, { { 0 } } },
	{ D,     SYS_fdatasync, 0, { { 0 } } },		/* records */
	{ D,     SYS_fsync, 0, { { 0 } } },
	{ D | B | M, SYS_poll, 0, { { 0 } } },
	{ D | B | M, SYS_ppoll, 0, { { 0 } } },
	/* memory, never executable */
	{ D | B | M, SYS_brk, 0, { { 0 } } },
	{ D | B | M, SYS_mmap, 0, { MASKED(2, PROT_EXEC, 0) } },
	{ D | B | M, SYS_mprotect, 0, { MASKED(2, PROT_EXEC, 0) } },
	{ D | B | M, SYS_munmap, 0, { { 0 } } },
	{ D | B | M, SYS_mremap, 0, { { 0 } } },
	{ D | B | M, SYS_madvise, 0, { { 0 } } },
	/* libc: ids from the kernel, sorting (how much memory is there), arenas */
	{ D | B | M, SYS_getrandom, 0, { { 0 } } },
	{ D,     SYS_sysinfo, 0, { { 0 } } },
	{ D,     SYS_sched_getaffinity, 0, { { 0 } } },
	{ D,     SYS_sched_yield, 0, { { 0 } } },
	{ D,     SYS_clock_nanosleep, 0, { { 0 } } },
	{ D,     SYS_prlimit64, 0, { NONE(2) } },	/* reading them only */
	/* threads beginning (they were started just before) and ending */
	{ D,     SYS_set_robust_list, 0, { { 0 } } },
	{ D,     SYS_rseq, 0, { { 0 } } },
	{ D | B | M, SYS_rt_sigprocmask, 0, { { 0 } } },
	{ D | B | M, SYS_rt_sigreturn, 0, { { 0 } } },
	{ D | B | M, SYS_restart_syscall, 0, { { 0 } } },
	{ D | B | M, SYS_exit, 0, { { 0 } } },
	{ D | B | M, SYS_exit_group, 0, { { 0 } } },
	/* abort(): of ourselves and of nobody else */
	{ D | B | M, SYS_rt_sigaction, 0, { { 0 } } },
	{ D | B | M, SYS_getpid, 0, { { 0 } } },
	{ D | B | M, SYS_gettid, 0, { { 0 } } },
	{ D | B | M, SYS_tgkill, 0, { OWN_PID(0), ARG(2, SIGABRT) } },
	/* sanitizers, in such builds only: before what else is said of open */
	{ S,     SYS_openat, 0, { { 0 } } },
	/*
	 * c-ares seeds a generator that we do not use from /dev/urandom
	 * whenever a channel is made, and goes on without.
	 */
	{ D,     SYS_openat, EACCES, { MASKED(2, OPEN_WRITES, 0) } },
	/* the broker: files and their changes, texts of policies */
	{ B,     SYS_getdents64, 0, { { 0 } } },
	{ B,     SYS_memfd_create, 0, { { 0 } } },
	{ B,     SYS_lseek, 0, { { 0 } } },
	{ B,     SYS_fcntl, 0, { ARG(1, F_ADD_SEALS) } },
	{ B,     SYS_openat, 0, { { 0 } } },
	{ B,     SYS_newfstatat, 0, { { 0 } } },
	{ B,     SYS_readlinkat, 0, { { 0 } } },
	{ B,     SYS_access, 0, { { 0 } } },
	{ B,     SYS_faccessat, 0, { { 0 } } },
	{ B,     SYS_inotify_add_watch, 0, { { 0 } } },
	{ B,     SYS_inotify_rm_watch, 0, { { 0 } } },
	{ B | S, SYS_readlink, 0, { { 0 } } },
	/* sanitizers again */
	{ S,     SYS_newfstatat, 0, { { 0 } } },
	{ S,     SYS_readlinkat, 0, { { 0 } } },
	{ S,     SYS_sigaltstack, 0, { { 0 } } },
	{ S,     SYS_sched_getaffinity, 0, { { 0 } } },
	{ S,     SYS_sched_yield, 0, { { 0 } } },
	{ S,     SYS_prctl, 0, { { 0 } } },
	{ S,     SYS_mmap, 0, { { 0 } } },
	{ S,     SYS_uname, 0, { { 0 } } },
	{ S,     SYS_ioctl, 0, { { 0 } } },	/* isatty() of a report */
};

/* Twice what the table needs, and one page: it is filled on a fresh stack. */
#define FILTER_MAX	500

struct filter {
	size_t n;
	struct sock_filter insn[FILTER_MAX];
};

static void filter_add(struct filter *f, struct sock_filter insn)
{
	REQUIRE(f->n < FILTER_MAX);
	f->insn[f->n++] = insn;
}

static void filter_load(struct filter *f, size_t offset)
{
	filter_add(f, (struct sock_filter)
		   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void filter_return(struct filter *f, uint32_t action)
{
	filter_add(f, (struct sock_filter)
		   BPF_STMT(BPF_RET | BPF_K, action));
}

/* Go on when equal; else over the next @miss instructions. */
static void filter_expect(struct filter *f, uint32_t value, uint8_t miss)
{
	filter_add(f, (struct sock_filter)
		   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, miss));
}

static size_t filter_arg_size(const struct filter_arg *a)
{
	switch ((enum filter_test)a->test) {
	case FILTER_EQ: return 3;
	case FILTER_EQ_PID: return 2;
	case FILTER_EQ_WIDE: return 4;
	case FILTER_ANY: break;
	}
	return 0;
}

/* @rest: instructions of this rule behind this argument's. */
static void filter_add_arg(struct filter *f, const struct filter_arg *a,
			   uint8_t rest)
{
	size_t low = offsetof(struct seccomp_data, args[a->index]);
	size_t high = low + 4;	/* little-endian, as both architectures */

	switch ((enum filter_test)a->test) {
	case FILTER_ANY:
		return;
	case FILTER_EQ:
		filter_load(f, low);
		filter_add(f, (struct sock_filter)
			   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, a->mask));
		filter_expect(f, a->value & a->mask, rest);
		return;
	case FILTER_EQ_PID:
		filter_load(f, low);
		filter_expect(f, (uint32_t)getpid(), rest);
		return;
	case FILTER_EQ_WIDE:
		filter_load(f, high);
		filter_expect(f, 0, (uint8_t)(rest + 2));
		filter_load(f, low);
		filter_expect(f, a->value, rest);
		return;
	}
}

static void filter_add_rule(struct filter *f, const struct filter_rule *r)
{
	size_t second = filter_arg_size(&r->arg[1]);
	size_t args = filter_arg_size(&r->arg[0]) + second;
	uint32_t action = r->err
		? SECCOMP_RET_ERRNO | ((uint32_t)r->err & SECCOMP_RET_DATA)
		: SECCOMP_RET_ALLOW;

	/* The accumulator holds the number here; arguments overwrite it. */
	filter_expect(f, (uint32_t)r->nr, (uint8_t)(args + (args ? 2 : 1)));
	filter_add_arg(f, &r->arg[0], (uint8_t)(second + 1));
	filter_add_arg(f, &r->arg[1], 1);
	filter_return(f, action);
	if (args)
		filter_load(f, offsetof(struct seccomp_data, nr));
}

static void filter_make(struct filter *f, enum isolate_who who)
{
	size_t i;

	f->n = 0;
	filter_load(f, offsetof(struct seccomp_data, arch));
	filter_expect(f, ISOLATE_ARCH, 2);
	filter_load(f, offsetof(struct seccomp_data, nr));
	filter_add(f, (struct sock_filter)
		   BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ISOLATE_FOREIGN, 0, 1));
	filter_return(f, SECCOMP_RET_KILL_PROCESS);
	for (i = 0; i < ARRAY_SIZE(filter_rules); i++)
		if (filter_rules[i].who & BIT(who))
			filter_add_rule(f, &filter_rules[i]);
	filter_return(f, SECCOMP_RET_KILL_PROCESS);
}

int isolate_seal(enum isolate_who who, const char **ret_what)
{
	struct filter f;
	struct sock_fprog prog;
	long r;

	filter_make(&f, who);
	prog.len = (unsigned short)f.n;
	prog.filter = f.insn;
	*ret_what = "seccomp";
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (r > 0)
		return -EBUSY;	/* that thread could not be joined to it */
	return r < 0 ? -errno : 0;
}
