//go:build lwip

// Connections of the raw API. Callbacks only take notes, which turns report.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "own.h"

struct lw_link *lw_links[LW_MAX_LINKS];
uint32_t lw_dirty, lw_events, lw_user_timeout = 60000;
uint64_t lw_tx_copied;

struct lw_conn *lw_conns[LW_MAX_CONNS];
int lw_links_end;
static uint32_t next_conn;
static struct lw_conn *dirty;
static uint32_t queue[2 * LW_MAX_CONNS], queue_tail; // lw_events entries end at queue_tail

// Notes.

static void post(uint32_t what)
{
	queue[queue_tail++ % (2 * LW_MAX_CONNS)] = what;
	STORE(&lw_events, lw_events + 1);
}

void lw_moved(struct lw_conn *c)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST); // against the watcher's store and look
	if (!c->queued && LOAD(&c->watch) != 0) {
		c->queued = 1;
		post(c->id);
	}
}

static void soil(struct lw_conn *c)
{
	if (c->dirty)
		return;
	c->dirty = 1;
	c->next_dirty = dirty;
	dirty = c;
	STORE(&lw_dirty, lw_dirty + 1);
}

// What is unsent blocks what comes next, so that one send begins a segment.
void lw_measure(struct lw_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	uint32_t room = 0;
	// A reference is a pbuf of its own, so that they fill the queue before octets do.
	int most = c->refs ? TCP_SND_QUEUELEN - LW_PIECES : TCP_SND_QUEUELEN / 2;
	if (pcb != NULL && pcb->unsent == NULL && (c->state & LW_CONNECTED) && tcp_sndqueuelen(pcb) < most)
		room = tcp_sndbuf(pcb) >= pcb->mss ? tcp_sndbuf(pcb) : 0;
	STORE(&c->room, room);
}

void lw_acknowledged(struct lw_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	if (pcb != NULL)
		STORE(&c->acked, c->taken - (uint32_t)(pcb->snd_lbb - (c->refs ? lw_held_from(pcb) : pcb->lastack)));
}

static err_t on_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct lw_conn *c = arg;
	(void)pcb;
	(void)err;
	if (p == NULL) {
		STORE(&c->state, c->state | LW_EOF);
		lw_moved(c);
		return ERR_OK;
	}
	uint32_t n = 0, tail = c->tail;
	for (struct pbuf *q = p; q != NULL; q = q->next)
		n++;
	if (n > LW_DESCS - (tail - c->reaped))
		return ERR_MEM; // lwIP keeps it and lets the window close
	for (struct pbuf *q = p; q != NULL; q = q->next) {
		struct lw_desc *d = &c->ring[tail++ % LW_DESCS];
		d->data = q->payload;
		d->len = q->len;
		d->pbuf = q->next == NULL ? p : NULL;
	}
	STORE(&c->tail, tail);
	soil(c);
	lw_moved(c);
	return ERR_OK;
}

static err_t on_sent(void *arg, struct tcp_pcb *pcb, u16_t len)
{
	struct lw_conn *c = arg;
	(void)pcb;
	(void)len;
	lw_acknowledged(c);
	lw_shut_behind(c);
	lw_measure(c);
	if (c->room != 0)
		lw_moved(c);
	return ERR_OK;
}

static int errno_of(err_t e)
{
	switch (e) {
	case ERR_RST:
		return ECONNRESET;
	case ERR_ABRT:
		return ETIMEDOUT;
	case ERR_USE:
		return EADDRINUSE;
	case ERR_MEM:
		return ENOMEM;
	case ERR_RTE:
		return EHOSTUNREACH;
	}
	return ECONNABORTED;
}

static void died(struct lw_conn *c, int err)
{
	c->pcb = NULL; // lwIP frees it
	c->err = err;
	STORE(&c->room, 0);
	STORE(&c->state, c->state | LW_DEAD);
	lw_moved(c);
}

static void on_err(void *arg, err_t err)
{
	struct lw_conn *c = arg;
	if (c != NULL)
		died(c, errno_of(err));
}

void lw_cut(struct lw_conn *c, int err)
{
	struct tcp_pcb *pcb = c->pcb;
	tcp_arg(pcb, NULL);
	tcp_err(pcb, NULL);
	tcp_recv(pcb, NULL);
	tcp_abort(pcb);
	died(c, err);
}

// TCP_USER_TIMEOUT (RFC 5482): what was sent must be acknowledged in that time.
static err_t on_poll(void *arg, struct tcp_pcb *pcb)
{
	struct lw_conn *c = arg;
	if (c == NULL)
		return ERR_OK;
	if (pcb->unacked == NULL && pcb->unsent == NULL) {
		c->stuck = 0;
		return ERR_OK;
	}
	if (!c->stuck || c->stuck_ack != pcb->lastack) {
		c->stuck = 1;
		c->stuck_ack = pcb->lastack;
		c->stuck_at = sys_now();
	} else if (sys_now() - c->stuck_at >= lw_user_timeout) {
		lw_cut(c, ETIMEDOUT);
		return ERR_ABRT;
	}
	return ERR_OK;
}

static struct lw_conn *new_conn(struct tcp_pcb *pcb, struct lw_link *l)
{
	struct lw_conn *c = NULL;
	uint32_t id = next_conn;
	for (int i = 0; i < LW_MAX_CONNS; i++, id++)
		if (lw_conns[id % LW_MAX_CONNS] == NULL) {
			c = aligned_alloc(64, (sizeof *c + 63) / 64 * 64);
			break;
		}
	if (c == NULL)
		return NULL;
	memset(c, 0, offsetof(struct lw_conn, ring));
	c->id = id % LW_MAX_CONNS;
	next_conn = c->id + 1;
	c->pcb = pcb;
	c->link = l;
	c->mode = (uint8_t)l->mode;
	c->sends = NULL;
	if (c->mode == LW_IO) {
		c->sends = aligned_alloc(64, (sizeof *c->sends + 63) / 64 * 64);
		if (c->sends == NULL) {
			free(c);
			return NULL;
		}
		c->sends->tail = c->sends->head = 0;
		c->next_helped = lw_helped;
		lw_helped = c;
	}
	lw_conns[c->id] = c;
	if (c->mode != LW_INLINE)
		STORE(&lw_threaded, lw_threaded + 1);
	l->conns++;
	tcp_nagle_disable(pcb);
	tcp_arg(pcb, c);
	tcp_recv(pcb, on_recv);
	tcp_sent(pcb, on_sent);
	tcp_err(pcb, on_err);
	tcp_poll(pcb, on_poll, 1); // 500 ms
	return c;
}

static void forget(struct lw_conn *c)
{
	if (c->sends != NULL) {
		struct lw_conn **at = &lw_helped;
		while (*at != c)
			at = &(*at)->next_helped;
		*at = c->next_helped;
		free(c->sends);
	}
	if (c->mode != LW_INLINE)
		STORE(&lw_threaded, lw_threaded - 1);
	lw_conns[c->id] = NULL;
	c->link->conns--;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct lw_conn *c = arg;
	(void)err;
	c->mss = tcp_mss(pcb);
	STORE(&c->state, c->state | LW_CONNECTED);
	lw_measure(c);
	lw_moved(c);
	return ERR_OK;
}

struct lw_conn *lw_connect(struct lw_link *l, int peer, int v6, uint16_t local, uint16_t port, int *err)
{
	ip_addr_t to;
	struct lw_conn *c = NULL;
	sys_lock_tcpip_core();
	struct tcp_pcb *pcb = tcp_new_ip_type(v6 ? IPADDR_TYPE_V6 : IPADDR_TYPE_V4);
	*err = -ENOMEM;
	if (pcb != NULL)
		c = new_conn(pcb, l);
	if (c == NULL) {
		if (pcb != NULL)
			tcp_abort(pcb);
		goto out;
	}
	lw_address_of(l, peer, v6, &to);
	c->peer = (uint8_t)peer;
	c->v6 = (uint8_t)v6;
	c->remote_port = port;
	c->watch = 1;
	err_t e = local == 0 ? ERR_OK : tcp_bind(pcb, NULL, local);
	if (e == ERR_OK)
		e = tcp_connect(pcb, &to, port, on_connected);
	lw_flush(l);
	if (e != ERR_OK) {
		*err = -errno_of(e);
		tcp_arg(pcb, NULL);
		tcp_err(pcb, NULL);
		tcp_abort(pcb);
		forget(c);
		free(c);
		c = NULL;
	}
out:
	sys_unlock_tcpip_core();
	return c;
}

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	if (pcb == NULL || err != ERR_OK)
		return ERR_VAL;
	int peer, i = lw_link_at(&pcb->remote_ip, &peer);
	if (i < 0 || lw_events >= LW_MAX_CONNS / 2)
		return ERR_MEM; // lwIP resets it
	struct lw_conn *c = new_conn(pcb, lw_links[i]);
	if (c == NULL)
		return ERR_MEM;
	c->listener = (uint32_t)(uintptr_t)arg;
	c->mss = tcp_mss(pcb);
	c->remote_port = pcb->remote_port;
	c->peer = (uint8_t)peer;
	c->v6 = IP_IS_V6(&pcb->remote_ip);
	c->state = LW_CONNECTED;
	lw_measure(c);
	post(c->id | LW_ACCEPTED);
	return ERR_OK;
}

int lw_listen(uint16_t port, uint32_t listener, void **out)
{
	static const ip_addr_t any = IPADDR_ANY_TYPE_INIT; // of IPv4 and of IPv6
	int ret = -ENOMEM;
	sys_lock_tcpip_core();
	struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_ANY);
	if (pcb != NULL) {
		ip_set_option(pcb, SOF_REUSEADDR); // connections of an earlier listener may be in TIME_WAIT
		err_t e = tcp_bind(pcb, &any, port);
		struct tcp_pcb *l = e == ERR_OK ? tcp_listen_with_backlog(pcb, 255) : NULL;
		if (l == NULL) {
			tcp_abort(pcb);
			ret = e == ERR_OK ? -ENOMEM : -errno_of(e);
		} else {
			tcp_arg(l, (void *)(uintptr_t)listener);
			tcp_accept(l, on_accept);
			*out = l;
			ret = 0;
		}
	}
	sys_unlock_tcpip_core();
	return ret;
}

void lw_unlisten(void *pcb)
{
	sys_lock_tcpip_core();
	tcp_close(pcb);
	sys_unlock_tcpip_core();
}

// lw_reap gives back what the application has consumed.
void lw_reap(struct lw_conn *c)
{
	uint32_t head = LOAD(&c->head);
	uint32_t sum = 0;
	for (; c->reaped != head; c->reaped++) {
		struct lw_desc *d = &c->ring[c->reaped % LW_DESCS];
		sum += (uint32_t)d->len;
		if (d->pbuf != NULL)
			pbuf_free(d->pbuf);
	}
	struct tcp_pcb *pcb = c->pcb;
	if (sum == 0 || pcb == NULL)
		return;
	for (; sum > 0xffff; sum -= 0xffff)
		tcp_recved(pcb, 0xffff);
	tcp_recved(pcb, (u16_t)sum);
	if (pcb->refused_data != NULL && c->tail - c->reaped < LW_DESCS / 2)
		tcp_process_refused_data(pcb);
}

void lw_settle_all(int acknowledge)
{
	struct lw_conn *c = dirty, *next, *keep = NULL;
	uint32_t n = 0;
	dirty = NULL;
	for (; c != NULL; c = next) {
		next = c->next_dirty;
		struct tcp_pcb *before = c->pcb;
		if (before != NULL)
			lw_reap(c);
		struct tcp_pcb *pcb = c->pcb;
		if (pcb != NULL && acknowledge && (pcb->flags & TF_ACK_DELAY)) {
			tcp_ack_now(pcb);
			tcp_output(pcb);
		}
		if (pcb != NULL && (c->reaped != c->tail || (pcb->flags & TF_ACK_DELAY))) {
			c->next_dirty = keep;
			keep = c;
			n++;
		} else {
			c->dirty = 0;
		}
	}
	// Whatever was soiled meanwhile stands in dirty.
	for (c = keep; c != NULL; c = next) {
		next = c->next_dirty;
		c->next_dirty = dirty;
		dirty = c;
	}
	n = 0;
	for (c = dirty; c != NULL; c = c->next_dirty)
		n++;
	STORE(&lw_dirty, n);
}

int lw_turn(int budget, int settle, uint32_t *events, int max)
{
	int n = 0;
	sys_lock_tcpip_core();
	lw_batching = 1;
	for (int i = 0; i < lw_links_end; i++) {
		struct lw_link *l = lw_links[i];
		if (l == NULL || l->mode != LW_INLINE)
			continue;
		for (int k = 0; k < budget && l->own->take(l); k++)
			;
		if (l->waiting != 0)
			lw_ripen(l);
		if (l->broken && !l->own->closed)
			lw_link_died(l);
	}
	if (dirty != NULL)
		lw_settle_all(settle);
	n = lw_collect(events, max);
	lw_flush_all();
	sys_unlock_tcpip_core();
	return n;
}

int lw_collect(uint32_t *events, int max)
{
	int n = 0;
	while (n < max && lw_events > 0) {
		uint32_t e = queue[(queue_tail - lw_events) % (2 * LW_MAX_CONNS)];
		STORE(&lw_events, lw_events - 1);
		if (!(e & LW_ACCEPTED)) {
			if (lw_conns[e] == NULL)
				continue;
			lw_conns[e]->queued = 0;
		}
		events[n++] = e;
	}
	return n;
}

// lw_dispose ends a connection that nobody has any more. The core lock is held.
void lw_dispose(struct lw_conn *c, int abort)
{
	struct tcp_pcb *pcb = c->pcb;
	if (pcb != NULL) {
		tcp_arg(pcb, NULL);
		tcp_recv(pcb, NULL);
		tcp_sent(pcb, NULL);
		tcp_err(pcb, NULL);
		tcp_poll(pcb, NULL, 0);
		if (abort || lw_close_behind(pcb) != ERR_OK)
			tcp_abort(pcb);
		c->pcb = NULL;
	}
	for (uint32_t i = c->reaped; i != c->tail; i++)
		if (c->ring[i % LW_DESCS].pbuf != NULL)
			pbuf_free(c->ring[i % LW_DESCS].pbuf);
	if (c->dirty) {
		struct lw_conn **at = &dirty;
		while (*at != c)
			at = &(*at)->next_dirty;
		*at = c->next_dirty;
		STORE(&lw_dirty, lw_dirty - 1);
	}
	struct lw_link *l = c->link;
	lw_flush(l);
	forget(c);
	lw_link_release(l);
	free(c);
}

void lw_free(struct lw_conn *c, int abort)
{
	sys_lock_tcpip_core();
	STORE(&c->watch, 0);
	if (LOAD(&c->head) != c->tail)
		abort = 1; // RFC 2525 §2.17: octets that nobody will read end in RST
	if (!abort) {
		lw_reap(c);
		if (c->sends != NULL)
			lw_pump(c);
		lw_let_go_of_memory(c);
	}
	if (abort || !lw_keep_for_sends(c))
		lw_dispose(c, abort);
	sys_unlock_tcpip_core();
}
