//go:build lwip

// Stacks whose packets have a thread of their own: the model that SoftRDMA
// (APNet'17) calls c1.
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include "own.h"

struct lw_conn *lw_helped;
int32_t lw_threaded;
uint32_t lw_posted;
uint64_t lw_yields, lw_thread_ns;

struct piece {
	uintptr_t data;
	size_t len;
};

// lw_put copies octets for the packet thread, a segment a slot.
long lw_put(struct lw_conn *c, uintptr_t pieces, int n)
{
	const struct piece *v = (const struct piece *)pieces;
	struct lw_sends *q = c->sends;
	uint32_t tail = q->tail, state = LOAD(&c->state);
	if (state & LW_DEAD)
		return -(c->err ? c->err : ECONNRESET);
	if (c->shut)
		return -EPIPE;
	long taken = 0;
	size_t at = 0; // in v[0]
	while (n > 0 && tail - LOAD(&q->head) < LW_SENDS) {
		uint32_t len = 0, most = c->mss;
		uint8_t *to = q->slot[tail % LW_SENDS].data;
		while (n > 0 && len < most) {
			size_t k = v->len - at;
			if (k > most - len)
				k = most - len;
			memcpy(to + len, (const char *)v->data + at, k);
			len += (uint32_t)k;
			if ((at += k) == v->len) {
				v++;
				n--;
				at = 0;
			}
		}
		if (len == 0)
			break;
		q->slot[tail % LW_SENDS].len = len;
		STORE(&q->tail, ++tail);
		taken += (long)len;
	}
	if (taken == 0)
		return -EAGAIN;
	__atomic_add_fetch(&lw_posted, 1, __ATOMIC_RELEASE);
	return taken;
}

// lw_pump sends what waits in the slots of a connection, as far as the window goes.
// The core lock is held.
int lw_pump(struct lw_conn *c)
{
	struct lw_sends *q = c->sends;
	int sent = 0;
	while (q->head != LOAD(&q->tail)) {
		struct tcp_pcb *pcb = c->pcb;
		if (pcb == NULL) {
			STORE(&q->head, q->tail); // nobody will take them
			break;
		}
		uint32_t len = q->slot[q->head % LW_SENDS].len;
		lw_measure(c);
		if (c->room < len || tcp_write(pcb, q->slot[q->head % LW_SENDS].data, (u16_t)len, TCP_WRITE_FLAG_COPY) != ERR_OK)
			break;
		lw_tx_copied += len;
		c->taken += len;
		STORE(&q->head, q->head + 1);
		sent++;
		tcp_output(pcb);
	}
	if (sent > 0) {
		if (c->pcb != NULL)
			lw_acknowledged(c);
		lw_moved(c);
	}
	lw_shut_behind(c);
	return sent;
}

// due tells without the lock whether there is anything to do. The struct of a link is
// never freed.
static int due(uint32_t posted)
{
	for (int i = 0; i < lw_links_end; i++) {
		struct lw_link *l = lw_links[i];
		if (l != NULL && l->mode != LW_INLINE && (LOAD(LOAD(&l->rx_head)) != LOAD(&l->rx_tail) || LOAD(&l->waiting) != 0))
			return 1;
	}
	return LOAD(&lw_posted) != posted || LOAD(&lw_events) > 0;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

// How many looks find nothing before the CPU is offered, and before what was received
// is acknowledged. Arbitrary.
// CLOCK is how many looks there are between two at the thread's clock.
enum { OFFER = 128, ACKNOWLEDGE = 64, CLOCK = 1 << 13 };

// clock_thread reads how long the packet thread ran.
static void clock_thread(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	STORE(&lw_thread_ns, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}

int lw_help(int budget, uint32_t most, uint32_t *events, int max)
{
	static uint32_t posted; // seen; one thread runs this at a time
	static uint32_t looks;
	for (uint32_t idle = 0; idle < most; idle++) {
		int something = due(posted);
		if (something || (LOAD(&lw_dirty) != 0 && idle % ACKNOWLEDGE == ACKNOWLEDGE - 1)) {
			posted = LOAD(&lw_posted);
			sys_lock_tcpip_core();
			lw_batching = 1;
			for (int i = 0; i < lw_links_end; i++) {
				struct lw_link *l = lw_links[i];
				if (l == NULL || l->mode == LW_INLINE)
					continue;
				for (int k = 0; k < budget && l->own->take(l); k++)
					;
				if (l->waiting != 0)
					lw_ripen(l);
				if (l->broken && !l->own->closed)
					lw_link_died(l);
			}
			for (struct lw_conn *c = lw_helped, *next; c != NULL; c = next) {
				next = c->next_helped;
				lw_pump(c);
				if (c->orphan)
					lw_pump_orphan(c);
			}
			if (lw_dirty != 0)
				lw_settle_all(!something);
			int n = lw_collect(events, max);
			lw_flush_all();
			sys_unlock_tcpip_core();
			if (n > 0)
				return n;
			if (something)
				idle = 0;
		}
		if (++looks % CLOCK == 0)
			clock_thread();
		if (idle % OFFER == OFFER - 1) {
			if (LOAD(&lw_threaded) == 0)
				return -1;
			sched_yield();
			__atomic_add_fetch(&lw_yields, 1, __ATOMIC_RELAXED);
		}
		relax();
	}
	return 0;
}
