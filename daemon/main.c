/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ringnfsd(8): reads its settings, starts the server, and then only waits for signals. SIGTERM and
 * SIGINT stop it, SIGHUP reads the exports again, SIGUSR1 writes the counters to the log, SIGUSR2 runs the program anew (daemon/hand_over.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "daemon/daemon_check.h"
#include "daemon/daemon_instance.h"
#include "daemon/cluster_part.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_server.h"
#include "daemon/hand_over.h"
#include "daemon/limits.h"
#include "daemon/logs.h"
#include "daemon/process.h"
#include "lib/clock.h"
#include "lib/log_ids.h"

#define RELOAD_SECONDS 85 /* seconds; below the 90 that systemd gives ExecReload= */

#define NFS_CONF "/etc/nfs.conf" /* of the kernel's server, wherever this one is installed */

#define END_SECONDS 12 /* seconds for calls under way; less than service managers wait */

static const enum rn_level levels[] = {
	[CFG_LOG_ERROR] = RN_ERROR, [CFG_LOG_WARNING] = RN_WARNING, [CFG_LOG_NOTICE] = RN_NOTICE,
	[CFG_LOG_INFO] = RN_INFO,   [CFG_LOG_DEBUG] = RN_DEBUG,
};

/* Blocked before any thread starts, so that only the main thread takes them. */
static void block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ,
	       SIG_IGN); /* a file-size limit is an error of one WRITE, not the daemon's end */
}

/* Descriptors 0 to 2 must be taken, or a socket becomes somebody's standard error. */
static void hold_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

/* Messages go to standard error in a form for terminals: without time and journal prefix. */
static void terminal_write(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	(void)ctx;
	(void)level;
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

static int main_check_config(const struct cfg_settings *settings)
{
	const struct rn_logger log = { .level = RN_NOTICE, .write = terminal_write };

	return check_config(settings, &log) ? EX_CONFIG : EX_OK;
}

enum main_next { MAIN_SERVE, MAIN_STOP, MAIN_RESTART };

static enum main_next take_signal(struct server *s, const sigset_t *set,
				  const struct rn_logger *log)
{
	const struct timespec now = { 0 };
	int sig = sigtimedwait(set, NULL, &now);

	if (sig == SIGTERM || sig == SIGINT) {
		rn_notice(log, "stopping");
		return MAIN_STOP;
	}
	if (sig == SIGUSR2)
		return MAIN_RESTART;
	if (sig == SIGHUP)
		server_reload(s);
	else if (sig == SIGUSR1)
		server_log_counters(s, RN_NOTICE);
	return MAIN_SERVE;
}

/* Each turn takes a signal before it runs a task, so that no queue of tasks delays signals. Without a descriptor for
 * signals they are looked for once a second. */
static enum main_next main_serve(struct server *s, const sigset_t *set, const struct rn_logger *log)
{
	const int signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	struct pollfd p[] = { { .fd = signals, .events = POLLIN },
			      { .fd = server_tasks_fd(s), .events = POLLIN } };
	enum main_next next;

	while ((next = take_signal(s, set, log)) == MAIN_SERVE) {
		if (poll(p, 2, 1000) > 0 && p[1].revents && !p[0].revents)
			server_run_task(s);
	}
	if (signals >= 0)
		close(signals);
	return next;
}

/* The command line, and the program's path at the start, to run it again: a package's upgrade puts a new file in its place. */
struct main_program {
	char path[PATH_MAX];
	char *const *argv;
};

/* Ends the server and runs the program anew. Returns if it cannot be run. */
static int main_restart(struct server *server, const struct main_program *p, bool may_save,
			const struct rn_logger *log)
{
	struct image_writer *w = NULL, *listeners = NULL;
	const char *why = "the next program cannot read it";
	int rc = may_save ? image_write(&w) : 0;

	/* Whoever has started the server starts it again then. The next program ends this thread. */
	deadline_start(log, END_SECONDS, EX_TEMPFAIL);
	if (w) {
		why = server_save(server, w);
		if (!why)
			rc = hand_over_run(p->path, p->argv, w);
	}
	if (rc)
		why = strerror(-rc);
	rn_notice(log, "an ordinary restart: the state cannot be handed over: %s", why);
	image_writer_free(w);
	if (may_save && image_write(&listeners) == 0)
		server_save_listeners(server, why, listeners);
	(void)server_stop(server);
	rc = hand_over_run(p->path, p->argv, listeners);
	rn_err(log, "cannot run %s: %s", p->path, strerror(-rc));
	return EX_TEMPFAIL;
}

/* Serves until a signal ends it; goes on after a restart that was refused. */
static int main_serve_all(struct server *server, const sigset_t *set, const struct main_program *p,
			  const struct rn_logger *log)
{
	while (main_serve(server, set, log) == MAIN_RESTART) {
		rn_notice(log, "restarting");
		/* Reads the exports while this program still serves: it tells clients what a change of them takes away. */
		const int rc =
			server_reload(server) ? -ENOEXEC : hand_over_try(p->path, p->argv, log);

		if (rc == -ENOEXEC) {
			server_restart_refused(server);
			continue;
		}
		sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
			   (unsigned long long)(rn_now_ns() / 1000));
		return main_restart(server, p, rc == 0, log);
	}
	/* The deadline holds even if the service manager takes no messages. */
	deadline_start(log, END_SECONDS, EX_OK);
	sd_notify(0, "STOPPING=1");
	server_log_counters(server, RN_DEBUG);
	server_leave_state(server);
	const bool all = server_stop(server);

	rn_notice(log, "stopped");
	if (!all)
		process_leave(EX_OK);
	return EX_OK;
}

/*
 * The keeper of the program before keeps the locks of a cluster's member, and sees an end of the process only. So a member that cannot go on
 * ends, and whoever has started it starts it again: true.
 */
static bool main_must_end(const struct cfg_settings *settings, struct hand_over *from)
{
	return from ? cluster_part_has_saved(hand_over_image(from)) : *settings->cluster.name;
}

static int main_start(const struct cfg_settings *settings, struct logs *logs,
		      struct hand_over *from, int fault, struct server **server)
{
	const struct rn_logger *log = &logs->of[LOG_DAEMON];
	int rc = -EBADMSG;

	if (fault)
		rn_err(log, "cannot go on from the image of the program before: %s",
		       image_fault_text(fault));
	else
		rc = server_start(settings, logs, hand_over_image(from), server);
	if (rc && (fault || from)) {
		const bool ends = main_must_end(settings, from);

		rn_err(log, "cannot go on from the program before: %s",
		       ends ? "ends, and has to be started again" : "this is an ordinary start");
		hand_over_end(from);
		return ends ? rc : server_start(settings, logs, NULL, server);
	}
	hand_over_end(from);
	return rc;
}

static int main_run(const struct cfg_settings *settings, const struct main_program *program)
{
	struct logs logs;
	const struct rn_logger *const log = &logs.of[LOG_DAEMON];
	struct server *server = NULL;
	struct hand_over *from;
	const int fault = hand_over_receive(&from);
	sigset_t set;

	log_sink_init(&logs, levels[settings->server.log_level]);
	umask(0); /* modes come from clients */
	block_signals(&set);
	rn_notice(log, PACKAGE_STRING " starts");
	int rc = main_start(settings, &logs, from, fault, &server);
	if (rc == -ERESTART) {
		rc = hand_over_run(program->path, program->argv, NULL);
		rn_err(log, "cannot run %s: %s", program->path, strerror(-rc));
	}
	if (rc < 0)
		return EX_UNAVAILABLE;
	rc = server_tick_by_itself(server);
	if (rc) {
		rn_err(log, "cannot start: %s", strerror(-rc));
		if (!server_stop(server))
			process_leave(EX_UNAVAILABLE);
		return EX_UNAVAILABLE;
	}
	sd_notify(0, "READY=1");
	rn_log_event(log, RN_NOTICE, &(struct rn_log_event){ .id = RN_ID_READY }, "ready");
	return main_serve_all(server, &set, program, log);
}

int main(int argc, char **argv)
{
	struct main_program program = { .argv = argv };
	struct cfg_settings settings = { 0 };
	struct cfg_diags diags;
	int status = EX_OK;

	if (readlink("/proc/self/exe", program.path, sizeof(program.path) - 1) < 0)
		snprintf(program.path, sizeof(program.path), "%s", argv[0]);
	hold_standard_fds();
	cfg_diags_init(&diags);
	enum options_action action = options_load(argc, argv, &settings, &diags);
	if ((action == OPTIONS_RUN || action == OPTIONS_CHECK_CONFIG) &&
	    (memory_need_check(&settings, limits_ram(), &diags) < 0 ||
	     cfg_compare_nfs_conf(&settings, NFS_CONF, &diags) < 0))
		action = OPTIONS_FAILED;
	cfg_diags_print(&diags, stderr);
	cfg_diags_free(&diags);
	if (action == OPTIONS_FAILED)
		status = EX_CONFIG;
	else if (action == OPTIONS_PRINT_CONFIG)
		cfg_print_origins(&settings, stdout);
	else if (action == OPTIONS_IMAGE_FORMATS)
		hand_over_print_formats();
	else if (action == OPTIONS_CHECK_CONFIG)
		status = main_check_config(&settings);
	else if (action == OPTIONS_RELOAD)
		status = instance_ask_reload(settings.server.state_dir, RELOAD_SECONDS)
				 ? EX_UNAVAILABLE
				 : EX_OK;
	else if (action == OPTIONS_RUN)
		status = main_run(&settings, &program);
	cfg_free(&settings);
	return status;
}
