/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_test.c - descriptors over a socket, whole reads, sealed texts
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"

struct pair {
	int a, b;
};

static struct pair make_pair(void)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
				    SOCK_NONBLOCK, 0, sv), 0);
	return (struct pair){ sv[0], sv[1] };
}

static void close_pair(struct pair *p)
{
	fd_closep(&p->a);
	fd_closep(&p->b);
}

static void make_pipe(int p[2])
{
	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
}

/* Whether nobody holds the writing end of the pipe any more. */
static bool at_end(int reader)
{
	char c;

	return read(reader, &c, 1) == 0;
}

static void descriptors_arrive_beside_their_message(void **state)
{
	struct pair s = make_pair();
	int p[2], got[FD_PASS_MAX];
	size_t n, nfds;
	char text[16];

	(void)state;
	make_pipe(p);
	assert_int_equal(fd_send_msg(s.a, "hello", 5, p, 2), 0);
	assert_int_equal(fd_recv_msg(s.b, text, sizeof(text), &n, got, &nfds),
			 0);
	assert_int_equal(n, 5);
	assert_memory_equal(text, "hello", 5);
	assert_int_equal(nfds, 2);
	assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(got[1], F_GETFD) & FD_CLOEXEC);
	fd_closep(&p[1]);
	assert_false(at_end(p[0]));
	fd_closep(&got[1]);
	assert_true(at_end(p[0]));
	fd_closep(&got[0]);
	fd_closep(&p[0]);
	close_pair(&s);
}

static void the_end_of_the_stream_is_no_message(void **state)
{
	struct pair s = make_pair();
	int got[FD_PASS_MAX];
	size_t n = 9, nfds = 9;
	char text[16];

	(void)state;
	assert_int_equal(fd_recv_msg(s.b, text, sizeof(text), &n, got, &nfds),
			 -EAGAIN);
	assert_int_equal(n, 9);
	fd_closep(&s.a);
	assert_int_equal(fd_recv_msg(s.b, text, sizeof(text), &n, got, &nfds),
			 0);
	assert_int_equal(n, 0);
	assert_int_equal(nfds, 0);
	assert_int_equal(fd_send_msg(s.b, "x", 1, NULL, 0), -EPIPE);
	close_pair(&s);
}

static void an_empty_or_overfull_message_is_not_sent(void **state)
{
	struct pair s = make_pair();
	int fds[FD_PASS_MAX + 1] = { 0 };

	(void)state;
	assert_int_equal(fd_send_msg(s.a, "", 0, NULL, 0), -EINVAL);
	assert_int_equal(fd_send_msg(s.a, "x", 1, fds, FD_PASS_MAX + 1),
			 -EINVAL);
	close_pair(&s);
}

static void a_full_queue_is_eagain(void **state)
{
	struct pair s = make_pair();
	int err;

	(void)state;
	do {
		err = fd_send_msg(s.a, "x", 1, NULL, 0);
	} while (err == 0);
	assert_int_equal(err, -EAGAIN);
	close_pair(&s);
}

static void a_message_that_was_cut_leaves_no_descriptor(void **state)
{
	struct pair s = make_pair();
	int p[2], got[FD_PASS_MAX];
	size_t n, nfds;
	char text[4];

	(void)state;
	make_pipe(p);
	assert_int_equal(fd_send_msg(s.a, "too long", 8, &p[1], 1), 0);
	fd_closep(&p[1]);
	assert_int_equal(fd_recv_msg(s.b, text, sizeof(text), &n, got, &nfds),
			 -EMSGSIZE);
	assert_true(at_end(p[0]));
	fd_closep(&p[0]);
	close_pair(&s);
}

/* More than FD_PASS_MAX, as a peer that is not ours may send. */
static void send_many(int sock, int fd, size_t n)
{
	union {
		struct cmsghdr align;
		char b[CMSG_SPACE(sizeof(int) * (FD_PASS_MAX + 4))];
	} control = { .b = { 0 } };
	struct iovec iov = { (char[]){ "x" }, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.b,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fds[FD_PASS_MAX + 4];

	for (size_t i = 0; i < n; i++)
		fds[i] = fd;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	assert_int_equal(sendmsg(sock, &msg, 0), 1);
}

static void too_many_descriptors_are_closed_and_refused(void **state)
{
	struct pair s = make_pair();
	int p[2], got[FD_PASS_MAX];
	size_t n, nfds;
	char text[4];

	(void)state;
	make_pipe(p);
	send_many(s.a, p[1], FD_PASS_MAX + 3);
	fd_closep(&p[1]);
	assert_int_equal(fd_recv_msg(s.b, text, sizeof(text), &n, got, &nfds),
			 -EMSGSIZE);
	assert_true(at_end(p[0]));
	fd_closep(&p[0]);
	close_pair(&s);
}

static void a_full_descriptor_table_is_no_half_hand_over(void **state)
{
	struct rlimit was, few;
	struct pair s = make_pair();
	int p[2], got[FD_PASS_MAX];
	size_t n, nfds;
	char text[4];
	int err;

	(void)state;
	make_pipe(p);
	send_many(s.a, p[1], 5);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = (rlim_t)p[1] + 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = fd_recv_msg(s.b, text, sizeof(text), &n, got, &nfds);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(err, -EMSGSIZE);
	fd_closep(&p[1]);
	assert_true(at_end(p[0]));
	fd_closep(&p[0]);
	close_pair(&s);
}

static void reading_all_stops_at_the_maximum(void **state)
{
	static char block[5000];
	struct buf b = BUF_INIT(6000);
	int fd = memfd_create("test", MFD_CLOEXEC);

	(void)state;
	memset(block, 'b', sizeof(block));
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, block, 5000), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(buf_add_str(&b, STR("head")), 0);
	assert_int_equal(fd_read_all(fd, &b), 0);
	assert_int_equal(b.n, 5004);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(fd, &b), -EFBIG);
	assert_int_equal(b.n, 5004);
	b.n = 1000;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	/* Exactly full is not too much. */
	assert_int_equal(fd_read_all(fd, &b), 0);
	assert_int_equal(b.n, 6000);
	buf_done(&b);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	mem_test_fail_at(1);
	assert_int_equal(fd_read_all(fd, &b), -ENOMEM);
	fd_closep(&fd);
	assert_int_equal(fd_read_all(fd, &b), -EBADF);
	buf_done(&b);
}

static void a_text_in_memory_cannot_be_changed(void **state)
{
	struct buf b = BUF_INIT(64);
	int fd = -1;

	(void)state;
	assert_int_equal(fd_memfd("policy", STR("[policy]\n"), &fd), 0);
	assert_int_equal(fd_read_all(fd, &b), 0);
	assert_true(str_eq(buf_str(&b), STR("[policy]\n")));
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_SEAL | F_SEAL_WRITE |
			 F_SEAL_GROW | F_SEAL_SHRINK), F_SEAL_SEAL |
			 F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
	fd_closep(&fd);
	buf_done(&b);
	assert_int_equal(fd_memfd("empty", STR_NONE, &fd), 0);
	fd_closep(&fd);
}

static void nonblocking_is_set_and_cleared(void **state)
{
	int p[2];

	(void)state;
	make_pipe(p);
	assert_int_equal(fd_set_nonblock(p[0], false), 0);
	assert_false(fcntl(p[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblock(p[0], true), 0);
	assert_true(fcntl(p[0], F_GETFL) & O_NONBLOCK);
	fd_closep(&p[0]);
	assert_int_equal(p[0], -1);
	assert_int_equal(fd_set_nonblock(p[0], true), -EBADF);
	assert_int_equal(fd_write_all(p[1], "x", 1), -EPIPE);
	fd_closep(&p[1]);
}

static void the_last_descriptors_are_known_by_their_numbers(void **state)
{
	(void)state;
	assert_false(fd_is_reserved(1000000));
	fd_set_reserve(100, 20);
	assert_false(fd_is_reserved(79));
	assert_true(fd_is_reserved(80));
	assert_false(fd_is_last(89));
	assert_true(fd_is_last(90));
	fd_set_reserve(INT_MAX, 0);
	assert_false(fd_is_reserved(INT_MAX - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_arrive_beside_their_message),
		cmocka_unit_test(the_end_of_the_stream_is_no_message),
		cmocka_unit_test(an_empty_or_overfull_message_is_not_sent),
		cmocka_unit_test(a_full_queue_is_eagain),
		cmocka_unit_test(a_message_that_was_cut_leaves_no_descriptor),
		cmocka_unit_test(too_many_descriptors_are_closed_and_refused),
		cmocka_unit_test(a_full_descriptor_table_is_no_half_hand_over),
		cmocka_unit_test(reading_all_stops_at_the_maximum),
		cmocka_unit_test(a_text_in_memory_cannot_be_changed),
		cmocka_unit_test(nonblocking_is_set_and_cleared),
		cmocka_unit_test(the_last_descriptors_are_known_by_their_numbers),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
