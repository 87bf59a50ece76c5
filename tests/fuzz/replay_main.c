/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_main.c - run a fuzz target over its corpus, as a test
 *
 * Stands in for libFuzzer where the compiler has none.  Without arguments the
 * corpus is $top_srcdir/tests/fuzz/corpus/NAME for the program NAME_fuzz;
 * else each argument is a file or a directory.  An empty corpus fails: then
 * something was forgotten.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static unsigned replayed;

static int replay_file(int fd, const char *name)
{
	struct buf input = BUF_INIT(INPUT_MAX);
	void *exact;
	int err = fd_read_all(fd, &input);

	if (err < 0) {
		printf("# %s: %s\n", name, strerror(-err));
		return err;
	}
	/* Exactly as long as the input, so that a sanitizer sees overreads. */
	exact = mem_new(input.n ? input.n : 1);
	if (!exact)
		abort();
	if (input.n > 0)
		memcpy(exact, input.p, input.n);
	printf("# %s\n", name);
	fflush(stdout);
	(void)LLVMFuzzerTestOneInput(exact, input.n);
	replayed++;
	mem_free(exact);
	buf_done(&input);
	return 0;
}

static int replay_dir(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int err = 0;

	if (!dir)
		return -errno;
	while (err == 0 && (e = readdir(dir))) {
		CLEANUP(fd_closep) int file = -1;

		if (e->d_name[0] == '.')
			continue;
		file = openat(fd, e->d_name, O_RDONLY | O_CLOEXEC);
		err = file == -1 ? -errno : replay_file(file, e->d_name);
	}
	closedir(dir);
	return err;
}

static int replay(const char *path)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd == -1 || fstat(fd, &st) == -1)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return replay_dir(fd_take(&fd));
	return replay_file(fd, path);
}

/* The corpus of the program called @argv0. */
static int replay_own(const char *argv0)
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
	return replay(path);
}

int main(int argc, char **argv)
{
	int i, err = 0;

	printf("1..1\n");
	if (argc < 2)
		err = replay_own(argv[0]);
	for (i = 1; i < argc && err == 0; i++)
		err = replay(argv[i]);
	if (err < 0)
		printf("# %s\n", strerror(-err));
	printf("%s 1 - %u inputs were replayed\n",
	       err == 0 && replayed > 0 ? "ok" : "not ok", replayed);
	return err == 0 && replayed > 0 ? 0 : 1;
}
