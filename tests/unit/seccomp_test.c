/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_test.c - filters, tried in children that may die of them
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/seccomp.h"

#define INT_MASK	0xffffffff

/* Only UNIX and IPv4 sockets, written as what is left out. */
static const struct seccomp_rule socket_rules[] = {
	{ "socket", SECCOMP_DO_ERRNO, EAFNOSUPPORT, 1,
	  { { 0, 0, INT_MASK, 0 } } },
	{ "socket", SECCOMP_DO_ERRNO, EAFNOSUPPORT, 1,
	  { { 0, 0, INT_MASK, 3 } } },
	{ "socket", SECCOMP_DO_ERRNO, EAFNOSUPPORT, 1,
	  { { 0, 1, 0xfffffffc, 0 } } },
};
static const struct seccomp_policy only_local_and_ipv4 = {
	.otherwise = SECCOMP_DO_ALLOW,
	.rule = socket_rules,
	.n = ARRAY_SIZE(socket_rules),
};

static const struct seccomp_rule few_rules[] = {
	{ .syscall = "exit_group", .act = SECCOMP_DO_ALLOW },
	{ .syscall = "getppid", .act = SECCOMP_DO_ALLOW },
	{ .syscall = "no_such_call_at_all", .act = SECCOMP_DO_ALLOW },
	{ .syscall = "socketcall", .act = SECCOMP_DO_ALLOW },
	{ .syscall = "getuid", .act = SECCOMP_DO_ERRNO, .err = EXDEV },
};
static const struct seccomp_policy only_few = {
	.otherwise = SECCOMP_DO_KILL,
	.rule = few_rules,
	.n = ARRAY_SIZE(few_rules),
};

/* A child, without cmocka's handlers: it dies as it would outside a test. */
static pid_t fork_plain(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGSYS, SIG_DFL);
	}
	return pid;
}

/* How a child ends that loads @p (compiled first or not) and calls @then. */
static int run(const struct seccomp_policy *p, bool compiled,
	       void (*then)(void))
{
	struct sock_filter *prog = NULL;
	const char *what = NULL;
	size_t n = 0;
	int status;
	pid_t pid;

	if (compiled)
		assert_int_equal(seccomp_compile(p, &prog, &n, &what), 0);
	pid = fork_plain();
	if (pid == 0) {
		int err = compiled ? seccomp_load_compiled(prog, n) :
				     seccomp_load_policy(p, &what);

		if (err)
			_exit(90);
		then();
		_exit(91);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	mem_free(prog);
	return status;
}

/* A filter that kills is loaded compiled only: it would end free() too. */
static int first_way(const struct seccomp_policy *p)
{
	return p->otherwise == SECCOMP_DO_KILL ? 1 : 0;
}

static void assert_exit(const struct seccomp_policy *p, void (*then)(void),
			int code)
{
	for (int compiled = first_way(p); compiled < 2; compiled++) {
		int status = run(p, compiled, then);

		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), code);
	}
}

static void assert_killed(const struct seccomp_policy *p, void (*then)(void))
{
	for (int compiled = first_way(p); compiled < 2; compiled++) {
		int status = run(p, compiled, then);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

/* Not _exit(): sanitizers make system calls of their own before it. */
static void leave(int code)
{
	syscall(SYS_exit_group, code);
}

/* Bit N of the result: family N gave a socket. */
static int families(long high)
{
	int mask = 0;

	for (long f = 0; f < 6; f++) {
		long fd = syscall(SYS_socket, high | f, SOCK_STREAM, 0);

		if (fd >= 0) {
			mask |= 1 << f;
			close((int)fd);
		} else if (errno != EAFNOSUPPORT) {
			return 0x40;
		}
	}
	return mask;
}

static void try_families(void)
{
	leave(families(0));
}

static void try_families_with_high_bits(void)
{
	leave(families(1l << 32));
}

static void try_high_family(void)
{
	leave(syscall(SYS_socket, 1l << 31, SOCK_STREAM, 0) < 0 &&
	      errno == EAFNOSUPPORT ? 0 : 1);
}

static void only_the_named_families_get_a_socket(void **state)
{
	(void)state;
	assert_exit(&only_local_and_ipv4, try_families,
		    1 << AF_UNIX | 1 << AF_INET);
	assert_exit(&only_local_and_ipv4, try_high_family, 0);
}

/* The kernel takes an int: bits above it must not carry a value past us. */
static void the_upper_half_of_an_int_changes_nothing(void **state)
{
	(void)state;
	assert_exit(&only_local_and_ipv4, try_families_with_high_bits,
		    1 << AF_UNIX | 1 << AF_INET);
}

static void try_allowed(void)
{
	leave(syscall(SYS_getppid) > 0 ? 0 : 1);
}

static void try_errno(void)
{
	leave(syscall(SYS_getuid) == -1 && errno == EXDEV ? 0 : 1);
}

static void try_other(void)
{
	syscall(SYS_getgid);
	leave(0);
}

static void what_no_rule_names_ends_the_process(void **state)
{
	(void)state;
	assert_exit(&only_few, try_allowed, 0);
	assert_exit(&only_few, try_errno, 0);
	assert_killed(&only_few, try_other);
}

#ifdef __x86_64__
static long getpid_by_int80(void)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
	return result;
}

static void try_int80(void)
{
	leave(getpid_by_int80() > 0 ? 0 : 1);
}

static void try_x32(void)
{
	syscall(0x40000000 | SYS_getppid);
	leave(0);
}

/* Whether the kernel has the 32-bit entry at all. */
static bool has_int80(void)
{
	int status;
	pid_t pid = fork_plain();

	if (pid == 0)
		try_int80();
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void foreign_abis_end_the_process(void **state)
{
	(void)state;
	/* Even where nearly everything is allowed. */
	assert_exit(&only_local_and_ipv4, try_allowed, 0);
	assert_killed(&only_local_and_ipv4, try_x32);
	assert_killed(&only_few, try_x32);
	if (!has_int80()) {
		print_message("# no 32-bit entry in this kernel\n");
		return;
	}
	assert_killed(&only_local_and_ipv4, try_int80);
	assert_killed(&only_few, try_int80);
}
#endif

/* One instruction of the few that filters consist of; false: returned. */
static bool step(const struct sock_filter **at, const struct seccomp_data *d,
		 uint32_t *acc)
{
	const struct sock_filter *i = *at;
	bool taken = false;

	*at = i + 1;
	switch (i->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		memcpy(acc, (const char *)d + i->k, 4);
		return true;
	case BPF_ALU | BPF_AND | BPF_K:
		*acc &= i->k;
		return true;
	case BPF_JMP | BPF_JA:
		*at += i->k;
		return true;
	case BPF_JMP | BPF_JEQ | BPF_K:
		taken = *acc == i->k;
		break;
	case BPF_JMP | BPF_JGT | BPF_K:
		taken = *acc > i->k;
		break;
	case BPF_JMP | BPF_JGE | BPF_K:
		taken = *acc >= i->k;
		break;
	case BPF_RET | BPF_K:
		*acc = i->k;
		return false;
	default:
		fail_msg("instruction %#x", i->code);
	}
	*at += taken ? i->jt : i->jf;
	return true;
}

static uint32_t verdict(const struct seccomp_policy *p, uint32_t arch, int nr)
{
	struct seccomp_data d = { .arch = arch, .nr = nr };
	const struct sock_filter *at;
	struct sock_filter *prog;
	const char *what;
	uint32_t acc = 0;
	size_t n;

	assert_int_equal(seccomp_compile(p, &prog, &n, &what), 0);
	for (at = prog; step(&at, &d, &acc);)
		assert_true(at < prog + n);
	mem_free(prog);
	return acc;
}

/* Also where this machine's kernel has no such ABI to try. */
static void only_the_native_abi_passes_the_program(void **state)
{
	static const uint32_t archs[] = {
		AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, AUDIT_ARCH_ARM,
		AUDIT_ARCH_AARCH64, AUDIT_ARCH_MIPS, AUDIT_ARCH_RISCV64, 0,
	};
	unsigned allowed = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		uint32_t v = verdict(&only_local_and_ipv4, archs[i],
				     SYS_getppid);

		if (v == SECCOMP_RET_ALLOW)
			allowed++;
		else
			assert_int_equal(v, SECCOMP_RET_KILL_PROCESS);
	}
	assert_int_equal(allowed, 1);
}

static void *thread(void *arg)
{
	pthread_barrier_t *both = arg;

	pthread_barrier_wait(both);	/* it runs */
	pthread_barrier_wait(both);	/* the filter is loaded */
	return (void *)(intptr_t)families(0);
}

static void other_threads_get_the_filter_too(void **state)
{
	int status;
	pid_t pid = fork_plain();

	(void)state;
	if (pid == 0) {
		pthread_barrier_t both;
		const char *what;
		pthread_t t;
		void *mask;

		if (pthread_barrier_init(&both, NULL, 2) ||
		    pthread_create(&t, NULL, thread, &both))
			_exit(92);
		pthread_barrier_wait(&both);
		if (seccomp_load_policy(&only_local_and_ipv4, &what))
			_exit(93);
		pthread_barrier_wait(&both);
		if (pthread_join(t, &mask))
			_exit(94);
		_exit((int)(intptr_t)mask);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1 << AF_UNIX | 1 << AF_INET);
}

static void try_nnp(void)
{
	leave(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static void a_loaded_filter_forbids_new_privileges(void **state)
{
	(void)state;
	assert_exit(&only_local_and_ipv4, try_nnp, 1);
}

static void a_door_whose_name_is_unknown_is_an_error(void **state)
{
	static const struct seccomp_rule typo[] = {
		{ .syscall = "io_urnig_setup", .act = SECCOMP_DO_ERRNO,
		  .err = EPERM },
	};
	static const struct seccomp_policy p = {
		.otherwise = SECCOMP_DO_ALLOW, .rule = typo, .n = 1,
	};
	struct sock_filter *prog;
	const char *what = NULL;
	size_t n;

	(void)state;
	assert_int_equal(seccomp_compile(&p, &prog, &n, &what), -ENOSYS);
	assert_string_equal(what, "io_urnig_setup");
}

static void rules_that_cannot_be_meant_are_errors(void **state)
{
	static const struct seccomp_rule bad[] = {
		/* a value outside the mask */
		{ "socket", SECCOMP_DO_ERRNO, EPERM, 1, { { 0, 0, 1, 2 } } },
		{ "socket", SECCOMP_DO_ERRNO, EPERM, 1, { { 0, 0, 0, 0 } } },
		{ "socket", SECCOMP_DO_ERRNO, EPERM, 1, { { 6, 0, 1, 1 } } },
		{ "socket", SECCOMP_DO_ERRNO, EPERM, 4, { { 0, 0, 1, 1 } } },
		/* two partial negations */
		{ "socket", SECCOMP_DO_ERRNO, EPERM, 2,
		  { { 0, 1, 1, 1 }, { 1, 1, 1, 1 } } },
	};
	struct sock_filter *prog;
	const char *what;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct seccomp_policy p = {
			.otherwise = SECCOMP_DO_ALLOW, .rule = &bad[i], .n = 1,
		};

		what = NULL;
		assert_int_equal(seccomp_compile(&p, &prog, &n, &what),
				 -EINVAL);
		assert_string_equal(what, "socket");
	}
	mem_test_fail_at(1);
	assert_int_equal(seccomp_compile(&only_few, &prog, &n, &what),
			 -ENOMEM);
	assert_int_equal(seccomp_load_compiled(NULL, 0), -E2BIG);
	assert_int_equal(seccomp_load_compiled(NULL, 5000), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_named_families_get_a_socket),
		cmocka_unit_test(the_upper_half_of_an_int_changes_nothing),
		cmocka_unit_test(what_no_rule_names_ends_the_process),
#ifdef __x86_64__
		cmocka_unit_test(foreign_abis_end_the_process),
#endif
		cmocka_unit_test(only_the_native_abi_passes_the_program),
		cmocka_unit_test(other_threads_get_the_filter_too),
		cmocka_unit_test(a_loaded_filter_forbids_new_privileges),
		cmocka_unit_test(a_door_whose_name_is_unknown_is_an_error),
		cmocka_unit_test(rules_that_cannot_be_meant_are_errors),
	};

	return cmocka_run_group_tests_name("seccomp", tests, NULL, NULL);
}
