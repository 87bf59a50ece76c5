/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies_test.c - the policies of a service, with what they include
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "proxy/plug_check.h"
#include "proxy/policies.h"
#include "rules/rules.h"

static char dir[] = "/tmp/policies-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name), fd;

	assert_true(n > 0 && n < (int)sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void drop(const char *name)
{
	char path[128];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	assert_true(n > 0 && n < (int)sizeof(path));
	assert_int_equal(unlink(path), 0);
}

struct taken {
	struct policies ps;
	struct plug_why why;
	int err, read_err;
};

static int take(void *arg, const struct policy_file *file)
{
	struct taken *t = arg;
	struct policy *p;

	t->read_err = file->err;
	if (file->err == 0)
		t->err = policies_take(&t->ps, file, false, &p, &t->why);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void a_policy_is_read_with_what_it_includes(void **state)
{
	struct taken t = { .err = 0 };
	struct rules_question q = { .host = STR("b.example"), .port = 443 };
	struct rules_answer a;
	struct policy *p;

	(void)state;
	put("house.ini", "[policy]\ninclude = common.conf\n[allow a]\n"
	    "hosts = a.example @list.txt\n");
	put("common.conf", "[allow b]\nhosts = b.example\n");
	put("list.txt", "c.example\n");
	assert_int_equal(policies_read(dir, take, &t), 0);
	assert_int_equal(t.err, 1);
	p = policies_find(&t.ps, STR("house"));
	assert_non_null(p);
	assert_int_equal(rules_count(p->rules), 2);
	rules_judge(p->rules, &q, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	q.host = STR("c.example");
	rules_judge(p->rules, &q, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	/* A change of what is included is a change of the policy. */
	assert_int_equal(policies_read(dir, take, &t), 0);
	assert_int_equal(t.err, 0);
	put("common.conf", "[deny b]\nhosts = a.example\n");
	assert_int_equal(policies_read(dir, take, &t), 0);
	assert_int_equal(t.err, 1);
	q.host = STR("a.example");
	rules_judge(policies_find(&t.ps, STR("house"))->rules, &q, &a);
	assert_int_equal(a.reason, REASON_HOST_DENIED);
	/* Without it the policy stays as it was, and the place is told. */
	drop("common.conf");
	assert_int_equal(policies_read(dir, take, &t), 0);
	assert_int_equal(t.err, -EPROTO);
	assert_non_null(strstr(t.why.text, "house.ini:2:11: 'common.conf' (an "
			       "included file) did not come along"));
	rules_judge(policies_find(&t.ps, STR("house"))->rules, &q, &a);
	assert_int_equal(a.reason, REASON_HOST_DENIED);
	policies_done(&t.ps);
	drop("list.txt");
	drop("house.ini");
}

static void a_file_that_cannot_be_read_keeps_its_error(void **state)
{
	struct taken t = { .err = 0 };
	char path[128];
	int n = snprintf(path, sizeof(path), "%s/x.ini", dir);

	(void)state;
	assert_true(n > 0 && n < (int)sizeof(path));
	assert_int_equal(symlink("/nowhere/at/all", path), 0);
	assert_int_equal(policies_read(dir, take, &t), 0);
	assert_int_equal(t.read_err, -ENOENT);
	drop("x.ini");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_is_read_with_what_it_includes),
		cmocka_unit_test(a_file_that_cannot_be_read_keeps_its_error),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
