/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_build.c - a host table in the making
 *
 * Names are nodes in the order in which they came, and an open-addressed table
 * leads to them.  A collision goes on to the next slot.  The place of a name is
 * its tag scaled to the table's size, so that places are in the order of tags,
 * and the table grows by one pass in memory order.
 *
 * At the end the bytes of each bucket are counted, the directory is made of the
 * sums, and the nodes are written into their buckets, those above first.
 */
#include <errno.h>

#include "base/id.h"
#include "base/mem.h"
#include "rules/host_name.h"
#include "rules/host_record.h"
#include "rules/host_table.h"

#define SLOTS_MIN	256
#define SLOTS_MAX	(1u << 29)
#define TAIL_MAX	512
#define NODES_MIN	64
#define BLOB_MIN	4096
#define BLOB_MAX	UINT32_MAX
#define NO_SLOT		UINT32_MAX

/*
 * Records of a bucket, on average.  More make the directory smaller, which is
 * what stays in the cache, and a bucket longer, which is fetched from memory.
 */
#define BUCKET_MEAN	4
#define BUCKET_MAX	255
/* Nodes whose buckets are fetched ahead. */
#define AHEAD		16

/*
 * Behind the places there is room for the last chain to go on, so that none
 * turns around at the end and all stay in order.  With a keyed hash no chain
 * comes near TAIL_MAX; one that does makes the table larger.
 */
static size_t with_tail(uint32_t n_slots)
{
	return (size_t)n_slots + MIN(n_slots, TAIL_MAX) + 1;
}

/* A larger table of the same nodes; the last slot of all stays empty. */
static int resize(struct host_build *b, uint32_t n_slots)
{
	const size_t old = b->slot ? with_tail(b->n_slots) : 0;
	CLEANUP(mem_freep) struct host_slot *slot = NULL;
	const size_t last = with_tail(n_slots) - 1;

	slot = mem_new_array(with_tail(n_slots), sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	mem_prefer_large_pages(slot, with_tail(n_slots) * sizeof(*slot));
	for (size_t i = 0; i < old; i++) {
		size_t at = place_of(b->slot[i].tag, n_slots);

		if (b->slot[i].node == 0)
			continue;
		while (at < last && slot[at].node != 0)
			at++;
		if (at == last)
			return -ENOMEM;
		slot[at] = b->slot[i];
	}
	mem_free(b->slot);
	b->slot = slot;
	b->n_slots = n_slots;
	slot = NULL;
	return 0;
}

static int grow(struct host_build *b)
{
	if (b->n_slots > SLOTS_MAX)
		return -ENOMEM;
	return resize(b, b->n_slots + b->n_slots / 2);
}

int host_build_init(struct host_build *b, size_t names, size_t bytes)
{
	uint8_t key[16];
	int err;

	*b = (struct host_build){ 0 };
	if (names > SLOTS_MAX || bytes + names > BLOB_MAX)
		return -ENOMEM;
	random_bytes(key, sizeof(key));
	hash_state_start(&b->start, key);
	b->n = 1;
	b->max = MAX((uint32_t)names, NODES_MIN);
	b->node = mem_new_array(b->max, sizeof(*b->node));
	b->blob_max = MAX(bytes + names, BLOB_MIN);
	b->blob = mem_new(b->blob_max);
	mem_prefer_large_pages(b->node, b->max * sizeof(*b->node));
	mem_prefer_large_pages(b->blob, b->blob_max);
	err = b->node && b->blob ? 0 : -ENOMEM;
	if (!err)
		err = resize(b, MAX((uint32_t)(names + names / 2), SLOTS_MIN));
	if (err)
		host_build_done(b);
	return err;
}

void host_build_done(struct host_build *b)
{
	mem_free(b->blob);
	mem_free(b->node);
	mem_free(b->slot);
	*b = (struct host_build){ 0 };
}

void host_build_prefetch(const struct host_build *b, struct str name)
{
	struct level level;
	struct walk w;

	walk_start(&w, &b->start, name);
	for (unsigned i = 0; i < HOST_ABREAST && walk_next(&w, &level); i++)
		__builtin_prefetch(&b->slot[place_of(level.tag, b->n_slots)]);
}

uint32_t host_build_tag(const struct host_build *b, struct str name)
{
	struct level level = { 0 };
	struct walk w;

	walk_start(&w, &b->start, name);
	while (walk_next(&w, &level))
		;
	return level.tag;
}

static int room_for_bytes(struct host_build *b, size_t bytes)
{
	size_t most = b->blob_max + b->blob_max / 2;
	char *blob;

	if (bytes <= b->blob_max - b->blob_n)
		return 0;
	if (most > BLOB_MAX)
		return -ENOMEM;
	blob = mem_grow(b->blob, most, 1);
	if (!blob)
		return -ENOMEM;
	b->blob = blob;
	b->blob_max = most;
	return 0;
}

static int room_for_nodes(struct host_build *b, uint32_t n)
{
	uint32_t most = b->max + b->max / 2 + HOST_LABELS_MAX;
	struct host_node *node;

	if (n <= b->max - b->n)
		return 0;
	node = mem_grow(b->node, most, sizeof(*node));
	if (!node)
		return -ENOMEM;
	b->node = node;
	b->max = most;
	return 0;
}

/* Room for one more name, whatever it is; slots at most three quarters full. */
static int make_room(struct host_build *b, struct str name)
{
	if (b->n + HOST_LABELS_MAX > b->n_slots / 4 * 3 && grow(b) < 0)
		return -ENOMEM;
	if (room_for_bytes(b, name.n + 1) < 0)
		return -ENOMEM;
	return room_for_nodes(b, HOST_LABELS_MAX);
}

/* Is it the node of the label below the node @above? */
static bool is_node(const struct host_build *b, uint32_t number,
		    uint32_t above, struct str label)
{
	const struct host_node *node = &b->node[number];
	const char *name = b->blob + node->name;

	/* The NUL behind each name ends the comparison. */
	return node->above == above &&
	       strncmp(name, label.p, label.n) == 0 &&
	       (name[label.n] == '.' || name[label.n] == '\0');
}

/* The slot that a level has or should have; NO_SLOT: the table must grow. */
static uint32_t find_slot(const struct host_build *b, const struct level *level,
			  uint32_t above, struct str label)
{
	const size_t last = with_tail(b->n_slots) - 1;

	for (size_t at = place_of(level->tag, b->n_slots); at < last; at++) {
		const struct host_slot *slot = &b->slot[at];

		if (slot->node == 0 ||
		    (slot->tag == level->tag &&
		     is_node(b, slot->node, above, label)))
			return (uint32_t)at;
	}
	return NO_SLOT;
}

static uint32_t keep_name(struct host_build *b, struct str name)
{
	size_t at = b->blob_n;

	memcpy(b->blob + at, name.p, name.n);
	b->blob[at + name.n] = '\0';
	b->blob_n += name.n + 1;
	return (uint32_t)at;
}

static int try_add(struct host_build *b, struct str name,
		   struct host_trail *ret)
{
	uint32_t above = 0, kept = 0;
	struct level level;
	bool is_kept = false;
	struct walk w;

	ret->n = 0;
	walk_start(&w, &b->start, name);
	while (walk_next(&w, &level)) {
		struct str label = str_make(name.p + level.at, level.n);
		uint32_t at = find_slot(b, &level, above, label);

		if (at == NO_SLOT)
			return -EAGAIN;
		if (b->slot[at].node == 0) {
			if (!is_kept)
				kept = keep_name(b, name);
			is_kept = true;
			b->node[b->n] = (struct host_node){
				.name = kept + level.at, .above = above,
				.tag = level.tag,
			};
			b->slot[at].tag = level.tag;
			b->slot[at].node = b->n++;
		}
		above = b->slot[at].node;
		ret->node[ret->n++] = above;
	}
	b->depth = MAX(b->depth, ret->n);
	return 0;
}

int host_build_add(struct host_build *b, struct str name,
		   struct host_trail *ret)
{
	int err;

	REQUIRE(name.n > 0 && name.n <= HOST_NAME_MAX_LEN);
	do {
		err = make_room(b, name);
		if (err)
			return err;
		err = try_add(b, name, ret);
		if (err == -EAGAIN && grow(b) < 0)
			return -ENOMEM;
	} while (err == -EAGAIN);
	return 0;
}

/* --- the final form ------------------------------------------------------- */

static uint32_t label_n(const struct host_build *b, const struct host_node *node)
{
	const char *label = b->blob + node->name;
	uint32_t n = 0;

	while (label[n] != '.' && label[n] != '\0')
		n++;
	return n;
}

/*
 * The bytes of each bucket, and their sum; @count: records of each.  False when
 * a bucket would have too many.
 */
static bool count_bytes(const struct host_build *b, uint32_t n_buckets,
			unsigned mark_bytes, uint8_t *count, uint32_t *bytes)
{
	for (uint32_t i = 0; i < n_buckets; i++)
		bytes[i] = 1;
	for (uint32_t i = 1; i < b->n; i++) {
		const struct host_node *node = &b->node[i];
		uint32_t at = place_of(node->tag, n_buckets);

		if (count[at] == BUCKET_MAX)
			return false;
		count[at]++;
		bytes[at] += 2 + mark_bytes + 4 + label_n(b, node);
	}
	return true;
}

/* From bytes to where each begins; the end of all, or 0 when that is too far. */
static size_t place_buckets(uint32_t *directory, uint32_t n_buckets)
{
	size_t at = 0;

	for (uint32_t i = 0; i < n_buckets; i++) {
		size_t bytes = directory[i];

		directory[i] = (uint32_t)at;
		at += bytes;
	}
	return at <= UINT32_MAX - HOST_RECORD_PAD ? at : 0;
}

/* Put a record into its bucket, of which @filled are there; where it stands. */
static uint32_t write_record(const struct host_build *b, uint8_t *data,
			     const struct host_table *t, uint32_t number,
			     uint8_t *filled)
{
	const struct host_node *node = &b->node[number];
	uint32_t where = t->directory[place_of(node->tag, t->n_buckets)];
	uint32_t n = label_n(b, node), at = where + 1 + 2 * (uint32_t)data[where];
	uint16_t key = key_of(node->tag, n);
	uint8_t *r;

	for (unsigned i = 0; i < *filled; i++)
		at += t->mark_bytes + 4 + key_label_n(load_key(data + where, i));
	memcpy(data + where + 1 + 2 * (size_t)*filled, &key, sizeof(key));
	++*filled;
	r = data + at;
	for (unsigned i = 0; i < t->mark_bytes; i++)
		r[i] = (uint8_t)(node->mark >> 8 * i);
	/* It was written before, and its place put where its name had been. */
	memcpy(r + t->mark_bytes, &b->node[node->above].name, 4);
	memcpy(r + t->mark_bytes + 4, b->blob + node->name, n);
	return at;
}

static void write_records(struct host_build *b, uint8_t *data,
			  const struct host_table *t, uint8_t *count)
{
	for (uint32_t i = 0; i < t->n_buckets; i++) {
		data[t->directory[i]] = count[i];
		count[i] = 0;
	}
	b->node[0].name = 0;
	for (uint32_t i = 1; i < b->n; i++) {
		uint32_t at = place_of(b->node[i].tag, t->n_buckets);

		if (i + AHEAD < b->n)
			__builtin_prefetch(data + t->directory[place_of(
				b->node[i + AHEAD].tag, t->n_buckets)], 1);
		b->node[i].name = write_record(b, data, t, i, &count[at]);
	}
}

/* One block for directory and buckets, of which @bytes are the sizes. */
static int write_table(struct host_build *b, struct host_table *t,
		       uint8_t *count, uint32_t *bytes)
{
	size_t directory_n = t->n_buckets * sizeof(*t->directory), total;
	uint32_t *directory;

	total = place_buckets(bytes, t->n_buckets);
	if (total == 0)
		return -ENOMEM;
	directory = mem_new(directory_n + total + HOST_RECORD_PAD);
	if (!directory)
		return -ENOMEM;
	mem_prefer_large_pages(directory, directory_n + total + HOST_RECORD_PAD);
	memcpy(directory, bytes, directory_n);
	t->directory = directory;
	t->data_n = (uint32_t)total;
	t->data = (uint8_t *)directory + directory_n;
	write_records(b, (uint8_t *)directory + directory_n, t, count);
	return 0;
}

static int make_table(struct host_build *b, struct host_table *t)
{
	CLEANUP(mem_freep) uint32_t *bytes = NULL;
	CLEANUP(mem_freep) uint8_t *count = NULL;

	bytes = mem_new_array(t->n_buckets, sizeof(*bytes));
	count = mem_new(t->n_buckets);
	if (!bytes || !count)
		return -ENOMEM;
	if (!count_bytes(b, t->n_buckets, t->mark_bytes, count, bytes))
		return -EAGAIN;
	return write_table(b, t, count, bytes);
}

int host_build_take(struct host_build *b, uint32_t marks,
		    struct host_table *ret)
{
	struct host_table t = {
		.n_buckets = b->n / BUCKET_MEAN + 1,
		.mark_bytes = 1,
		.depth = b->depth,
		.start = b->start,
	};
	int err;

	REQUIRE(marks <= 1u << HOST_MARK_BITS_MAX);
	while (1u << 8 * t.mark_bytes < marks)
		t.mark_bytes++;
	t.mark_mask = (1u << 8 * t.mark_bytes) - 1;
	mem_free(b->slot);
	b->slot = NULL;
	/* With a keyed hash the first try is the last one. */
	while ((err = make_table(b, &t)) == -EAGAIN && t.n_buckets < b->n)
		t.n_buckets *= 2;
	if (err)
		return -ENOMEM;
	host_build_done(b);
	*ret = t;
	return 0;
}
