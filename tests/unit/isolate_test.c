/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate_test.c - a sealed process can do nothing but its work
 *
 * Each deed is tried twice in a child: without the seal, where it must work
 * (the control), and behind it, where it must end the process by SIGSYS, fail
 * with the errno we chose, or still work.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <config.h>

#include "base/compiler.h"
#include "proxy/isolate.h"

#ifdef PENSTOCK_SANITIZED
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

typedef int deed_fn(void);	/* 0: it worked, else an errno */

static int tried(long r)
{
	return r < 0 ? errno : 0;
}

/* A child of its own user and network namespaces: whole there, until it drops. */
static void child_enter(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 &&
	    unshare(CLONE_NEWNET) < 0)
		_exit(100);
}

static int child_drop(enum isolate_who who, const char **ret_what)
{
	static const struct isolate_ids ids = { 65000, 65000 };
	const struct isolate_ids *to = getuid() == 0 ? &ids : NULL;

	return who == ISOLATE_MARKER ?
	       isolate_drop_but(to, CAP_NET_RAW, ret_what) :
	       isolate_drop(to, ret_what);
}

static void child_seal(enum isolate_who who)
{
	const char *what = "";
	bool active;

	if (child_drop(who, &what) < 0 ||
	    isolate_limits(&what) < 0 || isolate_files(who ==
	    ISOLATE_DAEMON_BINDS, &active, &what) < 0 ||
	    isolate_seal(who, &what) < 0) {
		(void)!write(STDERR_FILENO, what, strlen(what));
		_exit(101);
	}
}

/* Return: the child's exit status, or minus the signal that ended it. */
static int try_in_child(deed_fn *deed, bool sealed, enum isolate_who who)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		child_enter();
		if (sealed)
			child_seal(who);
		isolate_exit(deed());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void must_die(deed_fn *deed)
{
	assert_int_equal(try_in_child(deed, false, ISOLATE_DAEMON), 0);
	assert_int_equal(try_in_child(deed, true, ISOLATE_DAEMON), -SIGSYS);
}

static void must_work(deed_fn *deed)
{
	assert_int_equal(try_in_child(deed, false, ISOLATE_DAEMON), 0);
	assert_int_equal(try_in_child(deed, true, ISOLATE_DAEMON), 0);
}

/* --- deeds ------------------------------------------------------------------- */

static int open_to_write(void)
{
	return tried(open("/dev/null", O_WRONLY));
}

static int open_to_read(void)
{
	return tried(open("/dev/null", O_RDONLY));
}

static int exec_true(void)
{
	static char *const argv[] = { (char *)(uintptr_t)"true", NULL };
	static char *const env[] = { NULL };

	return tried(execve("/bin/true", argv, env));
}

static int packet_socket(void)
{
	return tried(socket(AF_PACKET, SOCK_RAW, 0));
}

static int raw_socket(void)
{
	return tried(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static int unix_socket(void)
{
	return tried(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int netlink_socket(void)
{
	return tried(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int trace_me(void)
{
	return tried(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int fork_one(void)
{
	return tried(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static int map_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int kill_parent_with_nothing(void)
{
	return tried(kill(getppid(), 0));
}

static int signal_another_thread_group(void)
{
	return tried(syscall(SYS_tgkill, getppid(), getppid(), 0));
}

static int make_namespace(void)
{
	return tried(unshare(CLONE_NEWUTS));
}

static int set_limit(void)
{
	static const struct rlimit some = { 64, 64 };

	return tried(setrlimit(RLIMIT_NOFILE, &some));
}

static int io_uring(void)
{
	struct { char zero[120]; } params = { { 0 } };
	long r = syscall(SYS_io_uring_setup, 1, &params);

	/* The control: here or switched off, it is no SIGSYS. */
	return r < 0 && errno != ENOSYS && errno != EPERM ? errno : 0;
}

static int dial_sockets(void)
{
	int v4 = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int v6 = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return v4 < 0 || v6 < 0 ? errno : 0;
}

static int bind_tcp(uint16_t port)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno :
	       tried(bind(fd, (const struct sockaddr *)&at, sizeof(at)));
}

static int bind_to_an_address(void)
{
	return bind_tcp(0);
}

static int bind_to_a_port(void)
{
	return bind_tcp(40404);
}

static int stream_option(int level, int name)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	int v = 1;

	return fd < 0 ? errno :
	       tried(setsockopt(fd, level, name, &v, sizeof(v)));
}

static int mark_a_socket(void)
{
	return stream_option(SOL_SOCKET, SO_MARK);
}

static int be_transparent(void)
{
	return stream_option(IPPROTO_IPV6, IPV6_TRANSPARENT);
}

static int keep_alive(void)
{
	return stream_option(SOL_SOCKET, SO_KEEPALIVE);
}

static int connect_nowhere(void)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
		return 0;
	/* Nothing is there: lo is down. */
	return errno == ENETUNREACH || errno == ECONNREFUSED ? 0 : errno;
}

static int work_with_memory(void)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p, 4096, PROT_READ) < 0)
		return errno;
	return tried(munmap(p, 1 << 20));
}

static int read_a_limit(void)
{
	struct rlimit l;

	return tried(getrlimit(RLIMIT_NOFILE, &l));
}

/* --- tests ---------------------------------------------------------------------- */

static void the_sealed_daemon_dies_of_what_it_never_does(void **state)
{
	(void)state;
	must_die(exec_true);
	must_die(packet_socket);
	must_die(raw_socket);
	must_die(unix_socket);
	must_die(netlink_socket);
	must_die(trace_me);
	must_die(fork_one);
	must_die(kill_parent_with_nothing);
	must_die(signal_another_thread_group);
	must_die(make_namespace);
	must_die(set_limit);
	must_die(io_uring);
	if (SANITIZED)
		print_message("sanitized: opening and executable memory are let be\n");
	else {
		must_die(map_executable);
		must_die(open_to_write);
	}
}

static void reading_a_file_fails_without_harm(void **state)
{
	(void)state;
	/* c-ares tries /dev/urandom whenever a channel is made. */
	assert_int_equal(try_in_child(open_to_read, false, ISOLATE_DAEMON), 0);
	if (!SANITIZED)
		assert_int_equal(try_in_child(open_to_read, true,
					      ISOLATE_DAEMON), EACCES);
}

static void the_sealed_daemon_can_do_its_work(void **state)
{
	(void)state;
	must_work(dial_sockets);
	must_work(work_with_memory);
	must_work(read_a_limit);
}

/* Where the operator names a source; a port of our choice is Landlock's to deny,
 * from its fourth version on. */
static void a_daemon_with_a_source_may_bind_and_no_other(void **state)
{
	int port;

	(void)state;
	must_die(bind_to_an_address);
	assert_int_equal(try_in_child(bind_to_an_address, true,
				      ISOLATE_DAEMON_BINDS), 0);
	port = try_in_child(bind_to_a_port, true, ISOLATE_DAEMON_BINDS);
	if (port != 0)
		assert_int_equal(port, EACCES);
}

static void the_sealed_broker_has_no_network(void **state)
{
	(void)state;
	assert_int_equal(try_in_child(dial_sockets, true, ISOLATE_BROKER),
			 -SIGSYS);
	assert_int_equal(try_in_child(exec_true, true, ISOLATE_BROKER),
			 -SIGSYS);
}

/* It keeps the right that the daemon gives up, and nothing to use it for. */
static void the_sealed_marker_marks_and_does_nothing_else(void **state)
{
	static deed_fn *const deadly[] = {
		be_transparent, keep_alive, connect_nowhere,
		bind_to_an_address, raw_socket, packet_socket, dial_sockets,
		unix_socket, netlink_socket, exec_true, fork_one,
		make_namespace,
	};

	(void)state;
	assert_int_equal(try_in_child(mark_a_socket, true, ISOLATE_DAEMON),
			 EPERM);
	assert_int_equal(try_in_child(mark_a_socket, true, ISOLATE_MARKER), 0);
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++) {
		assert_int_equal(try_in_child(deadly[i], false,
					      ISOLATE_MARKER), 0);
		assert_int_equal(try_in_child(deadly[i], true, ISOLATE_MARKER),
				 -SIGSYS);
	}
	if (!SANITIZED)
		assert_int_equal(try_in_child(open_to_read, true,
					      ISOLATE_MARKER), -SIGSYS);
}

static int look_at_the_markers_rights(void)
{
	static const struct isolate_ids ids = { 65000, 65001 };
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	const char *what = "";

	if (getuid() != 0)
		return 77;
	if (isolate_drop_but(&ids, CAP_NET_RAW, &what) < 0)
		return 101;
	if (getuid() != 65000 || getgid() != 65001 ||
	    setresuid(0, 0, 0) == 0)
		return 1;
	if (syscall(SYS_capget, &head, data) < 0)
		return 102;
	if (data[0].permitted != BIT(CAP_NET_RAW) ||
	    data[0].effective != BIT(CAP_NET_RAW) || data[0].inheritable ||
	    data[1].permitted)
		return 2;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    prctl(PR_CAPBSET_READ, CAP_NET_RAW, 0, 0, 0) != 0)
		return 3;
	return 0;
}

static int abort_self(void)
{
	abort();
}

static void a_sealed_process_can_still_abort(void **state)
{
	(void)state;
	assert_int_equal(try_in_child(abort_self, true, ISOLATE_DAEMON),
			 -SIGABRT);
}

/* Landlock alone, without the filter: other ways to open are closed too. */
static int open_behind_landlock(void)
{
	const char *what = "";
	bool active;

	if (isolate_drop(NULL, &what) < 0 || isolate_files(false, &active, &what) < 0)
		return 101;
	if (!active)
		return EACCES;	/* nothing to be tested on this kernel */
	return open_to_read();
}

static void landlock_alone_closes_every_file(void **state)
{
	(void)state;
	if (getuid() == 0)	/* outside, uid 0 is never kept */
		assert_int_equal(try_in_child(open_behind_landlock, false,
					      ISOLATE_DAEMON),
				 EACCES);
}

static int look_at_rights(void)
{
	static const struct isolate_ids ids = { 65000, 65001 };
	const char *what = "";
	struct rlimit core, files;

	if (getuid() != 0)
		return 77;
	if (isolate_drop(&ids, &what) < 0 || isolate_limits(&what) < 0)
		return 101;
	if (getuid() != 65000 || geteuid() != 65000 || getgid() != 65001)
		return 1;
	if (setresuid(0, 0, 0) == 0 || setgid(0) == 0)
		return 2;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 3;
	if (prctl(PR_CAPBSET_READ, 0, 0, 0, 0) != 0)
		return 4;
	if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max != 0)
		return 5;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 ||
	    files.rlim_cur != files.rlim_max)
		return 6;
	return 0;
}

static int stay_root(void)
{
	const char *what = "";

	if (getuid() != 0)
		return 77;
	return isolate_drop(NULL, &what) == -EPERM ? 0 : 1;
}

static int become_root(void)
{
	static const struct isolate_ids ids = { 0, 0 };
	const char *what = "";

	if (getuid() != 0 && isolate_drop(&ids, &what) == 0)
		return 1;
	return isolate_drop(&ids, &what) == -EPERM ? 0 : 2;
}

/* No namespace here: it is about the ids outside. */
static int run_plain(deed_fn *deed)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		isolate_exit(deed());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void root_keeps_one_right_for_the_marker(void **state)
{
	int r = run_plain(look_at_the_markers_rights);

	(void)state;
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

static void root_changes_its_ids_for_good(void **state)
{
	int r = run_plain(look_at_rights);

	(void)state;
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

static void the_daemon_never_stays_uid_0(void **state)
{
	int r = run_plain(stay_root);

	(void)state;
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
	assert_int_equal(run_plain(become_root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sealed_daemon_dies_of_what_it_never_does),
		cmocka_unit_test(reading_a_file_fails_without_harm),
		cmocka_unit_test(the_sealed_daemon_can_do_its_work),
		cmocka_unit_test(a_daemon_with_a_source_may_bind_and_no_other),
		cmocka_unit_test(the_sealed_marker_marks_and_does_nothing_else),
		cmocka_unit_test(root_keeps_one_right_for_the_marker),
		cmocka_unit_test(the_sealed_broker_has_no_network),
		cmocka_unit_test(a_sealed_process_can_still_abort),
		cmocka_unit_test(landlock_alone_closes_every_file),
		cmocka_unit_test(root_changes_its_ids_for_good),
		cmocka_unit_test(the_daemon_never_stays_uid_0),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
