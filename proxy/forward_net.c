/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_net.c - the connection to the origin: dialled, used, left, closed
 *
 * One dial at a time.  Its result may come inside the operation that asked for
 * it, so it is only noted, and taken by the next step of the engine.  Between
 * two requests the connection stays with its client; when that has no more use
 * for it, and nothing of an exchange is on it, the owner may keep it.
 */
#include "proxy/forward_int.h"

void forward_net_close(struct forward *f, enum reason why)
{
	uint64_t up = f->net.bytes_out, down = f->net.bytes_in;

	if (!stream_is_open(&f->net.io))
		return;
	forward_half_disarm(&f->net);
	stream_close(&f->net.io);
	forward_half_done(&f->net);
	forward_half_init(&f->net, STREAM_NONE, f->memory);
	f->ops->net_closed(f->arg, why, up, down);
}

static bool net_is_whole(const struct forward *f)
{
	return f->net_whole && !f->net_bound && !f->net.eof &&
	       !f->net.broken && !f->net.deaf &&
	       f->net.in.n == 0 && f->net.out.n == 0;
}

void forward_net_leave(struct forward *f, enum reason why)
{
	struct stream *net = &f->net.io;

	if (!stream_is_open(net) || !f->outlives || !net_is_whole(f)) {
		forward_net_close(f, why);
		return;
	}
	forward_half_disarm(&f->net);
	if (!f->ops->net_idle(f->arg, net, f->net.bytes_out,
			      f->net.bytes_in)) {
		forward_net_close(f, why);
		return;
	}
	forward_half_done(&f->net);
	forward_half_init(&f->net, STREAM_NONE, f->memory);
}

void forward_net_check(struct forward *f)
{
	if (!stream_is_open(&f->net.io))
		return;
	if (f->net.broken)
		forward_net_close(f, REASON_ORIGIN_RESET);
	/* One whose layer has something to settle is not idle. */
	else if (f->net.eof || f->net.in.n > 0 ||
		 f->net.io.read_waits_write)
		forward_net_close(f, REASON_ORIGIN_CLOSED);
}

void forward_dial(struct forward *f)
{
	f->dial_over = false;
	f->dial_net = STREAM_NONE;
	f->dial_found = false;
	forward_set_state(f, FORWARD_DIAL);
	f->ops->dial(f->arg, &f->x.target,
		     f->x.replayed || !f->x.replayable);
}

void forward_net_take(struct forward *f)
{
	if (f->state != FORWARD_DIAL || !f->dial_over ||
	    !stream_is_open(&f->dial_net))
		return;
	forward_half_init(&f->net, stream_take(&f->dial_net), f->memory);
	sock_still_anew(&f->still_up, f->memory);
	sock_still_anew(&f->still_down, f->memory);
	f->net_target = f->x.target;
	f->net_keep = false;
	f->net_whole = false;
	f->net_bound = false;
	f->net_reused = f->dial_found;
}

static void dial_result(struct forward *f, struct stream net, enum reason why)
{
	REQUIRE(f->magic == FORWARD_MAGIC);
	REQUIRE(f->state == FORWARD_DIAL && !f->dial_over);
	f->dial_over = true;
	f->dial_net = net;
	f->dial_why = why;
	event_active(f->kick, 0, 0);
}

void forward_dialed(struct forward *f, struct stream net, int64_t began_ms)
{
	dial_result(f, net, REASON_ALLOWED);
	f->net_began_ms = began_ms;
}

void forward_set_parent(struct forward *f, bool absolute, struct str basic)
{
	f->net_absolute = absolute;
	f->net_basic = basic;
}

void forward_dial_found(struct forward *f, struct stream net, int64_t began_ms)
{
	forward_dialed(f, net, began_ms);
	f->dial_found = true;
}

void forward_dial_failed(struct forward *f, enum reason why)
{
	dial_result(f, STREAM_NONE, why);
}

const struct forward_target *forward_net_target(const struct forward *f)
{
	return stream_is_open(&f->net.io) ? &f->net_target : NULL;
}
