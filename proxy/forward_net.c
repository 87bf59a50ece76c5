/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_net.c - the connection to the origin: dialled, used, left, closed
 *
 * One dial at a time.  Its result may come inside the operation that asked for
 * it, so it is only noted, and taken by the next step of the engine.  Between
 * two requests the connection stays with its client; when that has no more use
 * for it, and nothing of an exchange is on it, the owner may keep it.
 */
#include <unistd.h>

#include "proxy/forward_int.h"

void forward_net_close(struct forward *f, enum reason why)
{
	uint64_t up = f->net.bytes_out, down = f->net.bytes_in;

	if (f->net.fd < 0)
		return;
	forward_half_disarm(&f->net);
	close(f->net.fd);
	forward_half_done(&f->net);
	forward_half_init(&f->net, -1);
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
	int fd = f->net.fd;

	if (fd < 0 || !f->outlives || !net_is_whole(f)) {
		forward_net_close(f, why);
		return;
	}
	forward_half_disarm(&f->net);
	if (!f->ops->net_idle(f->arg, fd, f->net.bytes_out, f->net.bytes_in)) {
		forward_net_close(f, why);
		return;
	}
	forward_half_done(&f->net);
	forward_half_init(&f->net, -1);
}

void forward_net_check(struct forward *f)
{
	if (f->net.fd < 0)
		return;
	if (f->net.broken)
		forward_net_close(f, REASON_ORIGIN_RESET);
	else if (f->net.eof || f->net.in.n > 0)
		forward_net_close(f, REASON_ORIGIN_CLOSED);
}

void forward_dial(struct forward *f)
{
	f->dial_over = false;
	f->dial_fd = -1;
	f->dial_found = false;
	forward_set_state(f, FORWARD_DIAL);
	f->ops->dial(f->arg, &f->x.target,
		     f->x.replayed || !f->x.replayable);
}

void forward_net_take(struct forward *f)
{
	if (f->state != FORWARD_DIAL || !f->dial_over || f->dial_fd < 0)
		return;
	forward_half_init(&f->net, f->dial_fd);
	f->dial_fd = -1;
	f->net_target = f->x.target;
	f->net_keep = false;
	f->net_whole = false;
	f->net_bound = false;
	f->net_reused = f->dial_found;
}

static void dial_result(struct forward *f, int fd, enum reason why)
{
	REQUIRE(f->magic == FORWARD_MAGIC);
	REQUIRE(f->state == FORWARD_DIAL && !f->dial_over);
	f->dial_over = true;
	f->dial_fd = fd;
	f->dial_why = why;
	event_active(f->kick, 0, 0);
}

void forward_dialed(struct forward *f, int fd)
{
	dial_result(f, fd, REASON_ALLOWED);
}

void forward_set_parent(struct forward *f, bool absolute, struct str basic)
{
	f->net_absolute = absolute;
	f->net_basic = basic;
}

void forward_dial_found(struct forward *f, int fd)
{
	dial_result(f, fd, REASON_ALLOWED);
	f->dial_found = true;
}

void forward_dial_failed(struct forward *f, enum reason why)
{
	dial_result(f, -1, why);
}

const struct forward_target *forward_net_target(const struct forward *f)
{
	return f->net.fd >= 0 ? &f->net_target : NULL;
}
