/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_tell.c - what the other process is told, in letters
 *
 * Theory in handover.c.  The other one reads as it takes things in, and we go on
 * with our loop meanwhile: what its socket does not take yet is a letter in a
 * queue, and the next run is told of when the queue is empty.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proxy/handover_own.h"
#include "proxy/handover_state.h"
#include "proxy/host_listen.h"
#include "proxy/leave.h"
#include "proxy/plug.h"

/* --- saying ----------------------------------------------------------------------- */

void handover_flush(struct handover *h)
{
	while (!list_empty(&h->letters)) {
		struct letter *l = list_first(&h->letters, struct letter,
					      node);
		int err = fd_send_msg(h->fd, l->bytes, l->n, l->fd, l->nfds);

		if (err == -EAGAIN || err == -ENOBUFS) {
			if (event_add(h->writable, NULL) < 0)
				handover_give_back(h, "out of memory");
			return;
		}
		if (err < 0) {
			handover_give_back(h, NULL);
			return;
		}
		list_del(&l->node);
		mem_free(l);
	}
}

/* h->m, of @n bytes. */
int handover_say(struct handover *h, size_t n, const int *fd, size_t nfds)
{
	struct letter *l = mem_new(sizeof(*l) + n);

	if (!l)
		return -ENOMEM;
	REQUIRE(nfds <= FD_PASS_MAX);
	l->n = n;
	l->nfds = nfds;
	memcpy(l->bytes, &h->m, n);
	if (nfds)
		memcpy(l->fd, fd, nfds * sizeof(fd[0]));
	list_add(&h->letters, &l->node);
	return 0;
}

int handover_say_word(struct handover *h, enum handover_type type)
{
	return handover_say(h, handover_begin(type, &h->m), NULL, 0);
}

static int say_state(struct handover *h, struct str all)
{
	size_t head = handover_begin(HANDOVER_STATE, &h->m), n;
	int err = 0;

	while (err == 0 && (n = handover_cut(all, HANDOVER_STATE_MAX)) > 0) {
		h->m.state.n = (uint32_t)n;
		memcpy(h->m.state.bytes, all.p, n);
		err = handover_say(h, head + n, NULL, 0);
		all = str_make(all.p + n, all.n - n);
	}
	return err < 0 ? err : all.n > 0 ? -EMSGSIZE : 0;
}

void handover_drop_letters(struct handover *h)
{
	while (!list_empty(&h->letters)) {
		struct letter *l = list_first(&h->letters, struct letter,
					      node);

		list_del(&l->node);
		mem_free(l);
	}
}

/* --- the offer -------------------------------------------------------------------- */

int handover_say_offer(struct handover *h)
{
	int fd[HANDOVER_FDS_OFFERED] = {
		plug_listen_fd(h->c.plug), STDERR_FILENO, h->c.notify_fd,
	};
	size_t n = handover_begin(HANDOVER_OFFER, &h->m), i;
	int err, sock = -1;

	h->m.offer.sockets = (uint32_t)host_listens_sockets(h->c.listens);
	(void)!snprintf(h->m.offer.cgroup, sizeof(h->m.offer.cgroup), "%s",
			h->c.cgroup);
	err = handover_say(h, n, fd, fd[HANDOVER_FD_NOTIFY] < 0 ? HANDOVER_FD_NOTIFY
						       : HANDOVER_FDS_OFFERED);
	for (i = 0; err == 0; i++) {
		n = host_listens_socket(h->c.listens, i, &h->m, &sock);
		if (n == 0)
			break;
		err = handover_say(h, n, &sock, 1);
	}
	return err;
}

/* --- resting, and telling ------------------------------------------------------------ */

static int tell_tails(struct handover *h, struct leave *l)
{
	size_t i, n;
	int err = 0, fd = -1;

	for (i = 0; err == 0; i++) {
		n = plug_leave_tails(l, &h->m, i, &fd);
		if (n == 0)
			break;
		err = handover_say(h, n, &fd, 1);
	}
	return err;
}

static int tell_of(struct handover *h, struct leave *l)
{
	int fd[FD_PASS_MAX], err;
	size_t nfds = 0;

	if (l->conn)
		err = plug_leave_fill(l, &h->m, fd, &nfds);
	else
		err = host_listens_fill(l, &h->m);
	if (err == 0)
		err = handover_say(h, l->conn ? sizeof(h->m.run) : sizeof(h->m.part),
			  fd, nfds);
	if (err == 0)
		err = say_state(h, buf_str(&l->state));
	if (err == 0 && l->conn)
		err = tell_tails(h, l);
	buf_done(&l->state);
	return err;
}

static void on_told(struct leave *l)
{
	struct handover *h = l->arg;
	int err = l->err;

	h->out--;
	if (h->phase == HANDOVER_BACKING) {
		handover_go_on(h);
		return;
	}
	if (err == 0)
		err = tell_of(h, l);
	if (err < 0) {
		handover_give_back(h, handover_words(err));
		return;
	}
	h->next++;
	handover_flush(h);
	if (h->phase == HANDOVER_TELLING && list_empty(&h->letters))
		handover_tell_next(h);
}

static int tell_rest(struct handover *h)
{
	size_t i, n;
	int err = 0, fd;

	for (i = 0; err == 0; i++) {
		fd = plug_leave_conn(h->c.plug, i);
		if (fd < 0)
			break;
		n = handover_begin(HANDOVER_CONN, &h->m);
		err = handover_say(h, n, &fd, 1);
	}
	return err < 0 ? err : handover_say_word(h, HANDOVER_TOLD);
}

/* With no letter in the queue. */
void handover_tell_next(struct handover *h)
{
	int err;

	if (h->next < h->n) {
		h->out++;
		h->leave[h->next]->back = on_told;
		leave_tell(h->leave[h->next]);
		return;
	}
	err = tell_rest(h);
	if (err < 0) {
		handover_give_back(h, handover_words(err));
		return;
	}
	handover_set_phase(h, HANDOVER_IS_TOLD);
	handover_flush(h);
}

static int tell_preds(struct handover *h)
{
	size_t i, n;
	int err = 0, fd;

	for (i = 0; err == 0; i++) {
		fd = plug_leave_pred(h->c.plug, i);
		if (fd < 0)
			break;
		if (i == HANDOVER_PREDS_MAX)
			return -EUSERS;
		n = handover_begin(HANDOVER_PRED, &h->m);
		h->m.pred.index = (uint32_t)i + 1;
		err = handover_say(h, n, &fd, 1);
	}
	return err;
}

static void start_telling(struct handover *h)
{
	int err = tell_preds(h);

	if (err == -EUSERS)
		handover_give_back(h, "too many processes before this one still have open flows: wait until some of them have ended, or end them (upgrade_drain_seconds)");
	else if (err < 0)
		handover_give_back(h, handover_words(err));
	if (err < 0)
		return;
	handover_set_phase(h, HANDOVER_TELLING);
	handover_flush(h);
	if (h->phase == HANDOVER_TELLING && list_empty(&h->letters))
		handover_tell_next(h);
}

/* Every worker has answered. */
static void on_quiet(struct handover *h)
{
	if (h->phase == HANDOVER_BACKING) {
		handover_go_on(h);
		return;
	}
	if (h->err < 0)
		handover_give_back(h, handover_words(h->err));
	else if (h->waiting > 0 && clock_mono_ms() < h->until_ms)
		handover_wait_ms(h, HANDOVER_STEP_MS);
	else
		start_telling(h);
}

static void on_frozen(struct leave *l)
{
	struct handover *h = l->arg;

	h->waiting += l->waiting;
	h->err = MIN(h->err, l->err);
	if (--h->out == 0)
		on_quiet(h);
}

void handover_freeze_all(struct handover *h)
{
	size_t i;

	h->waiting = 0;
	h->err = 0;
	h->out = h->n;
	for (i = 0; i < h->n; i++) {
		h->leave[i]->back = on_frozen;
		leave_freeze(h->leave[i]);
	}
	if (h->n == 0)
		on_quiet(h);
}

