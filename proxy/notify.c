/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.c - telling systemd how the service is: sd_notify(3), our own
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "proxy/notify.h"

int notify_open(const char *path, int *ret_fd)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep) int fd = -1;
	size_t n = path ? strlen(path) : 0;

	*ret_fd = -1;
	if (n == 0)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || n >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)))
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

void notify_send(int fd, const char *state)
{
	/* Who does not listen will notice that we run some other way. */
	if (fd >= 0)
		(void)!send(fd, state, strlen(state), MSG_NOSIGNAL);
}
