/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_cmd.h - the verbs of `penstock policy`
 */
#ifndef CLI_POLICY_CMD_H
#define CLI_POLICY_CMD_H

/* Each takes its own argv, argv[0] being the verb, and returns an exit code. */
int policy_check(int argc, char **argv);
int policy_explain(int argc, char **argv);
int policy_test(int argc, char **argv);
int policy_diff(int argc, char **argv);
int policy_learn(int argc, char **argv);
int policy_show(int argc, char **argv);

#endif /* CLI_POLICY_CMD_H */
