/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns_lab.h - a namespace of the test's own, in a child process
 *
 * A test runs its body in a child that has left the machine's user and network
 * namespaces, so that nothing it does can send a packet.  The body's asserts
 * count: the child's failure is the test's.
 */
#ifndef TESTS_UNIT_NETNS_LAB_H
#define TESTS_UNIT_NETNS_LAB_H

typedef void lab_fn(void *arg);

/* Does this machine let us make a user and network namespace? */
int lab_works(void);

/* Run @fn in fresh user, network and mount namespaces, as root inside.
 * Return: the child's exit status; 0 when no assert failed */
int lab_run(lab_fn *fn, void *arg);

/* In a lab child: end it as failed with a line on stderr. */
#define LAB_CHECK(cond) lab_check(!!(cond), #cond, __FILE__, __LINE__)
void lab_check(int ok, const char *cond, const char *file, int line);

#endif /* TESTS_UNIT_NETNS_LAB_H */
