/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_main.c - run a fuzz target over its corpus, as a test
 *
 * Stands in for libFuzzer where the compiler has none, so that a corpus is a
 * regression test in every build.  Without arguments the corpus is
 * $top_srcdir/tests/fuzz/corpus/NAME for the program NAME_fuzz, and beside each
 * file a bounded number of texts made from it is tried, the same ones in every
 * run: cut short, with a byte changed, taken out or doubled.  With arguments
 * each one is a file or a directory, tried as it is.  An empty corpus fails:
 * then something was forgotten.
 *
 * What is tried is first written to the file PROGRAM.input, which stays behind
 * when the target ends the process: PROGRAM PROGRAM.input does it again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#define INPUT_MAX	(4u << 20)
#define FILES_MAX	1000
/* For each target: texts made from the corpus, and bytes in all of them. */
#define MADE_MAX	6000u
#define MADE_BYTES_MAX	(8u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct corpus {
	struct buf *file;
	size_t n;
};

static int kept = -1;		/* what is tried, in case it is the last */
static unsigned tried;

static void try_input(struct str input)
{
	/* Exactly as long as the input, so that a sanitizer sees overreads. */
	uint8_t *exact = mem_new(input.n ? input.n : 1);

	REQUIRE(exact);
	if (input.n > 0)
		memcpy(exact, input.p, input.n);
	if (kept >= 0) {
		REQUIRE(ftruncate(kept, 0) == 0);
		REQUIRE(lseek(kept, 0, SEEK_SET) == 0);
		REQUIRE(fd_write_all(kept, exact, input.n) == 0);
	}
	(void)LLVMFuzzerTestOneInput(exact, input.n);
	mem_free(exact);
	tried++;
}

static int load_file(struct corpus *c, int fd)
{
	struct buf *grown;

	if (c->n == FILES_MAX)
		return -E2BIG;
	grown = mem_grow(c->file, c->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->file = grown;
	c->file[c->n] = BUF_INIT(INPUT_MAX);
	return fd_read_all(fd, &c->file[c->n++]);
}

static int load_dir(struct corpus *c, int fd)
{
	struct dirent **e;
	int n, err = 0;

	/* In the order of names, so that every run is the same. */
	n = scandirat(fd, ".", &e, NULL, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		CLEANUP(fd_closep) int file = -1;

		if (err == 0 && e[i]->d_name[0] != '.') {
			file = openat(fd, e[i]->d_name, O_RDONLY | O_CLOEXEC);
			err = file == -1 ? -errno : load_file(c, file);
		}
		free(e[i]);
	}
	free(e);
	return err;
}

static int load(struct corpus *c, const char *path)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int err;

	if (fd == -1 || fstat(fd, &st) == -1)
		err = -errno;
	else if (S_ISDIR(st.st_mode))
		err = load_dir(c, fd);
	else
		err = load_file(c, fd);
	if (err < 0)
		printf("# %s: %s\n", path, strerror(-err));
	return err;
}

/* The corpus of the program called @argv0. */
static int load_own(struct corpus *c, const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	const char *name = slash ? slash + 1 : argv0;
	const char *end = strstr(name, "_fuzz");
	const char *top = getenv("top_srcdir");
	char path[4096];
	int n;

	n = snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%.*s",
		     top ? top : ".", end ? (int)(end - name) : 0, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return load(c, path);
}

/* xorshift32: the same numbers in every run, which is what a test needs. */
static uint32_t next_number(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* One change to the @input.n > 0 bytes of @input, in @made. */
static void try_changed(struct str input, struct buf *made, uint32_t *seed)
{
	static const char often[] = "\0\xff\x80\n\r\t :;,.=[]/\"\\0%";
	size_t at = next_number(seed) % input.n;
	uint32_t kind = next_number(seed) % 8, value = next_number(seed);
	char c = input.p[at];
	size_t keep = 1;

	buf_reset(made);
	REQUIRE(buf_add(made, input.p, at) == 0);
	if (kind < 3)
		c = often[value % (sizeof(often) - 1)];
	else if (kind < 5)
		c ^= (char)(1u << value % 8);
	else if (kind == 5)
		c = (char)value;
	else if (kind == 6)
		keep = 0;
	else
		keep = 2;
	for (size_t i = 0; i < keep; i++)
		REQUIRE(buf_add_char(made, c) == 0);
	REQUIRE(buf_add(made, input.p + at + 1, input.n - at - 1) == 0);
	try_input(buf_str(made));
}

/* Every length of @input there is room for among @most; the last ones first. */
static void try_cut(struct str input, size_t most)
{
	size_t step = input.n / MAX(most, 1) + 1;

	for (size_t n = input.n; n > 0; n -= MIN(n, step))
		try_input(str_make(input.p, n - 1));
}

static void try_made(const struct corpus *c)
{
	struct buf made = BUF_INIT(INPUT_MAX + 1);
	uint32_t seed = 0x2545f491;

	for (size_t i = 0; i < c->n; i++) {
		struct str input = buf_str(&c->file[i]);
		size_t most = MIN(MADE_MAX, MADE_BYTES_MAX / (input.n + 1));

		most = most / c->n / 2 + 1;
		if (input.n == 0)
			continue;
		try_cut(input, most);
		for (size_t k = 0; k < most; k++)
			try_changed(input, &made, &seed);
	}
	buf_done(&made);
}

/* PROGRAM.input in @path; a directory that cannot be written is no fault. */
static void keep_input(const char *program, char *path, size_t size)
{
	int n = snprintf(path, size, "%s.input", program);

	if (n > 0 && (size_t)n < size)
		kept = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

int main(int argc, char **argv)
{
	struct corpus c = { NULL, 0 };
	char path[4096] = "";
	int err = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%d\n", argc < 2 ? 2 : 1);
	if (argc < 2)
		err = load_own(&c, argv[0]);
	for (int i = 1; i < argc && err == 0; i++)
		err = load(&c, argv[i]);
	if (argc < 2)
		keep_input(argv[0], path, sizeof(path));
	if (err == 0 && c.n > 0) {
		for (size_t i = 0; i < c.n; i++)
			try_input(buf_str(&c.file[i]));
		printf("ok 1 - %u files were replayed\n", tried);
		tried = 0;
		if (argc < 2) {
			try_made(&c);
			printf("ok 2 - %u texts made from them were tried\n",
			       tried);
		}
	} else {
		printf("not ok 1 - there is no corpus\n");
		err = -ENOENT;
	}
	if (kept >= 0)
		unlink(path);
	fd_closep(&kept);
	for (size_t i = 0; i < c.n; i++)
		buf_done(&c.file[i]);
	mem_free(c.file);
	return err ? 1 : 0;
}
