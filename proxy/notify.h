/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h - telling systemd how the service is: sd_notify(3), our own
 */
#ifndef PROXY_NOTIFY_H
#define PROXY_NOTIFY_H

#include "base/compiler.h"

/**
 * notify_open() - Connect to the socket that NOTIFY_SOCKET names
 * @path:	absolute, or "@" and an abstract name; NULL or "": nobody asks
 * @ret_fd:	-1 when nobody asks
 */
NODISCARD int notify_open(const char *path, int *ret_fd);
/* "READY=1" and kin; void when @fd is -1. */
void notify_send(int fd, const char *state);

#endif /* PROXY_NOTIFY_H */
