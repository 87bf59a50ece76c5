/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_half.c - one stream of the HTTP engine with its two buffers
 *
 * The only file of the engine that moves bytes: what is read stands in @in,
 * what is to be sent in @out, both bounded, and an end or a failure is a flag
 * that the engine's steps look at.  A half is read in its callback only, one
 * read each; a buffer that is full stops the reading.
 *
 * The two events are those of the descriptor.  A layer above it can have to
 * write before it can be read, and the other way round, so either event may
 * serve either wish; and it can hold bytes of which the descriptor shows
 * nothing, so that reading is made due without one.
 */
#include <errno.h>

#include <event2/event.h>

#include "base/clock.h"
#include "proxy/forward_int.h"
#include "proxy/quota.h"

#define READ_CHUNK		16384u

void forward_half_consume(struct forward_half *h, size_t n)
{
	if (n == 0)
		return;
	buf_consume(&h->in, n);
	h->seen = 0;
}

static void half_fail(struct forward_half *h)
{
	h->eof = true;
	h->broken = true;
}

/* No byte may come: is there one at all, or the end? */
static void half_over(struct forward_half *h, enum reason why)
{
	int n = stream_peek(&h->io);

	if (n > 0)
		h->over = why;
	else if (n == 0)
		h->eof = true;
	else if (n != -EAGAIN)
		half_fail(h);
}

/* How much of @room may be read now; 0: nothing, and why is a flag. */
static size_t half_room(struct forward_half *h, size_t room)
{
	enum reason why;

	if (!h->account || !quota_is_limited(h->account, QUOTA_DOWN))
		return room;
	why = quota_take(h->account, QUOTA_DOWN, room, clock_mono_ms(), &room);
	if (why != REASON_ALLOWED)
		half_over(h, why);
	else if (room == 0)
		h->held_in = true;
	return why == REASON_ALLOWED ? room : 0;
}

static void half_settle(struct forward_half *h, enum quota_way way, ssize_t n)
{
	if (h->account)
		quota_settle(h->account, way, n > 0 ? (size_t)n : 0);
}

void forward_half_fill(struct forward_half *h)
{
	size_t room = FORWARD_BUF - h->in.n;
	ssize_t n;

	if (room == 0 || h->eof)
		return;
	if (h->in.n >= READ_CHUNK &&
	    mem_account_why(h->in.owner) != REASON_ALLOWED) {
		h->lean = true;
		return;
	}
	room = MIN(room, MAX(READ_CHUNK, h->in.cap - h->in.n));
	if (buf_reserve(&h->in, room) < 0) {
		half_fail(h);
		return;
	}
	room = half_room(h, room);
	if (room == 0)
		return;
	n = stream_read(&h->io, h->in.p + h->in.n, room);
	half_settle(h, QUOTA_DOWN, n);
	if (n > 0) {
		h->in.n += (size_t)n;
		h->bytes_in += (uint64_t)n;
	} else if (n == 0) {
		h->eof = true;
	} else if (n != -EAGAIN) {
		half_fail(h);
	}
}

/* How much of what waits may be sent now; 0: nothing, and why is a flag. */
static size_t half_may_send(struct forward_half *h)
{
	size_t n = MIN(h->out.n, (size_t)QUOTA_CHUNK_MAX);
	enum reason why;

	if (!h->account || h->deaf || !quota_is_limited(h->account, QUOTA_UP))
		return n;
	if (h->held_out || h->over != REASON_ALLOWED)
		return 0;
	why = quota_take(h->account, QUOTA_UP, n, clock_mono_ms(), &n);
	if (why != REASON_ALLOWED)
		h->over = why;
	else if (n == 0)
		h->held_out = true;
	return why == REASON_ALLOWED ? n : 0;
}

bool forward_half_flush(struct forward_half *h)
{
	size_t may;
	ssize_t n;

	if (!stream_is_open(&h->io) || h->out.n == 0)
		return false;
	may = half_may_send(h);
	if (may == 0)
		return h->over != REASON_ALLOWED;
	n = h->deaf ? -EPIPE : stream_write(&h->io, h->out.p, may);
	half_settle(h, QUOTA_UP, n);
	if (n > 0) {
		buf_consume(&h->out, (size_t)n);
		h->bytes_out += (uint64_t)n;
		return true;
	}
	if (n == -EAGAIN)
		return false;
	h->deaf = true;
	buf_reset(&h->out);
	return true;
}

void forward_half_trim(struct forward_half *h)
{
	if (h->in.n == 0)
		buf_done(&h->in);
	if (h->out.n == 0)
		buf_done(&h->out);
}

/* False: it cannot be watched for reading. */
static bool arm_read(struct forward_half *h, enum forward_reading reading,
		     unsigned idle_ms)
{
	const struct timeval tv = {
		.tv_sec = idle_ms / 1000, .tv_usec = idle_ms % 1000 * 1000,
	};

	if (reading == h->reading)
		return true;
	/* Between the two that read the kernel's set stays as it is. */
	if (reading == READ_OFF)
		event_del(h->rd);
	else if (reading == READ_ON && h->reading == READ_IDLE)
		event_remove_timer(h->rd);
	else if (event_add(h->rd, reading == READ_IDLE ? &tv : NULL) < 0)
		return false;
	h->reading = (uint8_t)reading;
	return true;
}

static bool arm_write(struct forward_half *h, bool writing)
{
	if (writing == h->writing)
		return true;
	h->writing = writing;
	if (writing)
		return event_add(h->wr, NULL) == 0;
	event_del(h->wr);
	return true;
}

bool forward_half_arm(struct forward_half *h, enum forward_reading reading,
		      unsigned idle_ms)
{
	bool writing = h->shutting ||
		       (h->out.n > 0 && !h->deaf && !h->held_out);
	enum forward_reading rd;
	bool wr, armed;

	if (h->eof || h->held_in || h->lean || h->in.n >= FORWARD_BUF)
		reading = READ_OFF;
	rd = h->io.read_waits_write ? READ_OFF : reading;
	wr = reading != READ_OFF && h->io.read_waits_write;
	if (writing && h->io.write_waits_read)
		rd = MAX(rd, READ_ON);
	else
		wr |= writing;
	armed = arm_read(h, rd, idle_ms);
	if (!armed)
		half_fail(h);
	if (!arm_write(h, wr)) {
		h->deaf = true;
		armed = false;
	}
	if (reading != READ_OFF && stream_pending(&h->io))
		event_active(h->rd, EV_READ, 0);
	return armed;
}

unsigned forward_half_due(const struct forward_half *h, enum forward_due read)
{
	return stream_is_open(&h->io) && h->io.read_waits_write ? read : 0;
}

void forward_half_rest(struct forward_half *h, bool reading)
{
	if (reading) {
		event_del(h->rd);
		h->reading = READ_OFF;
	} else {
		event_del(h->wr);
		h->writing = false;
	}
}

void forward_half_disarm(struct forward_half *h)
{
	if (h->rd)
		event_free(h->rd);
	if (h->wr)
		event_free(h->wr);
	h->rd = NULL;
	h->wr = NULL;
	h->reading = READ_OFF;
	h->writing = false;
}

void forward_half_done(struct forward_half *h)
{
	forward_half_disarm(h);
	buf_done(&h->in);
	buf_done(&h->out);
}

void forward_half_init(struct forward_half *h, struct stream io,
		       struct mem_account *memory)
{
	*h = (struct forward_half){
		.io = io,
		.in = BUF_FOR(FORWARD_BUF, memory),
		.out = BUF_FOR(FORWARD_OUT_MAX, memory),
	};
}

int forward_half_watch(struct forward_half *h, struct event_base *base,
		       event_callback_fn rd, event_callback_fn wr, void *arg)
{
	h->rd = event_new(base, h->io.fd, EV_READ | EV_PERSIST, rd, arg);
	h->wr = event_new(base, h->io.fd, EV_WRITE | EV_PERSIST, wr, arg);
	return h->rd && h->wr ? 0 : -ENOMEM;
}

bool forward_half_silent(struct forward_half *h)
{
	return !h->eof && h->in.n == 0 && stream_peek(&h->io) == -EAGAIN &&
	       !h->io.read_waits_write;
}

int forward_half_shut(struct forward_half *h)
{
	int err = stream_shut(&h->io);

	h->shutting = err == -EAGAIN;
	return err;
}
