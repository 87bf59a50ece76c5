/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_cmd.h - the verbs of `penstock dns`
 */
#ifndef CLI_DNS_CMD_H
#define CLI_DNS_CMD_H

/* Takes its own argv, argv[0] being the verb, and returns an exit code. */
int dns_explain(int argc, char **argv);

#endif /* CLI_DNS_CMD_H */
