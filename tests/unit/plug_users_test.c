/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_users_test.c - what one user of the machine may take of a service
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "proxy/config.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/plug_users.h"
#include "proxy/worker.h"

#define MIB	((size_t)1 << 20)

static struct config service;
static struct quota_whole whole;
static struct worker worker = { .whole = &whole };
static struct worker *const workers[] = { &worker };
static struct plug_config config = {
	.worker = workers, .nworkers = 1, .service = &service,
};
static struct list users;
static struct plug_why why;

static int setup(void **state)
{
	(void)state;
	service = (struct config){ .runs_per_uid = 2 };
	config.service = &service;
	list_init(&users);
	return 0;
}

static struct plug_user *enter(uid_t uid)
{
	struct plug_user *u;

	assert_int_equal(plug_user_enter(&users, &config, uid, &u, &why), 0);
	return u;
}

static void one_user_has_so_many_runs_and_others_have_theirs(void **state)
{
	struct plug_user *a = enter(1000), *b, *none;

	(void)state;
	assert_ptr_equal(enter(1000), a);
	assert_int_equal(plug_user_enter(&users, &config, 1000, &none, &why),
			 -EPROTO);
	assert_non_null(strstr(why.text, "uid 1000 has 2 runs here"));
	assert_non_null(strstr(why.text, "'runs_per_uid' in [plug]"));
	b = enter(1001);
	assert_ptr_not_equal(a, b);
	/* One that ends makes room for another. */
	plug_user_leave(a);
	assert_ptr_equal(enter(1000), a);
	plug_user_leave(a);
	plug_user_leave(a);
	plug_user_leave(b);
	assert_true(list_empty(&users));
}

static void root_and_a_private_plug_are_not_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 9; i++)
		assert_null(enter(0));
	config.service = NULL;
	for (unsigned i = 0; i < 9; i++)
		assert_null(enter(1000));
	plug_user_leave(NULL);
	assert_true(list_empty(&users));
}

static void a_share_is_what_is_said_or_half_of_what_there_is(void **state)
{
	struct plug_user *u;

	(void)state;
	service.connections = 9;
	service.memory = 8 * MIB;
	u = enter(1000);
	assert_int_equal(u->share.max, 5);
	assert_int_equal(u->share.memory.limit, 4 * MIB);
	assert_ptr_equal(u->share.whole, &whole);
	assert_ptr_equal(u->share.memory.whole, &whole.memory);
	plug_user_leave(u);
	service.connections_per_uid = 7;
	service.memory_per_uid = 6 * MIB;
	u = enter(1000);
	assert_int_equal(u->share.max, 7);
	assert_int_equal(u->share.memory.limit, 6 * MIB);
	plug_user_leave(u);
}

/* All runs of the user are one to the limit, with a reason that says so. */
static void what_a_users_runs_hold_counts_together(void **state)
{
	struct mem_pot run[2];
	struct mem_account held[2];
	struct plug_user *u;

	(void)state;
	service.memory_per_uid = MIB;
	u = enter(1000);
	for (unsigned i = 0; i < 2; i++) {
		run[i] = (struct mem_pot){ .whole = &u->share.memory };
		mem_account_init(&held[i], &run[i]);
		assert_int_equal(mem_account_take(&held[i], MIB / 2),
				 REASON_ALLOWED);
	}
	assert_int_equal(mem_account_take(&held[0], 1), REASON_USER_EXCEEDED);
	assert_int_equal(mem_account_why(&held[1]), REASON_USER_EXCEEDED);
	for (unsigned i = 0; i < 2; i++) {
		mem_account_give(&held[i], MIB / 2);
		mem_account_done(&held[i]);
	}
	assert_int_equal(whole.memory.used, 0);
	plug_user_leave(u);
}

#define USERS(f)	cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		USERS(one_user_has_so_many_runs_and_others_have_theirs),
		USERS(root_and_a_private_plug_are_not_bounded),
		USERS(a_share_is_what_is_said_or_half_of_what_there_is),
		USERS(what_a_users_runs_hold_counts_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
