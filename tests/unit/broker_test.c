/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_test.c - resolv.conf is followed whatever way it changes (DNS-29), the
 *                 log opens anew, and broker and daemon notice each other's end
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/fd.h"
#include "proxy/broker.h"

struct lab {
	char dir[64];
	struct event_base *base;
	struct broker *broker;
	char conf[BROKER_CONF_MAX + 1];	/* the last text heard */
	bool heard, gone;
	int log;			/* as answered; -1 before */
	const char *policies;		/* directory, or NULL */
	char read[256];			/* the last reading: "NAME=TEXT;..." */
	unsigned readings;
	uint32_t serial;
	bool asked;
	int err;
};

static const char *path_of(const struct lab *l, const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 4];
	int n = snprintf(p, PATH_MAX, "%s/%s", l->dir, name);

	assert_true(n > 0 && n < PATH_MAX);
	return p;
}

static void put(const struct lab *l, const char *name, const char *text)
{
	int fd = open(path_of(l, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void on_conf(void *arg, struct str text)
{
	struct lab *l = arg;

	assert_true(text.n < sizeof(l->conf));
	memcpy(l->conf, text.p, text.n);
	l->conf[text.n] = '\0';
	l->heard = true;
}

static void on_log(void *arg, int fd_or_err)
{
	struct lab *l = arg;

	l->log = fd_or_err;
	l->heard = true;
}

static void on_policies(void *arg, bool asked)
{
	struct lab *l = arg;

	l->asked = asked;
	l->read[0] = '\0';
}

static void on_policy(void *arg, struct str name, int err, int fd)
{
	struct buf text = BUF_INIT(100);
	struct lab *l = arg;
	size_t n = strlen(l->read);
	int len;

	if (err == 0)
		assert_int_equal(fd_read_all(fd, &text), 0);
	else
		assert_int_equal(fd, -1);
	len = snprintf(l->read + n, sizeof(l->read) - n, "%.*s=%.*s;",
		       STR_ARG(name), STR_ARG(err ? STR("!") :
					      buf_str(&text)));
	assert_true(len > 0 && (size_t)len < sizeof(l->read) - n);
	buf_done(&text);
}

static void on_policies_end(void *arg, uint32_t serial, int err)
{
	struct lab *l = arg;

	l->serial = serial;
	l->err = err;
	l->readings++;
}

static void on_gone(void *arg)
{
	struct lab *l = arg;

	l->gone = l->heard = true;
}

static int lab_open_lab(void **state)
{
	static struct lab lab;

	lab = (struct lab){ .dir = "/tmp/penstock-broker-XXXXXX", .log = -1 };
	assert_non_null(mkdtemp(lab.dir));
	lab.base = event_base_new();
	assert_non_null(lab.base);
	*state = &lab;
	return 0;
}

static void start(struct lab *l, const char *conf, const char *log,
		  const char *known)
{
	static const struct broker_events events = { on_conf, on_log,
		on_policies, on_policy, on_policies_end, on_gone };
	struct broker_config config = { .resolv_conf = conf,
					.log_path = log,
					.policies = l->policies };

	assert_int_equal(broker_fork(&config, str_from(known), &l->broker), 0);
	assert_int_equal(broker_start(l->broker, l->base, &events, l), 0);
}

static void wait_for_conf(struct lab *l, const char *want)
{
	do
		assert_int_equal(event_base_loop(l->base, EVLOOP_ONCE), 0);
	while (strcmp(l->conf, want) != 0);
}

static void wait_for_word(struct lab *l)
{
	l->heard = false;
	while (!l->heard)
		assert_int_equal(event_base_loop(l->base, EVLOOP_ONCE), 0);
}

static int lab_close_lab(void **state)
{
	struct lab *l = *state;
	static const char *const names[] = {
		"resolv.conf", "new", "one", "two", "sub/stub", "log",
		"log.1", "link", "p/a.ini", "p/b.ini", "p/.hidden.ini",
		"p/notes.txt", "p/..data", "p/..new", "v1/a.ini", "v2/a.ini",
		"p/..v1/a.ini", "p/..v2/a.ini", "p",
	};
	static const char *const dirs[] = {
		"sub", "p/..v1", "p/..v2", "v1", "v2", "p",
	};
	size_t i;

	/* The end of the connection is the end of the broker. */
	broker_free(l->broker);
	if (!l->gone)
		assert_true(wait(NULL) > 0);
	if (l->log >= 0)
		close(l->log);
	event_base_free(l->base);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		unlink(path_of(l, names[i]));
	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		rmdir(path_of(l, dirs[i]));
	assert_int_equal(rmdir(l->dir), 0);
	return 0;
}

static void a_text_that_changed_since_is_sent_at_the_start(void **state)
{
	struct lab *l = *state;

	put(l, "resolv.conf", "nameserver 192.0.2.53\n");
	start(l, path_of(l, "resolv.conf"), NULL, "nameserver 192.0.2.1\n");
	wait_for_conf(l, "nameserver 192.0.2.53\n");
}

static void writing_in_place_is_followed(void **state)
{
	struct lab *l = *state;

	put(l, "resolv.conf", "a\n");
	start(l, path_of(l, "resolv.conf"), NULL, "");
	wait_for_conf(l, "a\n");
	put(l, "resolv.conf", "b\n");
	wait_for_conf(l, "b\n");
}

static void renaming_over_it_is_followed(void **state)
{
	struct lab *l = *state;

	put(l, "resolv.conf", "a\n");
	start(l, path_of(l, "resolv.conf"), NULL, "");
	wait_for_conf(l, "a\n");
	put(l, "new", "b\n");
	assert_int_equal(rename(path_of(l, "new"), path_of(l, "resolv.conf")),
			 0);
	wait_for_conf(l, "b\n");
	/* And once more: the new file is watched like the old one. */
	put(l, "resolv.conf", "c\n");
	wait_for_conf(l, "c\n");
}

static void a_link_swapped_to_another_file_is_followed(void **state)
{
	struct lab *l = *state;

	put(l, "one", "1\n");
	put(l, "two", "2\n");
	assert_int_equal(symlink("one", path_of(l, "resolv.conf")), 0);
	start(l, path_of(l, "resolv.conf"), NULL, "");
	wait_for_conf(l, "1\n");
	assert_int_equal(symlink("two", path_of(l, "link")), 0);
	assert_int_equal(rename(path_of(l, "link"), path_of(l, "resolv.conf")),
			 0);
	wait_for_conf(l, "2\n");
	put(l, "two", "3\n");
	wait_for_conf(l, "3\n");
}

static void a_target_in_a_directory_that_appears_later_is_followed(void **state)
{
	struct lab *l = *state;

	assert_int_equal(symlink("sub/stub", path_of(l, "resolv.conf")), 0);
	start(l, path_of(l, "resolv.conf"), NULL, "known\n");
	/* Nothing there: no resolver, and never a public one (DNS-35). */
	wait_for_conf(l, "");
	assert_int_equal(mkdir(path_of(l, "sub"), 0755), 0);
	put(l, "sub/stub", "late\n");
	wait_for_conf(l, "late\n");
}

static void a_file_that_goes_away_leaves_no_resolver(void **state)
{
	struct lab *l = *state;

	put(l, "resolv.conf", "a\n");
	start(l, path_of(l, "resolv.conf"), NULL, "");
	wait_for_conf(l, "a\n");
	assert_int_equal(unlink(path_of(l, "resolv.conf")), 0);
	wait_for_conf(l, "");
}

static void a_text_that_is_too_long_changes_nothing(void **state)
{
	static char big[BROKER_CONF_MAX + 2];
	struct lab *l = *state;

	put(l, "resolv.conf", "a\n");
	start(l, path_of(l, "resolv.conf"), NULL, "");
	wait_for_conf(l, "a\n");
	memset(big, '#', sizeof(big) - 1);
	put(l, "resolv.conf", big);
	put(l, "resolv.conf", "b\n");
	wait_for_conf(l, "b\n");
}

static void the_log_opens_anew_after_a_rotation(void **state)
{
	struct lab *l = *state;
	struct stat moved, opened;

	put(l, "resolv.conf", "");
	put(l, "log", "old\n");
	start(l, path_of(l, "resolv.conf"), path_of(l, "log"), "");
	assert_int_equal(rename(path_of(l, "log"), path_of(l, "log.1")), 0);
	assert_int_equal(broker_reopen(l->broker), 0);
	wait_for_word(l);
	assert_true(l->log >= 0);
	assert_int_equal(fstat(l->log, &opened), 0);
	assert_int_equal(stat(path_of(l, "log.1"), &moved), 0);
	assert_int_not_equal(opened.st_ino, moved.st_ino);
	assert_int_equal(opened.st_size, 0);
	assert_true(fcntl(l->log, F_GETFL) & O_APPEND);
}

static void a_log_behind_a_link_is_not_opened(void **state)
{
	struct lab *l = *state;

	put(l, "resolv.conf", "");
	put(l, "one", "");
	assert_int_equal(symlink("one", path_of(l, "log")), 0);
	start(l, path_of(l, "resolv.conf"), path_of(l, "log"), "");
	assert_int_equal(broker_reopen(l->broker), 0);
	wait_for_word(l);
	assert_int_equal(l->log, -ELOOP);
}

static int refuse_child(void *arg)
{
	(void)arg;
	return -EPERM;
}

static void the_daemon_notices_that_the_broker_is_gone(void **state)
{
	static const struct broker_events events = { on_conf, on_log,
		on_policies, on_policy, on_policies_end, on_gone };
	struct lab *l = *state;
	struct broker_config config = {
		.resolv_conf = path_of(l, "resolv.conf"),
		.drop = refuse_child,
	};

	assert_int_equal(broker_fork(&config, STR_NONE, &l->broker), 0);
	assert_int_equal(broker_start(l->broker, l->base, &events, l), 0);
	wait_for_word(l);
	assert_true(l->gone);
	assert_int_equal(broker_reopen(l->broker), -EPIPE);
	assert_true(wait(NULL) > 0);
}

/* --- policies ------------------------------------------------------------ */

static void wait_for_policies(struct lab *l, const char *want)
{
	do {
		unsigned before = l->readings;

		while (l->readings == before)
			assert_int_equal(event_base_loop(l->base, EVLOOP_ONCE),
					 0);
	} while (strcmp(l->read, want) != 0);
}

static void start_policies(struct lab *l)
{
	l->policies = path_of(l, "p");
	put(l, "resolv.conf", "");
	start(l, path_of(l, "resolv.conf"), NULL, "");
	/* It has its watches when it has answered once. */
	assert_int_equal(broker_reload(l->broker, 1), 0);
}

static void policies_are_read_when_asked_for(void **state)
{
	struct lab *l = *state;

	assert_int_equal(mkdir(path_of(l, "p"), 0755), 0);
	put(l, "p/a.ini", "1");
	put(l, "p/.hidden.ini", "no");
	put(l, "p/notes.txt", "no");
	start_policies(l);
	wait_for_policies(l, "a=1;");
	assert_true(l->asked);
	assert_int_equal(l->serial, 1);
	assert_int_equal(l->err, 0);
	assert_int_equal(broker_reload(l->broker, 9), 0);
	wait_for_policies(l, "a=1;");
	assert_int_equal(l->serial, 9);
}

static void a_policy_that_is_written_or_renamed_is_read(void **state)
{
	struct lab *l = *state;

	assert_int_equal(mkdir(path_of(l, "p"), 0755), 0);
	put(l, "p/a.ini", "1");
	start_policies(l);
	wait_for_policies(l, "a=1;");
	put(l, "p/a.ini", "2");
	wait_for_policies(l, "a=2;");
	assert_false(l->asked);
	put(l, "p/notes.txt", "3");
	assert_int_equal(rename(path_of(l, "p/notes.txt"),
				path_of(l, "p/a.ini")), 0);
	wait_for_policies(l, "a=3;");
	assert_int_equal(unlink(path_of(l, "p/a.ini")), 0);
	wait_for_policies(l, "");
	assert_int_equal(symlink("nowhere", path_of(l, "p/b.ini")), 0);
	wait_for_policies(l, "b=!;");
}

/* As Kubernetes does: the files are links through one link that is swapped. */
static void a_directory_whose_data_link_is_swapped_is_read(void **state)
{
	struct lab *l = *state;

	assert_int_equal(mkdir(path_of(l, "p"), 0755), 0);
	assert_int_equal(mkdir(path_of(l, "p/..v1"), 0755), 0);
	assert_int_equal(mkdir(path_of(l, "p/..v2"), 0755), 0);
	put(l, "p/..v1/a.ini", "1");
	put(l, "p/..v2/a.ini", "2");
	assert_int_equal(symlink("..v1", path_of(l, "p/..data")), 0);
	assert_int_equal(symlink("..data/a.ini", path_of(l, "p/a.ini")), 0);
	start_policies(l);
	wait_for_policies(l, "a=1;");
	assert_int_equal(symlink("..v2", path_of(l, "p/..new")), 0);
	assert_int_equal(rename(path_of(l, "p/..new"), path_of(l, "p/..data")),
			 0);
	wait_for_policies(l, "a=2;");
	/* Written where the link leads: seen too. */
	put(l, "p/..v2/a.ini", "3");
	wait_for_policies(l, "a=3;");
}

/* As releases do: the directory itself is a link. */
static void a_directory_that_is_swapped_as_a_whole_is_read(void **state)
{
	struct lab *l = *state;

	assert_int_equal(mkdir(path_of(l, "v1"), 0755), 0);
	assert_int_equal(mkdir(path_of(l, "v2"), 0755), 0);
	put(l, "v1/a.ini", "1");
	put(l, "v2/a.ini", "2");
	assert_int_equal(symlink("v1", path_of(l, "p")), 0);
	start_policies(l);
	wait_for_policies(l, "a=1;");
	assert_int_equal(symlink("v2", path_of(l, "link")), 0);
	assert_int_equal(rename(path_of(l, "link"), path_of(l, "p")), 0);
	wait_for_policies(l, "a=2;");
	put(l, "v2/a.ini", "3");
	wait_for_policies(l, "a=3;");
}

static void a_directory_that_is_not_there_is_said(void **state)
{
	struct lab *l = *state;

	start_policies(l);
	wait_for_policies(l, "");
	assert_int_equal(l->err, -ENOENT);
	assert_int_equal(mkdir(path_of(l, "p"), 0755), 0);
	put(l, "p/a.ini", "1");
	wait_for_policies(l, "a=1;");
}

static void without_a_directory_there_is_nothing_to_reload(void **state)
{
	struct lab *l = *state;

	put(l, "resolv.conf", "");
	start(l, path_of(l, "resolv.conf"), NULL, "");
	assert_int_equal(broker_reload(l->broker, 1), -ENOENT);
}

#define IN_LAB(f)	cmocka_unit_test_setup_teardown(f, lab_open_lab, \
							lab_close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(a_text_that_changed_since_is_sent_at_the_start),
		IN_LAB(writing_in_place_is_followed),
		IN_LAB(renaming_over_it_is_followed),
		IN_LAB(a_link_swapped_to_another_file_is_followed),
		IN_LAB(a_target_in_a_directory_that_appears_later_is_followed),
		IN_LAB(a_file_that_goes_away_leaves_no_resolver),
		IN_LAB(a_text_that_is_too_long_changes_nothing),
		IN_LAB(the_log_opens_anew_after_a_rotation),
		IN_LAB(a_log_behind_a_link_is_not_opened),
		IN_LAB(the_daemon_notices_that_the_broker_is_gone),
		IN_LAB(policies_are_read_when_asked_for),
		IN_LAB(a_policy_that_is_written_or_renamed_is_read),
		IN_LAB(a_directory_whose_data_link_is_swapped_is_read),
		IN_LAB(a_directory_that_is_swapped_as_a_whole_is_read),
		IN_LAB(a_directory_that_is_not_there_is_said),
		IN_LAB(without_a_directory_there_is_nothing_to_reload),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
