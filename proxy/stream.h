/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - one end of a byte stream: a socket, or a layer above one
 *
 * Who moves bytes waits for the descriptor and calls these operations, so that
 * what lies between (TLS) is nothing that it has to know of.  A stream is a
 * value that is moved and never copied: whoever holds it uses it, and closes it
 * once.  Who was lent one does not close it, and its owner leaves it alone
 * meanwhile.  Nothing here blocks.
 */
#ifndef PROXY_STREAM_H
#define PROXY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"

struct stream;

/*
 * All but read and write may be left to what a socket does, by taking those of
 * stream_plain_ops.  None is called once an operation has said anything worse
 * than -EAGAIN, but close.
 */
struct stream_ops {
	/*
	 * At most @n (never 0) bytes.  0: the peer said that no more comes.
	 * A stream that stops without its layer having said so (TCP's FIN
	 * where TLS wants a close_notify first) is an error, as a reset is:
	 * bytes may be missing.
	 */
	ssize_t (*read)(struct stream *s, void *p, size_t n);
	/*
	 * Of @n (never 0) bytes at least one, or -EAGAIN: then none was taken,
	 * and what is given next begins with the same ones, but may be fewer
	 * or more, and stand elsewhere.
	 */
	ssize_t (*write)(struct stream *s, const void *p, size_t n);
	/* What read would say of one byte, which stays: 1, 0 or -errno. */
	int (*peek)(struct stream *s);
	/* Is there something to read that the descriptor does not show? */
	bool (*pending)(const struct stream *s);
	/* Tell the peer that no more comes: 0; -EAGAIN: not yet, ask again;
	 * another error: there is nobody to tell. */
	int (*shut)(struct stream *s);
	/* The layer and the descriptor. */
	void (*close)(struct stream *s);
};

struct stream {
	const struct stream_ops *ops;
	void *layer;		/* what ops have above the socket; or NULL */
	int fd;			/* non-blocking; -1: there is no stream */
	/*
	 * What the last -EAGAIN waits for, where it is not the obvious: a read
	 * (and peek) for room to write, a write (and shut) for something to
	 * read.  The operation sets it each time that it says -EAGAIN.
	 */
	bool read_waits_write, write_waits_read;
};

extern const struct stream_ops stream_plain_ops;

/* A connected, non-blocking socket of its own; -1: none. */
static inline struct stream stream_plain(int fd)
{
	return (struct stream){ .ops = &stream_plain_ops, .fd = fd };
}

#define STREAM_NONE	stream_plain(-1)

static inline bool stream_is_open(const struct stream *s)
{
	return s->fd >= 0;
}

/* Is it nothing but its socket? */
static inline bool stream_is_plain(const struct stream *s)
{
	return s->ops == &stream_plain_ops;
}

/* Ownership leaves; @s is none. */
static inline struct stream stream_take(struct stream *s)
{
	struct stream taken = *s;

	*s = STREAM_NONE;
	return taken;
}

NODISCARD static inline ssize_t stream_read(struct stream *s, void *p, size_t n)
{
	return s->ops->read(s, p, n);
}

NODISCARD static inline ssize_t stream_write(struct stream *s, const void *p,
					     size_t n)
{
	return s->ops->write(s, p, n);
}

NODISCARD static inline int stream_peek(struct stream *s)
{
	return s->ops->peek(s);
}

static inline bool stream_pending(const struct stream *s)
{
	return s->ops->pending(s);
}

NODISCARD static inline int stream_shut(struct stream *s)
{
	return s->ops->shut(s);
}

/* Nothing where there is none. */
void stream_close(struct stream *s);

#endif /* PROXY_STREAM_H */
