/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - time, replaceable by tests
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

int64_t clock_mono_ms(void);	/* CLOCK_MONOTONIC, milliseconds */
int64_t clock_mono_us(void);
int64_t clock_wall_us(void);	/* microseconds since the epoch, UTC */
static inline int64_t clock_wall_s(void) { return clock_wall_us() / 1000000; }

/* "2026-11-29T23:31:07.412345Z"; @out has room for CLOCK_RFC3339_SIZE. */
#define CLOCK_RFC3339_SIZE	28
void clock_rfc3339(int64_t wall_us, char out[CLOCK_RFC3339_SIZE]);

/* "Sun, 06 Nov 1994 08:49:37 GMT", the date of HTTP (RFC 9110 5.6.7). */
#define CLOCK_IMF_SIZE		30
void clock_imf(int64_t wall_s, char out[CLOCK_IMF_SIZE]);

/* That of now, which this thread writes once a second; CLOCK_IMF_SIZE - 1
 * characters, the same place each time. */
const char *clock_imf_now(void);

/* Tests: freeze all clocks at @ms (monotonic and since the epoch); -1: thaw. */
void clock_test_set_ms(int64_t ms);

#endif /* BASE_CLOCK_H */
