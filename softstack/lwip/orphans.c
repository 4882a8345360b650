//go:build lwip

// Connections that their application has closed and lwIP still has: what was sent is on its
// way, or sent again, and TIME-WAIT (RFC 9293 §3.6) waits for what is late.
#include <errno.h>
#include "own.h"

static int of_link(const struct tcp_pcb *pcb, const struct lw_link *l)
{
	int peer;
	return lw_link_at(&pcb->remote_ip, &peer) == (int)l->index;
}

// lw_link_unacknowledged tells whether anything that was sent, the end of a stream too, waits
// for its acknowledgement: with the link it would be lost, and close(2) has promised it.
// With a port, of connections that have it here.
int lw_link_unacknowledged(const struct lw_link *l, uint16_t port)
{
	int yes = 0;
	sys_lock_tcpip_core();
	for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb != NULL && !yes; pcb = pcb->next)
		yes = (pcb->unacked != NULL || pcb->unsent != NULL) && (port == 0 || pcb->local_port == port) && of_link(pcb, l);
	sys_unlock_tcpip_core();
	return yes;
}

static void forget(struct tcp_pcb *pcb, const struct lw_link *l)
{
	for (struct tcp_pcb *next; pcb != NULL; pcb = next) {
		next = pcb->next;
		if (of_link(pcb, l))
			tcp_abort(pcb);
	}
}

// lw_forget_orphans: nothing of an old peer comes any more, and the next one may have its
// addresses. The connections that an application has were cut before.
void lw_forget_orphans(const struct lw_link *l)
{
	forget(tcp_active_pcbs, l);
	forget(tcp_tw_pcbs, l);
}

// Of a segment that the window has no room for lwIP 2.1.3 sends a part, and leaves its FIN on
// both parts (tcp_split_unsent_seg): a peer that takes the first one sees the end of the stream
// and never the rest. So an end goes behind what is unsent, never with it.

static err_t close_now(struct tcp_pcb *pcb)
{
	tcp_recv(pcb, NULL);
	tcp_sent(pcb, NULL);
	tcp_poll(pcb, NULL, 0);
	if (tcp_close(pcb) == ERR_OK)
		return ERR_OK;
	tcp_abort(pcb);
	return ERR_ABRT;
}

// A peer that never opens its window does not keep an orphan longer than this, in milliseconds.
enum { PATIENCE = 100000 };

static err_t on_orphan_poll(void *arg, struct tcp_pcb *pcb)
{
	if (pcb->unsent == NULL)
		return close_now(pcb);
	if (sys_now() - (u32_t)(uintptr_t)arg < PATIENCE)
		return ERR_OK;
	tcp_abort(pcb);
	return ERR_ABRT;
}

static err_t on_orphan_sent(void *arg, struct tcp_pcb *pcb, u16_t len)
{
	(void)arg;
	(void)len;
	return pcb->unsent == NULL ? close_now(pcb) : ERR_OK;
}

static err_t on_orphan_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	(void)arg;
	(void)err;
	if (p == NULL)
		return ERR_OK; // the peer has ended too
	pbuf_free(p);
	tcp_abort(pcb); // RFC 2525 §2.17: nobody will read it
	return ERR_ABRT;
}

err_t lw_close_behind(struct tcp_pcb *pcb)
{
	if (pcb->unsent == NULL || (pcb->state != ESTABLISHED && pcb->state != CLOSE_WAIT))
		return tcp_close(pcb); // the end is not due, or was sent
	tcp_arg(pcb, (void *)(uintptr_t)sys_now());
	tcp_recv(pcb, on_orphan_recv);
	tcp_sent(pcb, on_orphan_sent);
	tcp_poll(pcb, on_orphan_poll, 1); // 500 ms
	return ERR_OK;
}

int lw_shut_behind(struct lw_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	if (c->shut != 1 || pcb == NULL || pcb->unsent != NULL || (c->sends != NULL && c->sends->head != LOAD(&c->sends->tail)))
		return 0;
	c->shut = 2;
	return tcp_shutdown(pcb, 0, 1) == ERR_OK ? 0 : -ENOBUFS;
}

// What an application has sent through slots of c1 and the window has no room for goes on when
// there is room, from the packet thread.
int lw_keep_for_sends(struct lw_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	if (c->sends == NULL || pcb == NULL || c->sends->head == LOAD(&c->sends->tail))
		return 0;
	c->orphan = 1;
	c->orphan_at = sys_now();
	tcp_recv(pcb, on_orphan_recv);
	return 1;
}

void lw_pump_orphan(struct lw_conn *c)
{
	int late = sys_now() - c->orphan_at >= PATIENCE;
	if (late || c->pcb == NULL || c->sends->head == LOAD(&c->sends->tail))
		lw_dispose(c, late);
}
