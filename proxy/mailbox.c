/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailbox.c - work handed to the thread that runs an event base
 *
 * A singly linked queue under a mutex, and an eventfd that is written only
 * when the queue was empty.  The reader takes the whole queue at once; what is
 * posted while it works waits for the next turn of the loop, so that mail
 * cannot starve the sockets.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/mailbox.h"

struct mailbox {
	pthread_mutex_t lock;
	struct mail *first, **last;	/* under @lock */
	int fd;
	struct event *event;
	void *owner;
};

static struct mail *mailbox_take_all(struct mailbox *m)
{
	struct mail *all;

	pthread_mutex_lock(&m->lock);
	all = m->first;
	m->first = NULL;
	m->last = &m->first;
	pthread_mutex_unlock(&m->lock);
	return all;
}

static void mailbox_cb(evutil_socket_t fd, short what, void *arg)
{
	struct mailbox *m = arg;
	struct mail *mail, *next;
	uint64_t count;

	(void)what;
	/* An empty read (EAGAIN) is fine: the queue is what counts. */
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	for (mail = mailbox_take_all(m); mail; mail = next) {
		next = mail->next;
		mail->next = NULL;
		mail->fn(m->owner, mail);
	}
}

int mailbox_new(struct event_base *base, void *owner, struct mailbox **ret)
{
	struct mailbox *m = mem_new(sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->fd < 0) {
		int err = -errno;

		mem_free(m);
		return err;
	}
	m->owner = owner;
	m->last = &m->first;
	pthread_mutex_init(&m->lock, NULL);
	m->event = event_new(base, m->fd, EV_READ | EV_PERSIST, mailbox_cb, m);
	if (!m->event || event_add(m->event, NULL) < 0) {
		mailbox_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

void mailbox_free(struct mailbox *m)
{
	if (!m)
		return;
	if (m->event)
		event_free(m->event);
	fd_closep(&m->fd);
	pthread_mutex_destroy(&m->lock);
	mem_free(m);
}

void mailbox_post(struct mailbox *m, struct mail *mail, mail_fn *fn)
{
	static const uint64_t one = 1;
	bool was_empty;

	mail->fn = fn;
	mail->next = NULL;
	pthread_mutex_lock(&m->lock);
	was_empty = !m->first;
	*m->last = mail;
	m->last = &mail->next;
	pthread_mutex_unlock(&m->lock);
	/* Cannot overflow: one write a batch.  Nothing else can fail here. */
	if (was_empty)
		REQUIRE(write(m->fd, &one, sizeof(one)) == sizeof(one));
}
