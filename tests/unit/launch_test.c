/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_test.c - whole sandboxes with a daemon made for the test
 *
 * Runs in a network namespace of its own, so that even a sandbox that was not
 * one could reach nothing.  As root and as any user.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "netns-setup/host_sockets.h"
#include "netns-setup/launch.h"
#include "tests/unit/netns_lab.h"

#define MARK	"started"	/* a file that a started command makes */

static char workdir[] = "/var/tmp/penstock-launch-XXXXXX";
static char srvdir[4096];	/* where nothing is covered */
static char daemon_path[4096];

static char *const env[] = {
	(char *)(uintptr_t)"PATH=/usr/bin:/bin",
	NULL
};

static struct launch_spec spec_of(const char *behaviour, char *const *argv)
{
	return (struct launch_spec){
		.argv = argv,
		.env = env,
		.policy_text = STR(""),
		.run_id = "test",
		.hostname = behaviour,
		.user = "sandbox",
		.home = "/tmp/home",
		.cwd = workdir,
		.daemon_path = daemon_path,
		.records_fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
	};
}

struct outcome {
	int ret;
	struct launch_result result;
	struct launch_error err;
};

static struct outcome run(struct launch_spec spec)
{
	struct outcome o = { 0 };

	o.ret = launch_run(&spec, &o.result, &o.err);
	close(spec.records_fd);
	if (o.ret)
		print_message("# %s\n", o.err.text);
	return o;
}

static struct outcome run_sh(const char *behaviour, const char *script)
{
	char *argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c",
			 (char *)(uintptr_t)script, NULL };

	return run(spec_of(behaviour, argv));
}

static bool was_started(void)
{
	bool there = access(MARK, F_OK) == 0;

	if (there)
		unlink(MARK);
	return there;
}

/* --- the run itself ------------------------------------------------------- */

static void the_commands_exit_status_comes_back(void **state)
{
	struct outcome o = run_sh("ok", "touch " MARK "; exit 42");

	(void)state;
	assert_int_equal(o.ret, 0);
	assert_int_equal(o.result.exit_code, 42);
	assert_int_equal(o.result.signal, 0);
	assert_true(o.result.audit_ok);
	assert_false(o.result.daemon_lost);
	assert_true(o.result.tproxy);
	assert_int_equal(o.result.records, 7);
	assert_string_equal(o.result.policy, "fake@sha256:0123456789abcdef");
	assert_true(was_started());
}

static void a_deadly_signal_comes_back_as_one(void **state)
{
	struct outcome o = run_sh("ok", "kill -SEGV $$");

	(void)state;
	assert_int_equal(o.ret, 0);
	assert_int_equal(o.result.signal, SIGSEGV);
}

static void not_found_is_127_and_not_executable_126(void **state)
{
	char *none[] = { (char *)(uintptr_t)"penstock-no-such", NULL };
	char *path[] = { (char *)(uintptr_t)"/nowhere/at/all", NULL };
	char *data[] = { (char *)(uintptr_t)"/etc/passwd", NULL };
	struct outcome o = run(spec_of("ok", none));

	(void)state;
	assert_int_equal(o.err.exit_code, 127);
	assert_non_null(strstr(o.err.text, "penstock-no-such"));
	o = run(spec_of("ok", path));
	assert_int_equal(o.err.exit_code, 127);
	o = run(spec_of("ok", data));
	assert_int_equal(o.err.exit_code, 126);
	assert_non_null(strstr(o.err.text, "Permission denied"));
}

/* SBX-27 */
static void a_variable_that_is_too_big_is_named(void **state)
{
	size_t n = 200 * 1024;
	char *big = test_malloc(n + 1);
	char *too_big[] = { big, NULL };
	char *argv[] = { (char *)(uintptr_t)"/bin/true", NULL };
	struct launch_spec spec = spec_of("ok", argv);
	struct outcome o;

	(void)state;
	memset(big, 'x', n);
	memcpy(big, "HUGE=", 5);
	big[n] = '\0';
	spec.env = too_big;
	o = run(spec);
	assert_int_equal(o.err.exit_code, 125);
	assert_non_null(strstr(o.err.text, "HUGE"));
	test_free(big);
}

/* --- failing closed: SBX-02 ------------------------------------------------- */

static void fails(const char *behaviour, const char *words)
{
	struct outcome o = run_sh(behaviour, "touch " MARK);

	assert_int_not_equal(o.ret, 0);
	assert_int_equal(o.err.exit_code, 125);
	assert_non_null(strstr(o.err.text, words));
	assert_false(was_started());
}

static void no_command_starts_without_a_daemon_that_took_it(void **state)
{
	(void)state;
	fails("refuse", "this sandbox is not wanted");
	fails("die", "penstockd ended before");
}

static void no_command_starts_when_the_self_test_fails(void **state)
{
	(void)state;
	fails("lie", "not penstockd's");
	fails("greet", "somebody answers");
}

static void a_daemon_that_is_not_there_is_125_with_the_mend(void **state)
{
	char *argv[] = { (char *)(uintptr_t)"/bin/true", NULL };
	struct launch_spec spec = spec_of("ok", argv);
	struct outcome o;

	(void)state;
	spec.daemon_path = "/nowhere/penstockd";
	o = run(spec);
	assert_int_equal(o.err.exit_code, 125);
	assert_non_null(strstr(o.err.text, "/nowhere/penstockd"));
	/* A service that cannot be reached is never replaced in silence. */
	spec = spec_of("ok", argv);
	spec.plug_path = "/nowhere/plug.sock";
	o = run(spec);
	assert_int_equal(o.err.exit_code, 125);
	assert_non_null(strstr(o.err.text, "--private"));
}

static void a_daemon_that_leaves_takes_the_network_not_the_command(void **state)
{
	/* A connection of the command's own is what makes it leave. */
	struct outcome o = run_sh("leave", "bash -c ': >/dev/tcp/192.0.2.2/9' "
				  "2>/dev/null; exit 3");

	(void)state;
	assert_int_equal(o.ret, 0);
	assert_int_equal(o.result.exit_code, 3);
	assert_true(o.result.daemon_lost);
	assert_false(o.result.audit_ok);
}

/* --- what is seen inside ------------------------------------------------------ */

static void inside(const char *script)
{
	struct outcome o = run_sh("ok", script);

	assert_int_equal(o.ret, 0);
	assert_int_equal(o.result.signal, 0);
	assert_int_equal(o.result.exit_code, 0);
}

static void the_working_directory_is_writable_and_little_else(void **state)
{
	(void)state;
	inside("echo x > in-workdir && rm in-workdir");
	inside("cd /tmp/home && echo x > f && echo x > /tmp/f");
	inside("! (echo x > /etc/x) 2>/dev/null");
	inside("! (echo x > /usr/x) 2>/dev/null");
	inside("! (echo x > /proc/sys/kernel/core_pattern) 2>/dev/null");
}

static void set_id_files_cannot_be_made_in_it(void **state)
{
	struct stat st;

	(void)state;
	inside("touch f; chmod 755 f; ! chmod 4755 f 2>/dev/null");
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07000, 0);
	unlink("f");
}

/* SBX-25 */
static void names_are_looked_up_by_files_and_dns_alone(void **state)
{
	(void)state;
	inside("grep -qx 'hosts: files dns' /etc/nsswitch.conf");
	inside("! grep -q search /etc/resolv.conf");
	inside("grep -q 'nameserver 127.0.0.1' /etc/resolv.conf");
	inside("test \"$(hostname)\" = ok && grep -q ok /etc/hosts");
}

/* SBX-11 */
static void the_hosts_sockets_directories_are_empty(void **state)
{
	(void)state;
	inside("test -z \"$(find /run /tmp /var/tmp /dev/shm -type s)\"");
	inside("test -z \"$(ls /var/tmp | grep -v penstock-launch)\"");
}

/* SBX-11: and one that is bound in the working directory itself. */
static void a_socket_of_the_host_is_hidden_where_ever_it_is(void **state)
{
	static const char probe[] =
		"import socket; socket.socket(socket.AF_UNIX).connect('sock')";
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *argv[] = { (char *)(uintptr_t)"/usr/bin/python3",
			 (char *)(uintptr_t)"-c", (char *)(uintptr_t)probe,
			 NULL };
	struct outcome o;

	(void)state;
	assert_true(snprintf(a.sun_path, sizeof(a.sun_path), "%s/sock",
			     srvdir) > 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(chmod(a.sun_path, 0777), 0);
	assert_int_equal(listen(fd, 1), 0);
	/* The control: from outside it answers. */
	assert_int_equal(connect(other, (struct sockaddr *)&a, sizeof(a)), 0);
	close(other);
	{
		struct launch_spec spec = spec_of("ok", argv);

		spec.cwd = srvdir;
		o = run(spec);
	}
	unlink(a.sun_path);
	close(fd);
	assert_int_equal(o.ret, 0);
	assert_int_equal(o.result.exit_code, 1);
}

static void the_list_of_sockets_is_read_as_the_kernel_writes_it(void **state)
{
	static const char text[] =
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0: 00000002 00000000 00010000 0001 01 101 /var/lib/a b/s\n"
		"0: 00000003 00000000 00000000 0001 03 102 /var/lib/a b/s\n"
		"0: 00000002 00000000 00010000 0001 01 103 @/abstract\n"
		"0: 00000002 00000000 00010000 0001 01 104 relative\n"
		"0: 00000002 00000000 00010000 0001 01 105 /run/x/s\n"
		"0: 00000002 00000000 00010000 0001 01 105 /run/y/s\n"
		"0: 00000003 00000000 00000000 0002 01 106\n"
		"0: 00000002 00000000 00010000 0001 01 107 /srv/s\n";
	struct host_sockets s = HOST_SOCKETS_INIT;

	(void)state;
	assert_int_equal(buf_add(&s.text, text, sizeof(text) - 1), 0);
	assert_int_equal(host_sockets_parse(&s, "/run/x"), 0);
	assert_int_equal(s.n, 3);
	assert_string_equal(s.path[0], "/var/lib/a b/s");
	assert_string_equal(s.path[1], "/run/x/s");	/* the workdir */
	assert_string_equal(s.path[2], "/srv/s");
	host_sockets_done(&s);
}

/* SBX-19 */
static void init_can_be_neither_traced_nor_looked_at(void **state)
{
	(void)state;
	inside("! ls /proc/1/fd >/dev/null 2>&1");
	inside("! cat /proc/1/environ >/dev/null 2>&1");
	inside("ls /proc/self/fd >/dev/null && ls /proc/$$/fd >/dev/null");
	inside("! kill -9 1 2>/dev/null; kill -0 $$");
}

static void hidden_files_are_blank_and_locked_ones_read_only(void **state)
{
	char hidden[4200], locked[4200];
	const char *hide[] = { hidden, NULL }, *lock[] = { locked, NULL };
	char *argv[] = { (char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c",
			 (char *)(uintptr_t)
			 "! grep -q secret hidden; cat hidden && grep -q policy "
			 "locked && ! (echo x >> locked) 2>/dev/null && "
			 "! rm -f hidden 2>/dev/null && ! mv locked l "
			 "2>/dev/null", NULL };
	struct launch_spec spec = spec_of("ok", argv);
	struct outcome o;
	int fd;

	(void)state;
	assert_true(snprintf(hidden, sizeof(hidden), "%s/hidden", workdir) > 0);
	assert_true(snprintf(locked, sizeof(locked), "%s/locked", workdir) > 0);
	fd = open(hidden, O_WRONLY | O_CREAT, 0666);
	assert_int_equal(write(fd, "secret", 6), 6);
	close(fd);
	fd = open(locked, O_WRONLY | O_CREAT, 0666);
	assert_int_equal(write(fd, "policy\n", 7), 7);
	close(fd);
	spec.hide = hide;
	spec.lock = lock;
	o = run(spec);
	assert_int_equal(o.ret, 0);
	assert_int_equal(o.result.exit_code, 0);
	unlink(hidden);
	unlink(locked);
}

/* --- streams and ends ------------------------------------------------------- */

/* A socket as stdin and stdout reaches the command as pipes. */
static void a_socket_is_relayed_and_never_inherited(void **state)
{
	char got[64] = "";
	int pair[2], save_in = dup(0), save_out = dup(1);
	struct outcome o;
	ssize_t n;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(write(pair[0], "in\n", 3), 3);
	shutdown(pair[0], SHUT_WR);
	fflush(stdout);
	dup2(pair[1], 0);
	dup2(pair[1], 1);
	close(pair[1]);
	o = run_sh("ok", "cat; test -p /dev/stdin && test -p /dev/stdout && "
			 "echo pipes");
	dup2(save_in, 0);
	dup2(save_out, 1);
	close(save_in);
	close(save_out);
	n = read(pair[0], got, sizeof(got) - 1);
	close(pair[0]);
	assert_int_equal(o.ret, 0);
	assert_true(n > 0);
	assert_string_equal(got, "in\npipes\n");
}

static void an_inherited_descriptor_is_closed(void **state)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_int_equal(dup2(fd, 77), 77);
	inside("! test -e /proc/self/fd/77");
	close(77);
	close(fd);
}

/* SBX-21: what ignores signals and left the session ends with the run. */
static void the_whole_tree_ends_with_the_command(void **state)
{
	int p[2];
	char byte;
	struct outcome o;
	char script[256];

	(void)state;
	assert_int_equal(pipe(p), 0);
	/* The pipe is stdout: it ends when the last holder has ended. */
	fflush(stdout);
	{
		int save = dup(1);

		dup2(p[1], 1);
		close(p[1]);
		assert_true(snprintf(script, sizeof(script),
			"setsid sh -c 'trap \"\" TERM HUP INT; exec sleep 600' "
			"& (sleep 600 &) ; exit 5") > 0);
		o = run_sh("ok", script);
		dup2(save, 1);
		close(save);
	}
	assert_int_equal(o.result.exit_code, 5);
	assert_int_equal(read(p[0], &byte, 1), 0);
	close(p[0]);
}

static void the_launchers_death_is_the_sandboxs(void **state)
{
	int p[2], status;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		dup2(p[1], 1);
		close(p[0]);
		close(p[1]);
		(void)run_sh("ok", "echo; exec sleep 600");
		_exit(0);
	}
	close(p[1]);
	assert_int_equal(read(p[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(read(p[0], &byte, 1), 0);
	close(p[0]);
}

static void signals_reach_the_command(void **state)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT,
				       SIGUSR1, SIGUSR2 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int p[2], status;
		char byte, script[128];
		pid_t pid;

		assert_int_equal(pipe(p), 0);
		assert_true(snprintf(script, sizeof(script),
			"trap 'exit 9' %d; echo; while :; do :; done",
			numbers[i]) > 0);
		pid = fork();
		if (pid == 0) {
			dup2(p[1], 1);
			_exit(run_sh("ok", script).result.exit_code);
		}
		close(p[1]);
		assert_int_equal(read(p[0], &byte, 1), 1);
		kill(pid, numbers[i]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 9);
		close(p[0]);
	}
}

static int set_up(void **state)
{
	const char *build = getenv("top_builddir");
	int n = snprintf(daemon_path, sizeof(daemon_path),
			 "%s/tests/unit/fake_daemon", build ? build : ".");

	(void)state;
	/* Not below /tmp or /var/tmp: those are fresh inside anyway. */
	if (!getcwd(srvdir, sizeof(srvdir)))
		return -1;
	if (n < 0 || (size_t)n >= sizeof(daemon_path) || !mkdtemp(workdir) ||
	    chdir(workdir))
		return -1;
	/* Root's own: nothing of the machine's network is in reach. */
	if (geteuid() == 0 && unshare(CLONE_NEWNET))
		return -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return chdir("/") || rmdir(workdir);
}

/*
 * A background job of a shell is started with INT and QUIT ignored, and one of
 * nohup(1) with HUP, which nobody below it could trap; and no test here may
 * wait for ever.
 */
static void be_a_foreground_job(void)
{
	assert_true(signal(SIGINT, SIG_DFL) != SIG_ERR);
	assert_true(signal(SIGQUIT, SIG_DFL) != SIG_ERR);
	assert_true(signal(SIGHUP, SIG_DFL) != SIG_ERR);
	alarm(300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_commands_exit_status_comes_back),
		cmocka_unit_test(a_deadly_signal_comes_back_as_one),
		cmocka_unit_test(not_found_is_127_and_not_executable_126),
		cmocka_unit_test(a_variable_that_is_too_big_is_named),
		cmocka_unit_test(no_command_starts_without_a_daemon_that_took_it),
		cmocka_unit_test(no_command_starts_when_the_self_test_fails),
		cmocka_unit_test(a_daemon_that_is_not_there_is_125_with_the_mend),
		cmocka_unit_test(
			a_daemon_that_leaves_takes_the_network_not_the_command),
		cmocka_unit_test(
			the_working_directory_is_writable_and_little_else),
		cmocka_unit_test(set_id_files_cannot_be_made_in_it),
		cmocka_unit_test(names_are_looked_up_by_files_and_dns_alone),
		cmocka_unit_test(the_hosts_sockets_directories_are_empty),
		cmocka_unit_test(
			a_socket_of_the_host_is_hidden_where_ever_it_is),
		cmocka_unit_test(
			the_list_of_sockets_is_read_as_the_kernel_writes_it),
		cmocka_unit_test(init_can_be_neither_traced_nor_looked_at),
		cmocka_unit_test(hidden_files_are_blank_and_locked_ones_read_only),
		cmocka_unit_test(a_socket_is_relayed_and_never_inherited),
		cmocka_unit_test(an_inherited_descriptor_is_closed),
		cmocka_unit_test(the_whole_tree_ends_with_the_command),
		cmocka_unit_test(the_launchers_death_is_the_sandboxs),
		cmocka_unit_test(signals_reach_the_command),
	};

	if (!lab_works()) {
		puts("1..0 # SKIP no user namespaces here");
		return 0;
	}
	be_a_foreground_job();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
