//go:build lwip

// The way of a packet from a link into the stack, at once or after a delay, and of one that
// is held back on its way out.
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>
#include "own.h"

// lw_arrived is a packet that the impairment delays.
struct lw_arrived {
	struct pbuf *p;
	uint64_t due; // ns of CLOCK_MONOTONIC
	struct lw_arrived *next;
};

static uint64_t nanoseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// reopen makes room for a peer that takes the port of an old connection again: where ours waits
// in TIME-WAIT and the SYN begins behind all that the old one used, the wait is over (RFC 9293
// §3.6.1, MAY-2). lwIP has no such rule and answers with the old acknowledgement for two minutes,
// while the peer sees its port as free. The TCP header is at at, behind the addresses.
static void reopen(const uint8_t *b, int at)
{
	uint16_t from, to;
	uint32_t seq;
	memcpy(&from, b + at, 2);
	memcpy(&to, b + at + 2, 2);
	memcpy(&seq, b + at + 4, 4);
	for (struct tcp_pcb *pcb = tcp_tw_pcbs; pcb != NULL; pcb = pcb->next) {
		if (pcb->remote_port != ntohs(from) || pcb->local_port != ntohs(to) || (int32_t)(ntohl(seq) - pcb->rcv_nxt) < 0)
			continue;
		if (at == 20 ? IP_IS_V6(&pcb->remote_ip) || memcmp(&ip_2_ip4(&pcb->remote_ip)->addr, b + 12, 4) != 0
			     : !IP_IS_V6(&pcb->remote_ip) || memcmp(ip_2_ip6(&pcb->remote_ip)->addr, b + 8, 16) != 0)
			continue;
		tcp_abort(pcb); // which of one in TIME-WAIT says nothing to the peer
		return;
	}
}

// enter hands a packet to the stack: in line, or through lwIP's mailbox, which drops what
// it has no room for.
static void enter(struct lw_link *l, struct pbuf *p)
{
	const uint8_t *b = p->payload;
	int at = p->len >= 40 && b[0] == 0x45 ? 20 : p->len >= 60 && b[0] >> 4 == 6 && b[6] == 6 ? 40 : 0;
	if (at != 0 && (b[at + 13] & (TCP_SYN | TCP_ACK)) == TCP_SYN && tcp_tw_pcbs != NULL)
		reopen(b, at);
	if (l->mode != LW_SEQUENTIAL) {
		ip_input(p, &lw_netif);
		return;
	}
	if (tcpip_inpkt(p, &lw_netif, ip_input) != ERR_OK) {
		l->n.refused++;
		pbuf_free(p);
	}
}

// lw_input takes a packet that arrived.
void lw_input(struct lw_link *l, struct pbuf *p)
{
	struct lw_link_own *o = l->own;
	if (o->imp.delay == 0 && o->imp.jitter == 0) {
		enter(l, p);
		return;
	}
	struct lw_arrived *a = malloc(sizeof *a);
	if (a == NULL) {
		pbuf_free(p);
		return;
	}
	uint64_t due = nanoseconds() + o->imp.delay;
	if (o->imp.jitter != 0)
		due += (uint64_t)((unsigned __int128)o->imp.jitter * lw_dice(o) >> 32);
	if (due < o->due)
		due = o->due; // order stays
	o->due = due;
	*a = (struct lw_arrived){p, due, NULL};
	if (o->first == NULL)
		o->last = &o->first;
	*o->last = a;
	o->last = &a->next;
	l->n.delayed++;
	STORE(&l->waiting, l->waiting + 1);
}

// A frame that nothing overtakes leaves after a millisecond: it is late, and not lost.
enum { OVERTAKE = 1000000 };

// lw_hold keeps a frame back until the next one has left.
void lw_hold(struct lw_link *l, struct pbuf *p)
{
	l->own->late = p;
	l->own->late_due = nanoseconds() + OVERTAKE;
	STORE(&l->waiting, l->waiting + 1);
}

void lw_let_go(struct lw_link *l)
{
	struct pbuf *p = l->own->late;
	l->own->late = NULL;
	STORE(&l->waiting, l->waiting - 1);
	l->own->put(l, p);
	pbuf_free(p);
}

// lw_ripen hands on what waited long enough.
void lw_ripen(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	uint64_t now = nanoseconds();
	if (o->late != NULL && o->late_due <= now)
		lw_let_go(l);
	while (o->first != NULL && o->first->due <= now) {
		struct lw_arrived *a = o->first;
		o->first = a->next;
		STORE(&l->waiting, l->waiting - 1);
		enter(l, a->p);
		free(a);
	}
}

void lw_forget_delayed(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	while (o->first != NULL) {
		struct lw_arrived *a = o->first;
		o->first = a->next;
		pbuf_free(a->p);
		free(a);
	}
	if (o->late != NULL)
		pbuf_free(o->late);
	o->late = NULL;
	STORE(&l->waiting, 0);
}
