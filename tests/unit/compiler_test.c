/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiler_test.c - each policy is told of once, in order, wherever it ends
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/fd.h"
#include "proxy/compiler.h"
#include "rules/rules.h"

#define JOBS	3
#define GOOD	"[allow a]\nhosts = example.org\n"
#define BROKEN	"[allow a]\nfoo = 1\n"

static struct lab {
	struct event_base *base;
	struct compiler *compiler;
	struct compile job[JOBS];
	size_t told[JOBS], n;		/* in the order of telling */
} lab;

static void done(struct compile *c)
{
	lab.told[lab.n++] = (size_t)(c - lab.job);
}

static int open_lab(void **state)
{
	(void)state;
	lab = (struct lab){ .base = event_base_new() };
	for (size_t i = 0; i < JOBS; i++) {
		lab.job[i].done = done;
		lab.job[i].name = "p.ini";
		lab.job[i].fd = -1;
		lab.job[i].text = STR(GOOD);
	}
	return compiler_new(lab.base, 10, &lab.compiler);
}

static int close_lab(void **state)
{
	(void)state;
	compiler_free(lab.compiler);
	for (size_t i = 0; i < JOBS; i++) {
		rules_unref(lab.job[i].rules);
		fd_closep(&lab.job[i].fd);
	}
	event_base_free(lab.base);
	return 0;
}

static void post_all(void)
{
	for (size_t i = 0; i < JOBS; i++)
		compiler_post(lab.compiler, &lab.job[i]);
	while (lab.n < JOBS)
		assert_true(event_base_loop(lab.base, EVLOOP_ONCE) >= 0);
}

static void each_is_told_once_and_in_the_order_of_asking(void **state)
{
	(void)state;
	lab.job[1].text = STR(BROKEN);
	lab.job[2].observe = true;
	post_all();
	for (size_t i = 0; i < JOBS; i++)
		assert_int_equal(lab.told[i], i);
	assert_int_equal(lab.job[0].err, 0);
	assert_false(rules_observe(lab.job[0].rules));
	assert_int_equal(lab.job[1].err, -EPROTO);
	assert_null(lab.job[1].rules);
	assert_non_null(strstr(lab.job[1].why.text, "p.ini:2: unknown key"));
	assert_int_equal(lab.job[2].err, 0);
	assert_true(rules_observe(lab.job[2].rules));
}

static void a_text_may_come_in_a_sealed_memfd_and_in_no_other(void **state)
{
	int pipe[2];

	(void)state;
	assert_int_equal(fd_memfd("policy", STR(GOOD), &lab.job[0].fd), 0);
	lab.job[0].text = STR_NONE;
	assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
	lab.job[1].fd = pipe[0];
	post_all();
	close(pipe[1]);
	assert_int_equal(lab.job[0].err, 0);
	assert_int_equal(rules_count(lab.job[0].rules), 1);
	assert_int_equal(lab.job[1].err, -EPROTO);
	assert_non_null(strstr(lab.job[1].why.text, "sealed memfd"));
}

static void what_is_small_or_no_text_is_not_for_it(void **state)
{
	int pipe[2];

	(void)state;
	assert_false(compiler_wants(NULL, 1u << 20));
	assert_false(compiler_wants(lab.compiler, 10));
	assert_true(compiler_wants(lab.compiler, 11));
	assert_int_equal(fd_memfd("policy", STR(GOOD), &lab.job[0].fd), 0);
	assert_true(compiler_wants_fd(lab.compiler, lab.job[0].fd));
	assert_false(compiler_wants_fd(NULL, lab.job[0].fd));
	assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
	assert_false(compiler_wants_fd(lab.compiler, pipe[0]));
	close(pipe[0]);
	close(pipe[1]);
	assert_false(compiler_wants_fd(lab.compiler, -1));
}

/* One is being compiled perhaps, the others wait: none is told of. */
static void its_end_waits_for_one_policy_and_tells_of_none(void **state)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);

	(void)state;
	assert_int_equal(buf_add_str(&text, STR("[allow a]\n")), 0);
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(buf_printf(&text, "hosts = h%u.example.com\n",
					    i), 0);
	for (size_t i = 0; i < JOBS; i++) {
		lab.job[i].text = buf_str(&text);
		compiler_post(lab.compiler, &lab.job[i]);
	}
	compiler_free(lab.compiler);
	lab.compiler = NULL;
	assert_true(event_base_loop(lab.base, EVLOOP_NONBLOCK) >= 0);
	assert_int_equal(lab.n, 0);
}

#define IN_LAB(f)	cmocka_unit_test_setup_teardown(f, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(each_is_told_once_and_in_the_order_of_asking),
		IN_LAB(a_text_may_come_in_a_sealed_memfd_and_in_no_other),
		IN_LAB(what_is_small_or_no_text_is_not_for_it),
		IN_LAB(its_end_waits_for_one_policy_and_tells_of_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
