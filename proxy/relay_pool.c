/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_pool.c - scratch memory and pipes that a worker's relays share
 *
 * A pipe of RELAY_PIPE_SIZE takes half the processor time per byte that one of
 * the default size takes, and that one about as much as copying.  The kernel
 * charges pipe pages to the user: beyond pipe-user-pages-soft a pipe cannot
 * grow, and a new one has one or two pages only.  So the size is looked at when
 * a pipe is made; one below RELAY_CHUNK is thrown away, and no further one is
 * tried until a good one has come back.
 */
#include "proxy/relay_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

struct relay_pool {
	unsigned max;		/* pipes at once */
	unsigned lent;
	unsigned nidle;
	bool dry;		/* the kernel gives no more pipes of full size */
	uint64_t spliced;
	struct relay_pipe idle[RELAY_PIPES_IDLE];
	char *scratch;		/* RELAY_CHUNK bytes */
};

int relay_pool_new(struct relay_pool **ret)
{
	struct relay_pool *p = mem_new(sizeof(*p));

	if (!p)
		return -ENOMEM;
	/* Not zeroed: what is never used is never touched. */
	p->scratch = mem_grow(NULL, RELAY_CHUNK, 1);
	if (!p->scratch) {
		mem_free(p);
		return -ENOMEM;
	}
	/* splice(2) into a socket that was reset knows no MSG_NOSIGNAL. */
	signal(SIGPIPE, SIG_IGN);
	p->max = RELAY_PIPES_MAX;
	*ret = p;
	return 0;
}

static void pipe_close(struct relay_pipe *pipe)
{
	fd_closep(&pipe->rd);
	fd_closep(&pipe->wr);
}

void relay_pool_free(struct relay_pool *p)
{
	if (!p)
		return;
	REQUIRE(p->lent == 0);
	while (p->nidle)
		pipe_close(&p->idle[--p->nidle]);
	mem_free(p->scratch);
	mem_free(p);
}

void relay_pool_limit(struct relay_pool *p, unsigned pipes)
{
	p->max = pipes;
	while (p->nidle && p->nidle + p->lent > p->max)
		pipe_close(&p->idle[--p->nidle]);
}

uint64_t relay_pool_spliced(const struct relay_pool *p)
{
	return p->spliced;
}

char *relay_pool_scratch(struct relay_pool *p)
{
	return p->scratch;
}

static bool pipe_make(struct relay_pipe *ret)
{
	int fd[2];
	int size;

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) == -1)
		return false;
	/* Copying needs none. */
	if (fd_is_reserved(MAX(fd[0], fd[1]))) {
		fd_closep(&fd[0]);
		fd_closep(&fd[1]);
		return false;
	}
	if (fcntl(fd[1], F_SETPIPE_SZ, (int)RELAY_PIPE_SIZE) == -1)
		(void)!fcntl(fd[1], F_SETPIPE_SZ, (int)RELAY_PIPE_SIZE / 4);
	size = fcntl(fd[1], F_GETPIPE_SZ);
	if (size < 0 || (unsigned)size < RELAY_CHUNK) {
		fd_closep(&fd[0]);
		fd_closep(&fd[1]);
		return false;
	}
	*ret = (struct relay_pipe){ fd[0], fd[1], (size_t)size };
	return true;
}

bool relay_pool_lend(struct relay_pool *p, struct relay_pipe *ret)
{
	if (p->lent >= p->max)
		return false;
	if (p->nidle) {
		*ret = p->idle[--p->nidle];
	} else if (p->dry && p->lent) {
		return false;
	} else {
		p->dry = !pipe_make(ret);
		if (p->dry)
			return false;
	}
	p->lent++;
	return true;
}

void relay_pool_return(struct relay_pool *p, struct relay_pipe *pipe,
		       bool empty)
{
	if (pipe->rd < 0)
		return;
	REQUIRE(p->lent > 0);
	p->lent--;
	p->dry = false;
	if (empty && p->nidle < RELAY_PIPES_IDLE &&
	    p->nidle + p->lent < p->max)
		p->idle[p->nidle++] = *pipe;
	else
		pipe_close(pipe);
	*pipe = RELAY_NO_PIPE;
}

void relay_pool_count(struct relay_pool *p, size_t spliced)
{
	p->spliced += spliced;
}
