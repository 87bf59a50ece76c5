/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiler.c - large policies, compiled on a thread of their own
 */
#include "proxy/compiler.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "proxy/plug_peer.h"

struct compiler {
	struct mailbox *mailbox;	/* of who is told */
	size_t here_max;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct compile *first, **last;	/* under @lock */
	bool end;			/* under @lock */
};

static void compile_now(struct compile *job)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	struct str from = job->text;

	job->err = 0;
	if (job->fd >= 0) {
		job->err = plug_read_policy(job->fd, &text, &job->why);
		from = buf_str(&text);
	}
	if (job->err == 0)
		job->err = plug_compile(job->name, from, job->observe,
					&job->rules, &job->why);
}

/* On the thread that is told. */
static void compiler_on_done(void *owner, struct mail *mail)
{
	struct compile *job = container_of(mail, struct compile, mail);

	(void)owner;
	job->done(job);
}

/* The next one, or NULL at the end. */
static struct compile *compiler_wait(struct compiler *c)
{
	struct compile *job = NULL;

	pthread_mutex_lock(&c->lock);
	while (!c->end && !c->first)
		pthread_cond_wait(&c->wake, &c->lock);
	if (!c->end) {
		job = c->first;
		c->first = job->next;
		if (!c->first)
			c->last = &c->first;
	}
	pthread_mutex_unlock(&c->lock);
	return job;
}

static void *compiler_main(void *arg)
{
	struct compiler *c = arg;
	struct compile *job;

	while ((job = compiler_wait(c))) {
		compile_now(job);
		mailbox_post(c->mailbox, &job->mail, compiler_on_done);
	}
	return NULL;
}

int compiler_new(struct event_base *base, size_t here_max,
		 struct compiler **ret)
{
	struct compiler *c = mem_new(sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->here_max = here_max;
	c->last = &c->first;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	err = mailbox_new(base, c, &c->mailbox);
	if (err == 0)
		err = -pthread_create(&c->thread, NULL, compiler_main, c);
	if (err < 0) {
		mailbox_free(c->mailbox);
		pthread_cond_destroy(&c->wake);
		pthread_mutex_destroy(&c->lock);
		mem_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

bool compiler_wants(const struct compiler *c, size_t bytes)
{
	return c && bytes > c->here_max;
}

bool compiler_wants_fd(const struct compiler *c, int fd)
{
	struct stat st;

	/* What is none is refused at once, where it is read. */
	return c && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size > 0 && compiler_wants(c, (size_t)st.st_size);
}

void compiler_post(struct compiler *c, struct compile *job)
{
	job->next = NULL;
	pthread_mutex_lock(&c->lock);
	*c->last = job;
	c->last = &job->next;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

void compiler_free(struct compiler *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->end = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	mailbox_free(c->mailbox);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	mem_free(c);
}
