//go:build cgo && linux

// the clock of PingPong. A reading is the processor's time stamp counter where the
// kernel tells time by it, which says that it is steady and the same on all CPUs; else
// it is CLOCK_MONOTONIC's ns. vb_ns makes ns of a reading: outside of what is timed.
// A clock_gettime of the counter is an instruction too, with a call, a lock and a
// multiplication around it, that cost more than ten ns, and ten times that where code
// is translated.

#ifndef VERBS_CLOCK_H
#define VERBS_CLOCK_H

#include <stdint.h>

extern struct vb_clock {
	char settled, counter; // counter: readings are the counter's
	uint64_t at;           // a reading, and its time
	int64_t ns;
	uint64_t rate; // ns of one count, in units of 2^-32
} vb_clock;

// vb_clock_start notes when counting began, once. vb_clock_settle finds the rate: it
// waits until 5 ms after the start.
void vb_clock_start(void);
void vb_clock_settle(void);

static inline void vb_clock_settled(void) {
	if (!__atomic_load_n(&vb_clock.settled, __ATOMIC_ACQUIRE))
		vb_clock_settle();
}

int64_t vb_monotonic(void);

// vb_reading may be read a little too early, as a processor orders it, but not late:
// for a start.
static inline uint64_t vb_reading(const struct vb_clock *c) {
#ifdef __x86_64__
	if (c->counter)
		return __builtin_ia32_rdtsc();
#endif
	return vb_monotonic();
}

// vb_settled is not read before what was loaded to get there: for an end.
static inline uint64_t vb_settled(const struct vb_clock *c) {
#ifdef __x86_64__
	if (c->counter)
		__builtin_ia32_lfence();
#endif
	return vb_reading(c);
}

static inline int64_t vb_ns(const struct vb_clock *c, uint64_t reading) {
	if (!c->counter)
		return reading;
	return c->ns + (int64_t)((unsigned __int128)(reading - c->at) * c->rate >> 32);
}

#endif
