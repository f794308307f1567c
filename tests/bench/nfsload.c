/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load on an NFS server over TCP: keeps calls under way on some connections, checks each reply, and
 * prints the rate, the latencies and the processor time that the server took. See README.md.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "load.h"

void die(const char *format, ...)
{
	va_list args;

	fputs("nfsload: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static const char usage[] =
	"nfsload [OPTION]... JOB PATH\n"
	"JOB: null getattr lookup access read write create (creates and removes) readdir (with "
	"attributes)\n"
	"PATH: of a writable folder that the server exports\n"
	"  --host ADDRESS      127.0.0.1\n"
	"  --port PORT         2049\n"
	"  --mount-port PORT   of MOUNT, for NFSv3; the same\n"
	"  --rdma-port PORT    the measured calls go there by RDMA (NFSv3, not write); files and "
	"handles come by TCP\n"
	"  --vers 3|4.1|4.2    3\n"
	"  --conns N           connections; 1\n"
	"  --calls N           calls that each connection may have under way; 1\n"
	"  --in-flight N       calls under way on all connections, which take turns; conns times "
	"calls\n"
	"  --seconds T         how long to measure; 2\n"
	"  --count N           measure so many calls instead\n"
	"  --warmup T          seconds before that; 0.5\n"
	"  --size BYTES        of a READ, a WRITE or READDIR's reply; 4096, readdir 65536\n"
	"  --file-size BYTES   16 MiB\n"
	"  --files N           files used; 64, read and write 1\n"
	"  --entries N         of the folder, to be checked by readdir\n"
	"  --stable            WRITE asks for FILE_SYNC\n"
	"  --uid N, --gid N    of AUTH_SYS; 0\n"
	"  --sec krb5|krb5p    measured calls go under Kerberos (NFSv3 over TCP), with the "
	"environment's ticket\n"
	"  --prepare N         under krb5p: measure N calls of one connection, encrypted before\n"
	"  --server-pid PID    process whose time is measured\n"
	"  --idle-pid PID      process that only keeps a processor awake; may be repeated\n"
	"  --cpu N             run on this processor only\n";

enum {
	HOST = 1,
	PORT,
	MOUNT_PORT,
	RDMA_PORT,
	VERS,
	CONNS,
	CALLS,
	IN_FLIGHT,
	SECONDS,
	COUNT,
	WARMUP,
	SIZE,
	FILE_SIZE,
	FILES,
	ENTRIES,
	STABLE,
	UID,
	GID,
	SERVER_PID,
	CPU,
	IDLE_PID,
	SEC,
	PREPARE
};

static const struct option options[] = {
	{ "host", 1, 0, HOST },
	{ "port", 1, 0, PORT },
	{ "mount-port", 1, 0, MOUNT_PORT },
	{ "rdma-port", 1, 0, RDMA_PORT },
	{ "vers", 1, 0, VERS },
	{ "conns", 1, 0, CONNS },
	{ "calls", 1, 0, CALLS },
	{ "in-flight", 1, 0, IN_FLIGHT },
	{ "seconds", 1, 0, SECONDS },
	{ "count", 1, 0, COUNT },
	{ "warmup", 1, 0, WARMUP },
	{ "idle-pid", 1, 0, IDLE_PID },
	{ "size", 1, 0, SIZE },
	{ "file-size", 1, 0, FILE_SIZE },
	{ "files", 1, 0, FILES },
	{ "entries", 1, 0, ENTRIES },
	{ "stable", 0, 0, STABLE },
	{ "uid", 1, 0, UID },
	{ "gid", 1, 0, GID },
	{ "sec", 1, 0, SEC },
	{ "prepare", 1, 0, PREPARE },
	{ "server-pid", 1, 0, SERVER_PID },
	{ "cpu", 1, 0, CPU },
	{ 0 },
};

/* A number of an option, which must lie between least and most. */
static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || v < least || v > most)
		die("%s is not a number from %llu to %llu", text, (unsigned long long)least,
		    (unsigned long long)most);
	return v;
}

static double duration(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0 && v <= 86400))
		die("%s is no time in seconds", text);
	return v;
}

static unsigned minor_of(const char *text)
{
	if (!strcmp(text, "3"))
		return 0;
	if (strcmp(text, "4.1") != 0 && strcmp(text, "4.2") != 0)
		die("there is no version %s", text);
	return (unsigned)(text[2] - '0');
}

static uint32_t service_of(const char *text)
{
	if (strcmp(text, "krb5") != 0 && strcmp(text, "krb5p") != 0)
		die("there is no flavour %s", text);
	return text[4] ? LOAD_KRB5P : LOAD_KRB5;
}

static void set_load(struct options *o, int option, const char *arg)
{
	switch (option) {
	case CONNS:
		o->conns = (unsigned)number(arg, 1, 100000);
		break;
	case CALLS:
		o->calls = (unsigned)number(arg, 1, 4096);
		break;
	case IN_FLIGHT:
		o->in_flight = (unsigned)number(arg, 1, 1u << 30);
		break;
	case SECONDS:
		o->seconds = duration(arg);
		break;
	case COUNT:
		o->count = number(arg, 1, UINT64_MAX);
		break;
	case WARMUP:
		o->warmup = duration(arg);
		break;
	case SIZE:
		o->size = (uint32_t)number(arg, 4, SIZE_MAX_IO);
		break;
	case FILE_SIZE:
		o->file_size = number(arg, SIZE_MAX_IO, 1ull << 40);
		break;
	case FILES:
		o->files = (unsigned)number(arg, 1, 1u << 20);
		break;
	case ENTRIES:
		o->entries = number(arg, 1, UINT64_MAX);
		break;
	case SEC:
		o->service = service_of(arg);
		break;
	case PREPARE:
		o->prepare = (uint32_t)number(arg, 1, 4096);
		break;
	case STABLE:
		o->stable = 2;
		break;
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

static void set_option(struct options *o, int option, const char *arg)
{
	switch (option) {
	case HOST:
		o->host = arg;
		break;
	case PORT:
		o->port = (uint16_t)number(arg, 1, 65535);
		break;
	case MOUNT_PORT:
		o->mount_port = (uint16_t)number(arg, 1, 65535);
		break;
	case RDMA_PORT:
		o->rdma_port = (uint16_t)number(arg, 1, 65535);
		break;
	case VERS:
		o->minor = minor_of(arg);
		break;
	case UID:
		o->uid = (uint32_t)number(arg, 0, UINT32_MAX);
		break;
	case GID:
		o->gid = (uint32_t)number(arg, 0, UINT32_MAX);
		break;
	case SERVER_PID:
		o->server_pid = (int)number(arg, 1, 1 << 30);
		break;
	case CPU:
		o->cpu = (int)number(arg, 0, 1023);
		break;
	case IDLE_PID:
		if (o->nidle == IDLE_MAX)
			die("too many idle processes");
		o->idle[o->nidle++] = (int)number(arg, 1, 1 << 30);
		break;
	default:
		set_load(o, option, arg);
	}
}

static void parse(struct options *o, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(o, option, optarg);
	if (argc - optind != 2) {
		fputs(usage, stderr);
		exit(2);
	}
	o->job = argv[optind];
	o->path = argv[optind + 1];
	if (strlen(o->path) >= 512)
		die("the path is too long");
	if (o->rdma_port && (o->minor || !strcmp(o->job, "write")))
		die("by RDMA there is only NFSv3, and no write");
	if (o->service && (o->minor || o->rdma_port))
		die("under Kerberos there is only NFSv3 over TCP");
	if (o->prepare) {
		if (o->service != LOAD_KRB5P || o->conns > 1)
			die("calls are prepared under krb5p, for one connection");
		o->count = o->prepare;
	}
	if (!o->mount_port)
		o->mount_port = o->port;
	if (!o->in_flight || o->in_flight > o->conns * o->calls)
		o->in_flight = o->conns * o->calls;
	if (!o->size)
		o->size = strcmp(o->job, "readdir") ? 4096 : 65536;
	if (o->size % 4 || o->file_size % SIZE_MAX_IO)
		die("sizes are multiples of 4, of files of 1 MiB");
}

static void choose_job(struct load *l)
{
	l->protocol = l->o.minor ? &protocol_nfs4 : &protocol_nfs3;
	for (l->job = l->protocol->jobs; l->job->name; l->job++)
		if (!strcmp(l->job->name, l->o.job))
			break;
	if (!l->job->name)
		die("there is no job %s", l->o.job);
	if (!l->o.files)
		l->o.files = l->job->data ? 1 : 64;
}

static void connect_all(struct load *l)
{
	struct rlimit files = { .rlim_cur = l->o.conns + 64, .rlim_max = l->o.conns + 64 };
	struct rlimit now;
	unsigned i;

	if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur < files.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &files);
	l->conns = calloc(l->o.conns, sizeof(*l->conns));
	l->files = calloc(l->o.files, sizeof(*l->files));
	if (!l->conns || !l->files)
		die("no memory");
	for (i = 0; i < l->o.files; i++)
		snprintf(l->files[i].name, sizeof(l->files[i].name), "%s.%u",
			 l->job->data ? "data" : "file", i);
	for (i = 0; i < l->o.conns; i++) {
		conn_init(l, &l->conns[i], i);
		if (l->protocol->connect)
			l->protocol->connect(l, &l->conns[i]);
	}
}

static void leave_all(struct load *l)
{
	unsigned i;

	for (i = 0; i < l->o.conns; i++) {
		if (l->protocol->leave)
			l->protocol->leave(l, &l->conns[i]);
		if (l->conns[i].rdma)
			load_rdma_leave(&l->conns[i]);
		conn_release(&l->conns[i]);
	}
	free(l->conns);
	free(l->files);
	free(l->flush);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("processor %d: %s", cpu, strerror(errno));
}

int main(int argc, char **argv)
{
	static struct load l = {
		.o = { .host = "127.0.0.1",
		       .port = 2049,
		       .conns = 1,
		       .calls = 1,
		       .seconds = 2,
		       .warmup = 0.5,
		       .file_size = 16u << 20,
		       .cpu = -1 },
		.address = { .sin_family = AF_INET },
		.epoll = -1,
		.next_xid = 1,
	};
	unsigned i;

	signal(SIGPIPE, SIG_IGN);
	parse(&l.o, argc, argv);
	choose_job(&l);
	if (inet_pton(AF_INET, l.o.host, &l.address.sin_addr) != 1)
		die("%s is no IPv4 address", l.o.host);
	if (l.o.cpu >= 0)
		pin(l.o.cpu);
	data_init();
	connect_all(&l);
	l.protocol->prepare(&l, &l.conns[0].calls[0]);
	for (i = 0; i < l.o.conns && l.protocol->open; i++)
		l.protocol->open(&l, &l.conns[i]);
	if (l.o.service)
		load_gss_start(&l, &l.conns[0].calls[0]);
	load_run(&l);
	leave_all(&l);
	load_prepared_free(&l);
	load_gss_end(&l);
	return 0;
}
