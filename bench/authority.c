/* SPDX-License-Identifier: Apache-2.0 */
/*
 * authority.c - the server behind the DNS bench: every name has one address
 *
 *	authority ADDRESS ANSWER [LABEL=ADDRESS...]
 *
 * Listens at UDP port 53 of ADDRESS (IPv4), says "ready", and answers each
 * question for an A record with ANSWER and every other one with no data, until
 * standard input ends.  A name whose first label is LABEL has its address instead,
 * of whichever family.  As cheap as can be, since it shares the machine with
 * who is measured: batches, and no parsing beyond the end of the name.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH		64
#define OTHERS_MAX	16
#define LABEL_MAX	63
#define MESSAGE_MAX	512
#define HEADER		12
#define TTL_S		3600
#define ROOM		(4u << 20)

/* An address and the type of its record. */
struct answer {
	char label[LABEL_MAX + 1];
	uint8_t type;
	uint8_t size;
	uint8_t address[16];
};

static struct {
	uint8_t message[BATCH][MESSAGE_MAX];
	struct sockaddr_in peer[BATCH];
	struct iovec iov[BATCH];
	struct mmsghdr mm[BATCH];
	struct answer usual;
	struct answer other[OTHERS_MAX];
	unsigned others;
	int fd;
} a;

/* Where the question section ends; 0: it does not. */
static size_t question_end(const uint8_t *p, size_t n)
{
	size_t at = HEADER;

	while (at < n && p[at] != 0)
		at += (size_t)p[at] + 1;
	at += 5;		/* the root, type and class */
	return n > HEADER && at <= n ? at : 0;
}

/* By the first label of the name that begins at @name. */
static const struct answer *answer_of(const uint8_t *name)
{
	for (unsigned i = 0; i < a.others; i++) {
		const char *label = a.other[i].label;

		if (name[0] == strlen(label) &&
		    strncasecmp((const char *)name + 1, label, name[0]) == 0)
			return &a.other[i];
	}
	return &a.usual;
}

/* The message becomes its reply.  Return: its length; 0: no question */
static size_t make_reply(uint8_t *p, size_t n)
{
	uint8_t record[12] = {
		0xc0, HEADER, 0, 1, 0, 1, 0, 0, TTL_S >> 8, TTL_S & 0xff, 0, 4,
	};
	size_t end = question_end(p, n);
	const struct answer *known;
	bool address;

	if (!end || end + sizeof(record) + sizeof(known->address) > MESSAGE_MAX)
		return 0;
	known = answer_of(p + HEADER);
	record[3] = known->type;
	record[11] = known->size;
	address = p[end - 4] == 0 && p[end - 3] == known->type;
	p[2] = 0x84 | (p[2] & 1);		/* QR, AA; RD as asked */
	p[3] = 0x80;				/* RA, NOERROR */
	memset(p + 6, 0, 6);
	p[7] = address;
	if (!address)
		return end;
	memcpy(p + end, record, sizeof(record));
	memcpy(p + end + sizeof(record), known->address, known->size);
	return end + sizeof(record) + known->size;
}

static void ready_to_read(unsigned i)
{
	a.iov[i] = (struct iovec){ a.message[i], MESSAGE_MAX };
	a.mm[i].msg_hdr = (struct msghdr){
		.msg_name = &a.peer[i], .msg_namelen = sizeof(a.peer[i]),
		.msg_iov = &a.iov[i], .msg_iovlen = 1,
	};
}

static void serve_batch(void)
{
	unsigned i, n = 0;
	int got;

	for (i = 0; i < BATCH; i++)
		ready_to_read(i);
	got = recvmmsg(a.fd, a.mm, BATCH, MSG_DONTWAIT, NULL);
	for (i = 0; got > 0 && i < (unsigned)got; i++) {
		size_t size = make_reply(a.message[i], a.mm[i].msg_len);

		if (!size)
			continue;
		a.iov[i].iov_len = size;
		a.mm[n++].msg_hdr = a.mm[i].msg_hdr;
	}
	if (n > 0 && sendmmsg(a.fd, a.mm, n, 0) < 0)
		perror("authority: sendmmsg");
}

/* Return: @text is an address. */
static bool take_address(const char *text, struct answer *to)
{
	bool v6 = strchr(text, ':') != NULL;

	to->type = v6 ? 28 : 1;
	to->size = v6 ? 16 : 4;
	return inet_pton(v6 ? AF_INET6 : AF_INET, text, to->address) == 1;
}

/* Return: @text is LABEL=ADDRESS. */
static bool take_other(const char *text)
{
	struct answer *to = &a.other[a.others];
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : 0;

	if (n == 0 || n > LABEL_MAX || a.others == OTHERS_MAX)
		return false;
	memcpy(to->label, text, n);
	a.others++;
	return take_address(equals + 1, to);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(53) };
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int room = ROOM;

	bool understood = argc >= 3 &&
			  inet_pton(AF_INET, argv[1], &at.sin_addr) == 1 &&
			  take_address(argv[2], &a.usual);

	for (int i = 3; understood && i < argc; i++)
		understood = take_other(argv[i]);
	if (!understood) {
		fputs("usage: authority ADDRESS ANSWER [LABEL=ADDRESS...]\n",
		      stderr);
		return 2;
	}
	a.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (a.fd < 0 || setsockopt(a.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room,
				   sizeof(room)) != 0 ||
	    bind(a.fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		perror("authority");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	p[0].fd = a.fd;
	p[1].fd = STDIN_FILENO;
	while (poll(p, 2, -1) >= 0 || errno == EINTR) {
		if (p[1].revents)
			return 0;	/* whoever started it is gone */
		if (p[0].revents)
			serve_batch();
	}
	perror("authority: poll");
	return 1;
}
