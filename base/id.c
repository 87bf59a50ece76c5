/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.c - time-ordered identifiers (RFC 9562) and random bytes
 *
 * Theory
 * ======
 *
 * A version 7 UUID is 48 bits of milliseconds, 12 bits that we use for the
 * fraction of the millisecond (RFC 9562 6.2, method 3), and 62 random bits.
 * Time and fraction are one number of 60 bits; a thread that makes ids faster
 * than the clock moves counts it up, so that the ids of one thread are strictly
 * ordered.  A clock set back by more than ID_STEP_MS is followed: ids that lie
 * about the hour are worse than an order broken once.
 *
 * Random bits come from a pool per thread.  After fork() or clone() two
 * processes would hold the same pool and make the same ids; so a pool is valid
 * only for one generation, which is kept in a page that the kernel wipes in
 * the child (madvise(2) MADV_WIPEONFORK; unlike pthread_atfork() it also holds
 * for a bare clone(2)).  Where that fails nothing is pooled.
 */
#include "base/id.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

#define ID_RANDOM	8		/* random bytes in an id */
#define ID_POOL		(256 * ID_RANDOM)
#define ID_STEP_MS	10000

static const char hex_digits[] = "0123456789abcdef";

void random_bytes(void *p, size_t n)
{
	char *to = p;

	while (n > 0) {
		/* A signal may cut short what is longer than 256 bytes. */
		ssize_t got = getrandom(to, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		REQUIRE(got > 0);
		to += got;
		n -= (size_t)got;
	}
}

void id_random_hex(char *out, size_t nbytes)
{
	while (nbytes > 0) {
		uint8_t b[32];
		size_t n = MIN(nbytes, sizeof(b));

		random_bytes(b, n);
		for (size_t i = 0; i < n; i++) {
			*out++ = hex_digits[b[i] >> 4];
			*out++ = hex_digits[b[i] & 15];
		}
		nbytes -= n;
		explicit_bzero(b, sizeof(b));
	}
	*out = '\0';
}

/* Zero in a process whose pools are its parent's. */
static _Atomic uint64_t *generation;
static _Atomic uint64_t last_generation;
static pthread_once_t generation_once = PTHREAD_ONCE_INIT;

static void generation_make(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	if (madvise(p, page, MADV_WIPEONFORK)) {
		munmap(p, page);
		return;
	}
	generation = p;
}

/* The generation of this process; 0 when pools cannot be trusted. */
static uint64_t generation_now(void)
{
	uint64_t now;

	REQUIRE(pthread_once(&generation_once, generation_make) == 0);
	if (!generation)
		return 0;
	now = atomic_load_explicit(generation, memory_order_relaxed);
	if (now == 0) {
		/* Threads that race here agree on the one who came first. */
		uint64_t fresh = atomic_fetch_add(&last_generation, 1) + 1;

		if (atomic_compare_exchange_strong(generation, &now, fresh))
			now = fresh;
	}
	return now;
}

struct id_pool {
	uint64_t generation;
	size_t left;
	uint8_t b[ID_POOL];
};

static _Thread_local struct id_pool pool;

static void pool_take(uint8_t out[ID_RANDOM])
{
	uint64_t now = generation_now();

	if (now == 0) {
		random_bytes(out, ID_RANDOM);
		return;
	}
	if (pool.generation != now || pool.left < ID_RANDOM) {
		random_bytes(pool.b, sizeof(pool.b));
		pool.left = sizeof(pool.b);
		pool.generation = now;
	}
	pool.left -= ID_RANDOM;
	memcpy(out, pool.b + pool.left, ID_RANDOM);
	memset(pool.b + pool.left, 0, ID_RANDOM);
}

/* Milliseconds and twelve bits of fraction, greater than the last time. */
static uint64_t id_time(void)
{
	static _Thread_local uint64_t last;
	uint64_t us = (uint64_t)clock_wall_us();
	uint64_t now = (us / 1000) << 12 | (us % 1000) * 4096 / 1000;

	if (now <= last && last - now <= (uint64_t)ID_STEP_MS << 12)
		now = last + 1;
	last = now;
	return now;
}

void id_new(struct id *ret)
{
	uint64_t now = id_time();

	for (size_t i = 0; i < 6; i++)
		ret->b[i] = (uint8_t)(now >> (52 - 8 * i));
	ret->b[6] = (uint8_t)(0x70 | ((now >> 8) & 0x0f));
	ret->b[7] = (uint8_t)now;
	pool_take(ret->b + 8);
	ret->b[8] = (uint8_t)(0x80 | (ret->b[8] & 0x3f));
}

void id_text(const struct id *id, char out[ID_TEXT_SIZE])
{
	for (size_t i = 0; i < sizeof(id->b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = hex_digits[id->b[i] >> 4];
		*out++ = hex_digits[id->b[i] & 15];
	}
	*out = '\0';
}
