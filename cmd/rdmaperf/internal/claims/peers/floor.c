/*
 * floor: what two C processes reach over loopback TCP with non-blocking sockets,
 * both sides spinning, each pinned to a CPU of its own. It is the reference that
 * every software path is read against; it does no more than the sockets ask for.
 *
 *   floor latency SIZE SECONDS   ping-pong; half round trip in ns
 *   floor stream  SIZE SECONDS [BUFFERS]   messages one way; bytes per second at the
 *                                receiver. Both sides go through that many buffers in
 *                                turn, as a verified stream does; with one, the default,
 *                                all copies may stay in the L2 cache.
 *
 * The result is one line of JSON on stdout. The process forks its peer and waits
 * for it; an alarm ends both when something hangs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_S = 10, BIN_NS = 5, BINS = 1 << 20 }; /* bins reach 5 ms of round trip */

static void fail(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* pin puts the caller on the which-th CPU that it may use. */
static void pin(int which)
{
	cpu_set_t may, one;
	int cpu;

	if (sched_getaffinity(0, sizeof may, &may))
		fail("sched_getaffinity");
	if (CPU_COUNT(&may) < 2) {
		fprintf(stderr, "floor: two spinning processes need two CPUs, %d may be used\n", CPU_COUNT(&may));
		exit(1);
	}
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && which-- == 0)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one))
		fail("sched_setaffinity");
}

/* map returns zeroed memory whose pages are all there before the clock runs. */
static void *map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

/* send_all and recv_all spin until n bytes have gone or come; recv_all returns 0
 * at the end of the stream. */
static void send_all(int fd, const char *buf, size_t n)
{
	while (n > 0) {
		ssize_t k = send(fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k > 0) {
			buf += k;
			n -= (size_t)k;
		} else if (k < 0 && errno != EAGAIN && errno != EINTR) {
			fail("send");
		}
	}
}

static int recv_all(int fd, char *buf, size_t n)
{
	while (n > 0) {
		ssize_t k = recv(fd, buf, n, MSG_DONTWAIT);

		if (k > 0) {
			buf += k;
			n -= (size_t)k;
		} else if (k == 0) {
			return 0;
		} else if (errno != EAGAIN && errno != EINTR) {
			fail("recv");
		}
	}
	return 1;
}

/* halfway is the half round trip in ns below which the q-th part of n samples lies. */
static double halfway(const uint32_t *bins, uint64_t n, double q)
{
	uint64_t want = (uint64_t)(q * (double)n), seen = 0;
	int i;

	for (i = 0; i < BINS - 1; i++)
		if ((seen += bins[i]) > want)
			break;
	return (i + 0.5) * BIN_NS / 2;
}

static void latency_client(int fd, char *buf, size_t size, double seconds)
{
	uint32_t *bins = map(BINS * sizeof *bins);
	uint64_t start, end, last, n = 0, min = UINT64_MAX;

	start = now_ns() + (uint64_t)(seconds * 1e8); /* a tenth is warm-up */
	end = start + (uint64_t)(seconds * 1e9);
	for (last = now_ns(); last < end;) {
		uint64_t t, rtt, bin;

		send_all(fd, buf, size);
		if (!recv_all(fd, buf, size))
			fail("peer gone");
		t = now_ns();
		rtt = t - last;
		last = t;
		if (t < start)
			continue;
		bin = rtt / BIN_NS;
		bins[bin < BINS ? bin : BINS - 1]++;
		if (rtt < min)
			min = rtt;
		n++;
	}
	printf("{\"name\":\"latency\",\"size_bytes\":%zu,\"count\":%llu,\"min_ns\":%.1f,\"p50_ns\":%.1f,\"p99_ns\":%.1f}\n",
	       size, (unsigned long long)n, (double)min / 2, halfway(bins, n, 0.5), halfway(bins, n, 0.99));
}

static void latency_server(int fd, char *buf, size_t size)
{
	while (recv_all(fd, buf, size))
		send_all(fd, buf, size);
}

/* stream_client sends for a little longer than the receiver measures. */
static void stream_client(int fd, char *buf, size_t size, size_t buffers, double seconds)
{
	size_t i = 0;
	uint64_t end = now_ns() + (uint64_t)((seconds * 1.1) * 1e9);

	while (now_ns() < end)
		send_all(fd, buf + i++ % buffers * size, size);
}

static void stream_server(int fd, char *buf, size_t size, size_t buffers, double seconds)
{
	size_t i = 0;
	uint64_t start = 0, first = now_ns(), t = first, n = 0;

	while (recv_all(fd, buf + i++ % buffers * size, size)) {
		t = now_ns();
		if (start)
			n++;
		else if (t - first > (uint64_t)(seconds * 1e8))
			start = t;
	}
	if (!n)
		fail("no message arrived inside the window");
	printf("{\"name\":\"%s\",\"size_bytes\":%zu,\"buffers\":%zu,\"count\":%llu,\"bytes_per_second\":%.0f}\n",
	       buffers > 1 ? "spread" : "stream", size, buffers, (unsigned long long)n, (double)n * (double)size * 1e9 / (double)(t - start));
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof addr;
	int one = 1, listener, fd, status, stream;
	long size = argc >= 4 ? atol(argv[2]) : 0, buffers = argc == 5 ? atol(argv[4]) : 1;
	double seconds = argc >= 4 ? atof(argv[3]) : 0;
	char *buf;
	pid_t peer;

	if (argc < 4 || argc > 5 || size < 1 || buffers < 1 || buffers > 1024 || size > (1 << 30) / buffers || seconds <= 0 || seconds > 600 ||
	    (strcmp(argv[1], "latency") && strcmp(argv[1], "stream")) || (buffers > 1 && *argv[1] == 'l')) {
		fprintf(stderr, "usage: floor latency SIZE SECONDS, or floor stream SIZE SECONDS [BUFFERS]\n");
		return 2;
	}
	stream = !strcmp(argv[1], "stream");
	buf = map((size_t)(size * buffers));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len))
		fail("listen");

	peer = fork();
	if (peer < 0)
		fail("fork");
	alarm((unsigned)(seconds * 1.1) + GRACE_S);
	pin(peer == 0);
	if (peer == 0) { /* the side that dials: it sends first and is the client */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&addr, len))
			fail("connect");
	} else {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			fail("accept");
	}
	close(listener);
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		fail("TCP_NODELAY");
	if (peer == 0) {
		if (stream)
			stream_client(fd, buf, (size_t)size, (size_t)buffers, seconds);
		else
			latency_client(fd, buf, (size_t)size, seconds);
		return fflush(stdout) ? 1 : 0;
	}
	if (stream)
		stream_server(fd, buf, (size_t)size, (size_t)buffers, seconds);
	else
		latency_server(fd, buf, (size_t)size);
	if (fflush(stdout) || waitpid(peer, &status, 0) < 0)
		fail("wait");
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
