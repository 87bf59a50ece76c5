/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c - a worker's stock of marked sockets, and who waits for one
 *
 * A dial must not wait for another process each time, so some sockets of each
 * family are kept.  The first dial of a family finds none, asks and waits; from
 * then on more are asked for whenever half of them are used up.  One question a
 * family is under way, for as many as there is room for; who finds the stock
 * empty waits, first come, first served.
 *
 * A question that fails fails all who wait for that family, since the next
 * would fail alike; the next dial asks again.  Without a marker there is no
 * dial: an unmarked one would go where the operator did not mean it to.
 */
#include "proxy/marks.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/mem.h"
#include "proxy/marker.h"

struct marks_queue {
	struct marks *marks;
	int family;
	bool asked;			/* an answer is to come */
	unsigned n;
	int stock[MARKS_STOCK];
	struct list waiting;		/* struct marks_wait.node */
};

struct marks {
	int sock;			/* -1: the marker is gone */
	struct event *event;
	unsigned nwaiting;
	struct marks_queue queue[2];
};

static struct marks_queue *queue_of(struct marks *m, uint32_t family)
{
	return &m->queue[family == AF_INET6];
}

static int queue_ask(struct marks_queue *q)
{
	const struct marker_ask ask = {
		.family = (uint32_t)q->family, .n = MARKS_STOCK - q->n,
	};
	int err;

	if (q->marks->sock < 0)
		return -EPIPE;
	if (q->asked || q->n >= MARKS_LOW)
		return 0;
	err = fd_send_msg(q->marks->sock, &ask, sizeof(ask), NULL, 0);
	q->asked = err == 0;
	return err;
}

void marks_cancel(struct marks_wait *w)
{
	if (!w->queue)
		return;
	list_del(&w->node);
	w->queue->marks->nwaiting--;
	w->queue = NULL;
}

static void wait_end(struct marks_wait *w, int fd_or_err)
{
	marks_cancel(w);
	w->fn(w, fd_or_err);
}

/* Those who wait now, and not who comes to wait meanwhile. */
static void queue_fail(struct marks_queue *q, int err)
{
	struct list now;

	q->asked = false;
	if (list_empty(&q->waiting))
		return;
	now = q->waiting;
	now.next->prev = now.prev->next = &now;
	list_init(&q->waiting);
	while (!list_empty(&now))
		wait_end(list_first(&now, struct marks_wait, node), err);
}

static void queue_fill(struct marks_queue *q, const int *fd, size_t n)
{
	int err;

	q->asked = false;
	while (n > 0 && q->n < MARKS_STOCK)
		q->stock[q->n++] = fd[--n];
	while (n > 0)
		close(fd[--n]);
	while (q->n > 0 && !list_empty(&q->waiting))
		wait_end(list_first(&q->waiting, struct marks_wait, node),
			 q->stock[--q->n]);
	err = queue_ask(q);
	if (err < 0)
		queue_fail(q, err);
}

static void marks_fail(struct marks *m, int err)
{
	queue_fail(&m->queue[0], err);
	queue_fail(&m->queue[1], err);
}

static void marks_lost(struct marks *m)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	(void)!event_del(m->event);
	fd_closep(&m->sock);
	if (!atomic_flag_test_and_set(&told))
		log_error("the marker is gone: new flows fail until a restart");
	marks_fail(m, -EPIPE);
}

static void marks_cb(evutil_socket_t sock, short what UNUSED, void *arg)
{
	struct marks *m = arg;
	struct marker_answer answer;
	int fds[FD_PASS_MAX];
	size_t n = 0, nfds = 0;
	int err = fd_recv_msg(sock, &answer, sizeof(answer), &n, fds, &nfds);

	if (err == -EAGAIN)
		return;
	/* Our table of descriptors is full: whose answer it was is lost. */
	if (err == -EMSGSIZE) {
		marks_fail(m, -EMFILE);
		return;
	}
	if (err < 0 || n != sizeof(answer)) {
		while (nfds > 0)
			close(fds[--nfds]);
		marks_lost(m);
	} else if (nfds > 0) {
		queue_fill(queue_of(m, answer.family), fds, nfds);
	} else {
		queue_fail(queue_of(m, answer.family),
			   answer.err < 0 ? answer.err : -EPROTO);
	}
}

int marks_new(struct event_base *base, int sock, struct marks **ret)
{
	struct marks *m = mem_new(sizeof(*m));
	int err;

	if (!m) {
		close(sock);
		return -ENOMEM;
	}
	m->sock = sock;
	for (unsigned i = 0; i < ARRAY_SIZE(m->queue); i++) {
		m->queue[i].marks = m;
		m->queue[i].family = i == 0 ? AF_INET : AF_INET6;
		list_init(&m->queue[i].waiting);
	}
	err = fd_set_nonblock(sock, true);
	if (err == 0) {
		m->event = event_new(base, sock, EV_READ | EV_PERSIST, marks_cb,
				     m);
		if (!m->event || event_add(m->event, NULL) < 0)
			err = -ENOMEM;
	}
	if (err < 0) {
		marks_free(m);
		return err;
	}
	*ret = m;
	return 0;
}

int marks_take(struct marks *m, int family, struct marks_wait *w)
{
	struct marks_queue *q = queue_of(m, (uint32_t)family);
	int err;

	if (q->n > 0) {
		int fd = q->stock[--q->n];

		/* What fails here fails again, and is told, with none left. */
		(void)!queue_ask(q);
		return fd;
	}
	if (m->nwaiting == MARKS_WAITING_MAX)
		return -ENOBUFS;
	err = queue_ask(q);
	if (err < 0)
		return err;
	list_add(&q->waiting, &w->node);
	w->queue = q;
	m->nwaiting++;
	return -EINPROGRESS;
}

void marks_free(struct marks *m)
{
	if (!m)
		return;
	REQUIRE(m->nwaiting == 0);
	if (m->event)
		event_free(m->event);
	fd_closep(&m->sock);
	for (unsigned i = 0; i < ARRAY_SIZE(m->queue); i++)
		while (m->queue[i].n > 0)
			close(m->queue[i].stock[--m->queue[i].n]);
	mem_free(m);
}
