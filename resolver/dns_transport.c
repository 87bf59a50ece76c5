/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_transport.c - what the transports to upstream servers have in common
 */
#include "resolver/dns_transport.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

/*
 * Neither option needs a privilege on a socket that is not bound yet (Linux
 * 5.7), and neither a look-up of the name, which a sealed process cannot make.
 */
int dns_zone_bind(int fd, const char *zone)
{
	unsigned long number;
	int index, err;

	if (!zone[0])
		return 0;
	if (str_to_uint(str_from(zone), INT_MAX, &number) == 0) {
		index = (int)number;
		err = setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &index,
				 sizeof(index));
	} else {
		err = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, zone,
				 (socklen_t)strlen(zone));
	}
	return err < 0 ? -errno : 0;
}
