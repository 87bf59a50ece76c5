/* SPDX-License-Identifier: Apache-2.0 */
/*
 * authority.c - the server behind the DNS bench: every name has one address
 *
 *	authority ADDRESS ANSWER
 *
 * Listens at UDP port 53 of ADDRESS (IPv4), says "ready", and answers each
 * question for an A record with ANSWER and every other one with no data, until
 * standard input ends.  As cheap as can be, since it shares the machine with
 * who is measured: batches, and no parsing beyond the end of the name.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH		64
#define MESSAGE_MAX	512
#define HEADER		12
#define TTL_S		3600
#define ROOM		(4u << 20)

static struct {
	uint8_t message[BATCH][MESSAGE_MAX];
	struct sockaddr_in peer[BATCH];
	struct iovec iov[BATCH];
	struct mmsghdr mm[BATCH];
	uint8_t answer[4];
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

/* The message becomes its reply.  Return: its length; 0: no question */
static size_t make_reply(uint8_t *p, size_t n)
{
	static const uint8_t record[12] = {
		0xc0, HEADER, 0, 1, 0, 1, 0, 0, TTL_S >> 8, TTL_S & 0xff, 0, 4,
	};
	size_t end = question_end(p, n);
	bool address;

	if (!end || end + sizeof(record) + sizeof(a.answer) > MESSAGE_MAX)
		return 0;
	address = p[end - 4] == 0 && p[end - 3] == 1;
	p[2] = 0x84 | (p[2] & 1);		/* QR, AA; RD as asked */
	p[3] = 0x80;				/* RA, NOERROR */
	memset(p + 6, 0, 6);
	p[7] = address;
	if (!address)
		return end;
	memcpy(p + end, record, sizeof(record));
	memcpy(p + end + sizeof(record), a.answer, sizeof(a.answer));
	return end + sizeof(record) + sizeof(a.answer);
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

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(53) };
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int room = ROOM;

	if (argc != 3 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], a.answer) != 1) {
		fputs("usage: authority ADDRESS ANSWER\n", stderr);
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
