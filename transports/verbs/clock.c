//go:build cgo && linux

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib.h"

struct vb_clock vb_clock;

int64_t vb_monotonic(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char started;

#ifdef __x86_64__

// settling is how long the rate is measured. A pair is off by some 20 ns, and by 300
// where code is translated: that makes 1 in 10000 at worst.
enum { SETTLING = 5000000 };

// told is whether the kernel tells time by the counter.
static int told(void) {
	char name[16] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	if (!f)
		return 0;
	int n = fscanf(f, "%15s", name);
	fclose(f);
	return n == 1 && !strcmp(name, "tsc");
}

// pair reads both clocks: the closest of a few, since anything may come in between.
static void pair(uint64_t *at, int64_t *ns) {
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 16; i++) {
		uint64_t from = __builtin_ia32_rdtsc();
		int64_t t = vb_monotonic();
		uint64_t took = __builtin_ia32_rdtsc() - from;
		if (took < best) {
			best = took;
			*at = from + took / 2;
			*ns = t;
		}
	}
}

static void start(void) {
	if (!started && told())
		pair(&vb_clock.at, &vb_clock.ns);
	started = 1;
}

static void settle(void) {
	uint64_t at = 0;
	int64_t ns = 0, left;
	if (!vb_clock.at)
		return;
	while ((left = vb_clock.ns + SETTLING - vb_monotonic()) > 0)
		nanosleep(&(struct timespec){.tv_nsec = left}, NULL);
	pair(&at, &ns);
	vb_clock.rate = ((unsigned __int128)(ns - vb_clock.ns) << 32) / (at - vb_clock.at);
	vb_clock.counter = 1;
}

#else

static void start(void) { started = 1; }
static void settle(void) {}

#endif

void vb_clock_start(void) {
	pthread_mutex_lock(&mutex);
	start();
	pthread_mutex_unlock(&mutex);
}

void vb_clock_settle(void) {
	pthread_mutex_lock(&mutex);
	if (!vb_clock.settled) {
		start();
		settle();
		__atomic_store_n(&vb_clock.settled, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&mutex);
}

int64_t vb_clock_now(int *counter) {
	vb_clock_settled();
	*counter = vb_clock.counter;
	return vb_ns(&vb_clock, vb_reading(&vb_clock));
}
