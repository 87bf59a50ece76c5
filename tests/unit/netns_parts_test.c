/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns_parts_test.c - the parts of the launcher that need no whole sandbox:
 *                      ids, the working directory, the command's filter
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "netns-setup/command_filter.h"
#include "netns-setup/idmap.h"
#include "netns-setup/mounts.h"
#include "netns-setup/workdir.h"
#include "tests/unit/netns_lab.h"

/* --- ids -------------------------------------------------------------------- */

#define SUBUID \
	"# a comment\nalice:100000:65536\nbob:200000:1000\n" \
	"1002:300000:65536\nalice:500000:10\nbroken\nbroken:x:1\nzero:1:0\n"

static void subid_ranges_go_by_name_or_number(void **state)
{
	struct str text = STR(SUBUID);
	struct id_range r;

	(void)state;
	r = id_sub_range(text, 1000, STR("alice"));
	assert_int_equal(r.start, 100000);
	assert_int_equal(r.count, 65535);	/* beside the caller's own id */
	r = id_sub_range(text, 1001, STR("bob"));
	assert_int_equal(r.start, 200000);
	assert_int_equal(r.count, 1000);
	r = id_sub_range(text, 1002, STR_NONE);
	assert_int_equal(r.start, 300000);
	assert_int_equal(id_sub_range(text, 1003, STR("eve")).count, 0);
	assert_int_equal(id_sub_range(text, 1003, STR("broken")).count, 0);
	assert_int_equal(id_sub_range(text, 1003, STR("zero")).count, 0);
}

static void a_range_that_is_given_away_is_noticed(void **state)
{
	struct str text = STR(SUBUID);

	(void)state;
	assert_true(id_sub_overlaps(text, (struct id_range){ 165535, 1 }));
	assert_false(id_sub_overlaps(text, (struct id_range){ 165536, 34464 }));
	assert_true(id_sub_overlaps(text, (struct id_range){ 165536, 34465 }));
	assert_false(id_sub_overlaps(
		text, (struct id_range){ ID_HOST_BASE, ID_COUNT }));
	assert_true(id_sub_overlaps(STR("x:4294967295:4294967295"),
				    (struct id_range){ 4294967295u, 1 }));
}

static void under_root_no_id_inside_is_one_of_the_hosts(void **state)
{
	const struct id_plan root = { .privileged = true, .many = true,
				      .base = ID_HOST_BASE, .uid = 1000 };
	const struct id_plan user = { .caller_uid = 1000, .uid = 1000 };

	(void)state;
	assert_int_equal(id_on_host(&root, 0), ID_HOST_BASE);
	assert_int_equal(id_on_host(&root, 1000), ID_HOST_BASE + 1000);
	assert_int_equal(id_in_setup(&root, 1000), 1000);
	assert_true(id_of_daemon(&root) >= ID_HOST_BASE + ID_COUNT);
	/* With one id, it is 0 in the setup process's numbers. */
	assert_int_equal(id_in_setup(&user, 1000), 0);
	assert_int_equal(id_of_daemon(&user), 0);
}

static void only_known_numbers_are_taken_for_the_command(void **state)
{
	static const struct { uint32_t wish, got; } rows[] = {
		{ 0, 1000 }, { 1, 1 }, { 501, 501 }, { 1000, 1000 },
		{ 65533, 65533 }, { 65534, 1000 }, { 65536, 1000 },
		{ 4294967295u, 1000 },
	};
	struct launch_error err;
	struct id_plan plan;
	const char *why;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct launch_spec spec = { .uid = rows[i].wish };

		assert_int_equal(id_plan_make(&spec, &plan, &why, &err), 0);
		assert_int_equal(plan.uid, rows[i].got);
	}
}

/* --- working directory --------------------------------------------------------- */

static void paths_are_compared_by_whole_parts(void **state)
{
	(void)state;
	assert_true(path_is_in("/a/b", "/a"));
	assert_true(path_is_in("/a", "/a"));
	assert_true(path_is_in("/a", "/a/"));
	assert_true(path_is_in("/a", "/"));
	assert_false(path_is_in("/ab", "/a"));
	assert_false(path_is_in("/a", "/a/b"));
}

static void a_directory_above_what_is_hidden_is_not_put_back(void **state)
{
	static const struct {
		const char *cwd, *home;
		bool root;
		enum workdir_kind kind;
	} rows[] = {
		{ "/home/u/project", "/home/u", false, WORKDIR_BACK },
		{ "/home/u", "/home/u", false, WORKDIR_HOME },
		{ "/home", "/home/u", false, WORKDIR_HOME },
		{ "/", "/home/u", false, WORKDIR_HOME },
		{ "/home/uv", "/home/u", false, WORKDIR_BACK },
		{ "/srv/work", "/home/u", false, WORKDIR_BACK },
		{ "/tmp/build", "/home/u", false, WORKDIR_BACK },
		{ "/tmp", "/home/u", false, WORKDIR_HOME },
		{ "/var", "/home/u", false, WORKDIR_HOME },
		{ "/var/tmp", "/home/u", false, WORKDIR_HOME },
		{ "/run", "/home/u", false, WORKDIR_HOME },
		{ "/run/user/1000", "/home/u", false, WORKDIR_BACK },
		{ "/dev/shm", "/home/u", false, WORKDIR_HOME },
		{ "/proc/self", "/home/u", false, WORKDIR_HOME },
		{ "/sys", "/home/u", false, WORKDIR_HOME },
		{ "/usr/src", "/home/u", false, WORKDIR_BACK },
		{ "/root/project", "/root", true, WORKDIR_BACK },
		{ "/root", "/root", true, WORKDIR_HOME },
		{ "/home/u/project", "/root", true, WORKDIR_BACK },
		{ "/home", "/root", true, WORKDIR_HOME },
		{ "/etc", "/root", true, WORKDIR_AS_IS },
		{ "/usr/local/src", "/root", true, WORKDIR_AS_IS },
		{ "/var/lib/x", "/root", true, WORKDIR_AS_IS },
		{ "/var/tmp/x", "/root", true, WORKDIR_BACK },
		{ "/srv/work", "/root", true, WORKDIR_BACK },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (workdir_kind(rows[i].cwd, rows[i].home, rows[i].root) ==
		    rows[i].kind)
			continue;
		fail_msg("%s with home %s", rows[i].cwd, rows[i].home);
	}
}

/* --- the filter ------------------------------------------------------------- */

static void load(void)
{
	LAB_CHECK(command_filter_load(S_ISUID) == 0);
}

static int fails_with(long result)
{
	return result == -1 ? errno : 0;
}

/* SBX-10 */
static void body_families(void *arg)
{
	(void)arg;
	load();
	for (int family = 0; family < 64; family++) {
		bool fine = family == AF_UNIX || family == AF_INET ||
			    family == AF_INET6;
		int e = fails_with(socket(family, SOCK_DGRAM, 0));

		if (family == AF_NETLINK)
			continue;
		LAB_CHECK(fine ? e == 0 : e == EAFNOSUPPORT);
		/* Above its 32 bits the kernel does not look. */
		e = fails_with(syscall(SYS_socket, (1ul << 32) | (unsigned)family,
				       (unsigned long)SOCK_DGRAM, 0ul));
		LAB_CHECK(fine ? e == 0 : e == EAFNOSUPPORT);
	}
	LAB_CHECK(fails_with(socket(AF_NETLINK, SOCK_RAW, 0)) == 0);
	for (int protocol = 1; protocol < 32; protocol++)
		LAB_CHECK(fails_with(socket(AF_NETLINK, SOCK_RAW, protocol)) ==
			  EPROTONOSUPPORT);
	_exit(0);
}

/* SBX-09: nothing but TCP and UDP on the inet families. */
static void body_types(void *arg)
{
	static const int inet[] = { AF_INET, AF_INET6 };
	(void)arg;

	load();
	for (size_t i = 0; i < ARRAY_SIZE(inet); i++) {
		LAB_CHECK(!fails_with(socket(inet[i], SOCK_STREAM |
					     SOCK_NONBLOCK, IPPROTO_TCP)));
		LAB_CHECK(!fails_with(socket(inet[i], SOCK_DGRAM |
					     SOCK_CLOEXEC, IPPROTO_UDP)));
		for (int type = SOCK_RAW; type < 16; type++)
			LAB_CHECK(fails_with(socket(inet[i], type, 0)) == EPERM);
		for (int protocol = 1; protocol < 300; protocol++) {
			if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP)
				continue;
			LAB_CHECK(fails_with(socket(inet[i], SOCK_DGRAM,
						    protocol)) ==
				  EPROTONOSUPPORT);
		}
	}
}

/* SBX-12 */
static void body_pairs(void *arg)
{
	int pair[2];
	(void)arg;

	load();
	LAB_CHECK(!fails_with(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)));
	LAB_CHECK(fails_with(socketpair(AF_INET, SOCK_STREAM, 0, pair)) ==
		  EAFNOSUPPORT);
	LAB_CHECK(fails_with(syscall(SYS_io_uring_setup, 8, NULL)) == ENOSYS);
}

/* SBX-14 */
static void body_namespaces(void *arg)
{
	static const unsigned long flags[] = {
		CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET,
	};
	struct clone_args args = { .flags = CLONE_NEWUSER };
	long pid;
	int status;
	(void)arg;

	load();
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		LAB_CHECK(fails_with(syscall(SYS_unshare, flags[i])) == EPERM);
		LAB_CHECK(fails_with(syscall(SYS_clone, flags[i] | SIGCHLD, 0,
					     0, 0, 0)) == EPERM);
	}
	LAB_CHECK(fails_with(syscall(SYS_unshare, CLONE_NEWTIME)) == EPERM);
	LAB_CHECK(fails_with(syscall(SYS_setns, -1, 0)) == EPERM);
	LAB_CHECK(fails_with(syscall(SYS_clone3, &args, sizeof(args))) ==
		  ENOSYS);
	/* The controls: a child, and unsharing what is no namespace. */
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(7);
	LAB_CHECK(waitpid((pid_t)pid, &status, 0) == pid &&
		  WEXITSTATUS(status) == 7);
	LAB_CHECK(!fails_with(syscall(SYS_unshare, CLONE_FS | CLONE_FILES)));
}

static void body_refused(void *arg)
{
	static const long number[] = {
		SYS_mount, SYS_umount2, SYS_pivot_root, SYS_open_tree,
		SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
		SYS_fspick, 442, SYS_bpf, SYS_perf_event_open,
		SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl,
		SYS_open_by_handle_at, SYS_process_vm_readv,
		SYS_process_vm_writev, SYS_kexec_load, SYS_init_module,
		SYS_finit_module, SYS_delete_module, SYS_swapon, SYS_swapoff,
		SYS_reboot, SYS_acct, SYS_quotactl, SYS_settimeofday,
		SYS_clock_settime, SYS_syslog,
	};
	(void)arg;

	load();
	for (size_t i = 0; i < ARRAY_SIZE(number); i++)
		LAB_CHECK(fails_with(syscall(number[i], -1, 0, 0, 0, 0, 0)) ==
			  EPERM);
	LAB_CHECK(fails_with(ioctl(0, TIOCSTI, "x")) == EPERM);
	LAB_CHECK(fails_with(syscall(SYS_ioctl, 0,
				     (1ul << 32) | TIOCSTI, "x")) == EPERM);
	LAB_CHECK(fails_with(ioctl(-1, FIONREAD, NULL)) == EBADF);
	LAB_CHECK(fails_with(syscall(SYS_openat2, -1, "x", NULL, 0)) == ENOSYS);
	LAB_CHECK(syscall(SYS_getpid) == getpid());
}

static void body_modes(void *arg)
{
	int fd = (int)syscall(SYS_memfd_create, "f", 0);
	(void)arg;

	load();
	LAB_CHECK(fails_with(fchmod(fd, 04755)) == EPERM);
	LAB_CHECK(fails_with(fchmod(fd, 02755)) == 0);
	LAB_CHECK(fails_with(fchmod(fd, 0755)) == 0);
	LAB_CHECK(fails_with(open("/nowhere/x", O_CREAT | O_WRONLY, 04755)) ==
		  EPERM);
	LAB_CHECK(fails_with(open("/nowhere/x", O_CREAT | O_WRONLY, 0755)) ==
		  ENOENT);
	/* Without O_CREAT the mode is whatever stands in the register. */
	LAB_CHECK(fails_with(syscall(SYS_openat, -1, "/nowhere/x", O_RDONLY,
				     04755)) == ENOENT);
	LAB_CHECK(fails_with(open("/", O_TMPFILE | O_WRONLY, 04755)) == EPERM);
	LAB_CHECK(fails_with(syscall(SYS_fchmodat, -1, "x", 04755)) == EPERM);
	LAB_CHECK(fails_with(syscall(SYS_mknodat, -1, "x", 04755, 0)) == EPERM);
}

/* SBX-15: the x32 numbers of x86-64. */
static void body_x32(void *arg)
{
	(void)arg;
	load();
	syscall(0x40000000L + SYS_getpid);
}

static void only_four_socket_families_exist(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_families, NULL), 0);
}

static void inet_sockets_are_tcp_or_udp(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_types, NULL), 0);
}

static void socket_pairs_are_unix_and_io_uring_is_not_there(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_pairs, NULL), 0);
}

static void no_new_namespace_is_made_but_children_are(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_namespaces, NULL), 0);
}

static void the_machines_own_calls_are_refused(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_refused, NULL), 0);
}

static void no_file_becomes_set_user_id(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_modes, NULL), 0);
}

/*
 * What the program says of an ABI.  It looks at that first, so that only its
 * first load, jump and return have to be understood here.
 */
static uint32_t abi_verdict(uint32_t arch)
{
	struct sock_filter f[COMMAND_FILTER_MAX];
	size_t n = command_filter_make(f, S_ISUID), at = 1;

	assert_true(n > 3);
	assert_int_equal(f[0].code, BPF_LD | BPF_W | BPF_ABS);
	assert_int_equal(f[0].k, offsetof(struct seccomp_data, arch));
	assert_int_equal(f[1].code, BPF_JMP | BPF_JEQ | BPF_K);
	at += 1u + (f[1].k == arch ? f[1].jt : f[1].jf);
	return f[at].code == (BPF_RET | BPF_K) ? f[at].k : SECCOMP_RET_ALLOW;
}

/* SBX-15, also where this machine's kernel has no such ABI to try */
static void only_the_native_abi_goes_on(void **state)
{
	static const uint32_t archs[] = {
		AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, AUDIT_ARCH_ARM,
		AUDIT_ARCH_AARCH64, AUDIT_ARCH_RISCV64, 0,
	};
	unsigned passed = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		if (abi_verdict(archs[i]) == SECCOMP_RET_ALLOW)
			passed++;
		else
			assert_int_equal(abi_verdict(archs[i]),
					 SECCOMP_RET_KILL_PROCESS);
	}
	assert_int_equal(passed, 1);
}

static void foreign_numbers_end_the_process(void **state)
{
	(void)state;
	assert_int_equal(lab_run(body_x32, NULL), 128 + SIGSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subid_ranges_go_by_name_or_number),
		cmocka_unit_test(a_range_that_is_given_away_is_noticed),
		cmocka_unit_test(under_root_no_id_inside_is_one_of_the_hosts),
		cmocka_unit_test(only_known_numbers_are_taken_for_the_command),
		cmocka_unit_test(paths_are_compared_by_whole_parts),
		cmocka_unit_test(
			a_directory_above_what_is_hidden_is_not_put_back),
		cmocka_unit_test(only_four_socket_families_exist),
		cmocka_unit_test(inet_sockets_are_tcp_or_udp),
		cmocka_unit_test(socket_pairs_are_unix_and_io_uring_is_not_there),
		cmocka_unit_test(no_new_namespace_is_made_but_children_are),
		cmocka_unit_test(the_machines_own_calls_are_refused),
		cmocka_unit_test(no_file_becomes_set_user_id),
		cmocka_unit_test(only_the_native_abi_goes_on),
		cmocka_unit_test(foreign_numbers_end_the_process),
	};

	if (!lab_works()) {
		puts("1..0 # SKIP no user namespaces here");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
