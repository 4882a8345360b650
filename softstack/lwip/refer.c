//go:build lwip

// Sending by reference. lwIP has such octets in pbufs of their own, PBUF_ROM, behind the one of
// the TCP header, and reads them whenever it sends the segment.
#include <errno.h>
#include <string.h>
#include <arpa/inet.h>
#include "own.h"

uint64_t lw_tx_referenced;

long lw_sendv_ref(struct lw_conn *c, uintptr_t iov, int n, uintptr_t at, size_t size)
{
	struct lw_own own = {at, size};
	sys_lock_tcpip_core();
	long taken = lw_take(c, iov, n, own);
	sys_unlock_tcpip_core();
	return taken;
}

static uint32_t begin(const struct tcp_seg *s) { return ntohl(s->tcphdr->seqno); }

// lw_held_from is the first octet of the oldest segment that is kept to be sent again. What the
// peer has of it is not free: it is read with the rest of the segment. Where something was sent
// again the older of the two queues is either.
uint32_t lw_held_from(const struct tcp_pcb *pcb)
{
	uint32_t from = pcb->snd_lbb;
	if (pcb->unsent != NULL)
		from = begin(pcb->unsent);
	if (pcb->unacked != NULL && (int32_t)(begin(pcb->unacked) - from) < 0)
		from = begin(pcb->unacked);
	return from;
}

// copy_out has no pbuf of a segment lie in memory that is not lwIP's. The first one, of the
// header, never does.
static int copy_out(struct tcp_seg *s)
{
	for (struct pbuf *q = s->p; q->next != NULL; q = q->next) {
		struct pbuf *ref = q->next;
		if (ref->type_internal & PBUF_TYPE_FLAG_STRUCT_DATA_CONTIGUOUS)
			continue;
		struct pbuf *own = pbuf_alloc(PBUF_RAW, ref->len, PBUF_RAM);
		if (own == NULL)
			return 0;
		memcpy(own->payload, ref->payload, ref->len);
		lw_tx_copied += ref->len;
		own->next = ref->next;
		own->tot_len = ref->tot_len;
		q->next = own;
		ref->next = NULL;
		ref->tot_len = ref->len;
		pbuf_free(ref);
	}
	return 1;
}

void lw_let_go_of_memory(struct lw_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	if (!c->refs)
		return;
	c->refs = 0;
	if (pcb == NULL)
		return; // its segments went with it
	struct tcp_seg *of[] = {pcb->unacked, pcb->unsent};
	for (int i = 0; i < 2; i++)
		for (struct tcp_seg *s = of[i]; s != NULL; s = s->next)
			if (!copy_out(s)) {
				lw_cut(c, ENOMEM);
				return;
			}
}

void lw_detach(struct lw_conn *c)
{
	sys_lock_tcpip_core();
	lw_let_go_of_memory(c);
	lw_flush(c->link);
	sys_unlock_tcpip_core();
}

// lw_references gives the library an octet and looks where it has it: that of Debian copies
// (LWIP_NETIF_TX_SINGLE_PBUF), whatever headers this was compiled with.
int lw_references(void)
{
	static const char octet = 'r';
	int yes = 0;
	sys_lock_tcpip_core();
	struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_V4);
	if (pcb != NULL) {
		pcb->state = ESTABLISHED; // in no list of them, so that it is never sent
		if (tcp_write(pcb, &octet, 1, 0) == ERR_OK)
			yes = pcb->unsent->p->next != NULL && pcb->unsent->p->next->payload == &octet;
		pcb->state = CLOSED;
		tcp_abort(pcb);
	}
	sys_unlock_tcpip_core();
	return yes;
}
