/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h - the subcommands; each takes its own argv and returns an exit code
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#define EXIT_NEGATIVE	1	/* the answer is no */
#define EXIT_USAGE	2	/* wrong usage, or an invalid policy */
#define EXIT_OWN	125	/* run: we failed, the command never started */

#define PLUG_DEFAULT	"/run/penstock/plug.sock"	/* the service's */

int cmd_run(int argc, char **argv);
int cmd_flows(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_upgrade(int argc, char **argv);
int cmd_connect(int argc, char **argv);
int cmd_dns(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif /* CLI_CMD_H */
