/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash_test.c - SipHash by its published vectors, and the table
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"

struct thing {
	unsigned key;
	struct hash_node node;
};

/*
 * Appendix A of the SipHash paper and the first and last lines of the authors'
 * vectors_sip64: key 00..0f, input 00, 01, ... of the given length.
 */
static void siphash_gives_the_published_values(void **state)
{
	static const struct {
		size_t n;
		uint64_t value;
	} vectors[] = {
		{ 0, UINT64_C(0x726fdb47dd0e0e31) },
		{ 1, UINT64_C(0x74f839c593dc67fd) },
		{ 2, UINT64_C(0x0d6c8009d9a94f5a) },
		{ 3, UINT64_C(0x85676696d7fb7e2d) },
		{ 4, UINT64_C(0xcf2794e0277187b7) },
		{ 7, UINT64_C(0xab0200f58b01d137) },
		{ 8, UINT64_C(0x93f5f5799a932462) },
		{ 15, UINT64_C(0xa129ca6149be45e5) },
		{ 63, UINT64_C(0x958a324ceb064572) },
	};
	uint8_t key[16], in[64];

	(void)state;
	for (uint8_t i = 0; i < 64; i++)
		in[i] = i;
	memcpy(key, in, 16);
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
		assert_true(siphash24(in, vectors[i].n, key) ==
			    vectors[i].value);
}

/*
 * With one round a word and three at the end there are no vectors of the
 * authors'; the value of the empty input is the one other libraries test by.
 */
static void the_lighter_hash_is_told_by_its_words(void **state)
{
	struct hash_state s;
	uint8_t key[16], in[16];

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		key[i] = in[i] = i;
	assert_true(siphash13(in, 0, key) == UINT64_C(0xabac0158050fc4dc));
	hash_state_start(&s, key);
	hash_state_word(&s, UINT64_C(0x0706050403020100));
	hash_state_word(&s, UINT64_C(0x0900000000000008));
	(void)hash_state_value(&s);
	assert_true(hash_state_value(&s) == siphash13(in, 9, key));
}

static void hashes_of_a_process_are_stable_and_differ(void **state)
{
	(void)state;
	assert_true(hash_str(STR("a")) == hash_str(STR("a")));
	assert_true(hash_str(STR("a")) != hash_str(STR("b")));
	assert_true(hash_str(STR("")) != hash_str(STR_NONE) ||
		    hash_bytes(NULL, 0) == hash_str(STR("")));
}

static struct thing *find(const struct hash_table *t, unsigned key,
			  uint64_t hash)
{
	struct hash_node *n;

	for (n = hash_first(t, hash); n; n = hash_next(n)) {
		struct thing *thing = container_of(n, struct thing, node);

		if (thing->key == key)
			return thing;
	}
	return NULL;
}

static void things_are_found_while_the_table_grows(void **state)
{
	enum { N = 1000 };
	static struct thing things[N];
	struct hash_table t;

	(void)state;
	assert_int_equal(hash_init(&t, 4), 0);
	for (unsigned i = 0; i < N; i++) {
		things[i].key = i;
		hash_add(&t, &things[i].node, hash_bytes(&i, sizeof(i)));
		assert_int_equal(t.n, i + 1);
	}
	assert_true(t.mask + 1 >= N / 2);
	for (unsigned i = 0; i < N; i++)
		assert_ptr_equal(find(&t, i, hash_bytes(&i, sizeof(i))),
				 &things[i]);
	for (unsigned i = 0; i < N; i += 2)
		hash_remove(&t, &things[i].node);
	assert_int_equal(t.n, N / 2);
	for (unsigned i = 0; i < N; i++)
		assert_ptr_equal(find(&t, i, hash_bytes(&i, sizeof(i))),
				 i % 2 ? &things[i] : NULL);
	hash_done(&t);
}

static void equal_hashes_are_walked_one_by_one(void **state)
{
	struct thing a = { .key = 1 }, b = { .key = 2 }, c = { .key = 3 };
	struct hash_table t;

	(void)state;
	assert_int_equal(hash_init(&t, 0), 0);
	hash_add(&t, &a.node, 7);
	hash_add(&t, &b.node, 7);
	/* The same bucket, another hash: never shown for 7. */
	hash_add(&t, &c.node, 7 + ((uint64_t)1 << 40));
	assert_ptr_equal(find(&t, 1, 7), &a);
	assert_ptr_equal(find(&t, 2, 7), &b);
	assert_null(find(&t, 3, 7));
	hash_remove(&t, &b.node);
	assert_ptr_equal(find(&t, 1, 7), &a);
	assert_null(find(&t, 2, 7));
	hash_done(&t);
}

static void a_growth_that_fails_only_makes_chains_longer(void **state)
{
	struct thing things[64];
	struct hash_table t;

	(void)state;
	mem_test_fail_at(1);
	assert_int_not_equal(hash_init(&t, 8), 0);
	assert_int_equal(hash_init(&t, 8), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(things); i++) {
		things[i].key = i;
		mem_test_fail_at(1);
		hash_add(&t, &things[i].node, i);
	}
	mem_test_fail_at(0);
	assert_int_equal(t.mask, 7);
	for (unsigned i = 0; i < ARRAY_SIZE(things); i++)
		assert_ptr_equal(find(&t, i, i), &things[i]);
	hash_done(&t);
}

static void a_walk_sees_each_node_once_and_may_remove_it(void **state)
{
	struct thing things[50];
	unsigned seen[50] = { 0 };
	struct hash_node *it, *tmp;
	struct hash_table t;
	size_t at;

	(void)state;
	assert_int_equal(hash_init(&t, 8), 0);
	hash_each(&t, it, tmp, at)
		fail();
	for (unsigned i = 0; i < 50; i++) {
		things[i].key = i;
		hash_add(&t, &things[i].node, i * 3);
	}
	hash_each(&t, it, tmp, at) {
		seen[container_of(it, struct thing, node)->key]++;
		hash_remove(&t, it);
	}
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(t.n, 0);
	hash_done(&t);
	assert_null(hash_first(&t, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_gives_the_published_values),
		cmocka_unit_test(the_lighter_hash_is_told_by_its_words),
		cmocka_unit_test(hashes_of_a_process_are_stable_and_differ),
		cmocka_unit_test(things_are_found_while_the_table_grows),
		cmocka_unit_test(equal_hashes_are_walked_one_by_one),
		cmocka_unit_test(a_growth_that_fails_only_makes_chains_longer),
		cmocka_unit_test(a_walk_sees_each_node_once_and_may_remove_it),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
