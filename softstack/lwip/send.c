//go:build lwip

// What an application sends, in line or handed to the stack's thread.
#include <errno.h>
#include "own.h"

struct piece {
	uintptr_t data;
	size_t len;
};

const struct lw_own lw_all = {0, SIZE_MAX};

long lw_take(struct lw_conn *c, uintptr_t pieces, int n, struct lw_own own)
{
	const struct piece *v = (const struct piece *)pieces;
	long taken = 0;
	lw_batching = 1;
	// What was consumed is given back behind what leaves, as nobody waits for it then; a window
	// that has shrunk is opened first, so that what leaves says so.
	int reap = c->dirty;
	if (reap && c->pcb != NULL && ((struct tcp_pcb *)c->pcb)->rcv_wnd < TCP_WND / 2) {
		lw_reap(c);
		reap = 0;
	}
	struct tcp_pcb *pcb = c->pcb;
	if (pcb == NULL) {
		taken = -(c->err ? c->err : ECONNRESET);
		goto out;
	}
	if (c->shut) {
		taken = -EPIPE;
		goto out;
	}
	lw_measure(c);
	uint32_t room = c->room;
	for (int i = 0; i < n && room > 0; i++) {
		int copied = v[i].data - own.at < own.size;
		const char *p = (const char *)v[i].data;
		for (size_t left = v[i].len; left > 0 && room > 0;) {
			uint32_t k = left < room ? (uint32_t)left : room;
			if (k > 0x7fff)
				k = 0x7fff;
			c->refs |= !copied;
			err_t e = tcp_write(pcb, p, (u16_t)k, copied ? TCP_WRITE_FLAG_COPY : 0);
			if (e == ERR_MEM) {
				room = 0;
				break;
			}
			if (e != ERR_OK) {
				taken = -EPIPE;
				goto out;
			}
			p += k;
			left -= k;
			room -= k;
			taken += k;
			*(copied ? &lw_tx_copied : &lw_tx_referenced) += k;
		}
	}
	c->taken += (uint64_t)taken;
	tcp_output(pcb);
	if (c->pcb != NULL) {
		lw_acknowledged(c);
		lw_measure(c);
	}
	if (reap)
		lw_reap(c);
	if (taken == 0)
		taken = -EAGAIN;
out:
	lw_flush(c->link);
	return taken;
}

long lw_sendv(struct lw_conn *c, uintptr_t iov, int n)
{
	if (c->mode == LW_IO)
		return lw_put(c, iov, n);
	sys_lock_tcpip_core();
	long taken = lw_take(c, iov, n, lw_all);
	sys_unlock_tcpip_core();
	return taken;
}

long lw_send(struct lw_conn *c, uintptr_t data, size_t len)
{
	struct piece one = {data, len};
	return lw_sendv(c, (uintptr_t)&one, 1);
}

int lw_unsent(struct lw_conn *c)
{
	int n = 0;
	sys_lock_tcpip_core();
	struct tcp_pcb *pcb = c->pcb;
	if (pcb != NULL)
		n = (int)(uint32_t)(pcb->snd_lbb - pcb->snd_nxt);
	if (pcb != NULL && c->sends != NULL)
		for (uint32_t i = c->sends->head; i != LOAD(&c->sends->tail); i++)
			n += (int)c->sends->slot[i % LW_SENDS].len;
	sys_unlock_tcpip_core();
	return n < 0 ? 0 : n;
}

int lw_shut(struct lw_conn *c)
{
	int ret = 0;
	sys_lock_tcpip_core();
	struct tcp_pcb *pcb = c->pcb;
	if (pcb == NULL)
		ret = -ENOTCONN;
	else if (c->shut == 0) {
		c->shut = 1;
		if (c->sends != NULL)
			lw_pump(c);
		ret = lw_shut_behind(c);
	}
	STORE(&c->room, 0);
	lw_flush(c->link);
	sys_unlock_tcpip_core();
	return ret;
}
