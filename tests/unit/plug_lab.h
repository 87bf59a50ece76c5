/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_lab.h - what a launcher would bring, made in a namespace beside ours
 */
#ifndef TESTS_UNIT_PLUG_LAB_H
#define TESTS_UNIT_PLUG_LAB_H

#include "proxy/ctl_proto.h"

/* Run @fn in the network namespace of "a sandbox" (made at first use; each
 * @which is another), then come back.  After lab_enter(). */
typedef void plug_lab_fn(void *arg);
void plug_lab_in(unsigned which, plug_lab_fn *fn, void *arg);

/* Every socket of a plug, right in each respect, born in sandbox @which;
 * records and policy stay -1. */
void plug_lab_sockets(unsigned which, int fd[PLUG_FDS]);
void plug_lab_close(int fd[PLUG_FDS]);

/* A message that announces the descriptors of @fd which are there. */
struct plug_open plug_lab_open(const int fd[PLUG_FDS]);

#endif /* TESTS_UNIT_PLUG_LAB_H */
