//go:build lwip

// The links of the process: what leaves through them, with the impairment, and their life.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "own.h"

static struct lw_link *free_links;

// lw_seed spreads a seed over all bits (splitmix64, Steele 2014): of a small one the first
// draws of xorshift are small, so that the first frames were always lost.
uint64_t lw_seed(uint64_t s)
{
	s += 0x9e3779b97f4a7c15u;
	s = (s ^ s >> 30) * 0xbf58476d1ce4e5b9u;
	s = (s ^ s >> 27) * 0x94d049bb133111ebu;
	s ^= s >> 31;
	return s ? s : 1; // xorshift stands still at 0
}

uint32_t lw_dice(struct lw_link_own *o)
{
	o->random ^= o->random << 13; // xorshift64, Marsaglia 2003
	o->random ^= o->random >> 7;
	o->random ^= o->random << 17;
	return (uint32_t)(o->random >> 16);
}

void lw_output(struct lw_link *l, struct pbuf *p)
{
	struct lw_link_own *o = l->own;
	struct pbuf *late = o->late;
	if (o->imp.loss != 0 && lw_dice(o) < o->imp.loss) {
		l->n.lost++;
		return;
	}
	if (late == NULL && o->imp.reorder != 0 && lw_dice(o) < o->imp.reorder) {
		struct pbuf *q = pbuf_alloc(PBUF_RAW, p->tot_len, PBUF_RAM);
		if (q != NULL) {
			pbuf_copy_partial(p, q->payload, p->tot_len, 0);
			lw_hold(l, q);
			l->n.reordered++;
			return;
		}
	}
	o->put(l, p);
	if (o->imp.duplicate != 0 && lw_dice(o) < o->imp.duplicate) {
		l->n.duplicated++;
		o->put(l, p);
	}
	if (late != NULL)
		lw_let_go(l);
}

// A link ends when nothing uses it any more: its memory may still be read.
void lw_link_release(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	if (!o->closed || o->held > 0 || l->conns > 0)
		return;
	STORE(&l->rx_head, &l->rx_tail); // nothing ever comes
	o->unmap(l);
	if (o->late != NULL)
		pbuf_free(o->late);
	free(o);
	l->own = NULL;
	l->next_free = free_links;
	free_links = l;
}

// The struct of a link is never freed, only used again: a poller may look at one that
// is just ending.
struct lw_link *lw_link_new(void)
{
	struct lw_link *l = free_links;
	if (l == NULL)
		return calloc(1, sizeof *l);
	free_links = l->next_free;
	memset(&l->n, 0, sizeof l->n);
	l->broken = l->conns = 0;
	l->waiting = 0;
	return l;
}

int lw_link_enter(struct lw_link *l)
{
	for (uint32_t i = 0; i < LW_MAX_LINKS; i++)
		if (lw_links[i] == NULL) {
			l->index = i;
			lw_links[i] = l;
			if ((int)i >= lw_links_end)
				lw_links_end = (int)i + 1;
			return 1;
		}
	return 0;
}

void lw_link_died(struct lw_link *l)
{
	for (int i = 0; i < LW_MAX_CONNS; i++)
		if (lw_conns[i] != NULL && lw_conns[i]->link == l && lw_conns[i]->pcb != NULL)
			lw_cut(lw_conns[i], ECONNRESET);
	for (int i = 0; i < LW_MAX_CONNS; i++)
		if (lw_conns[i] != NULL && lw_conns[i]->link == l && lw_conns[i]->orphan)
			lw_dispose(lw_conns[i], 1);
}

void lw_link_close(struct lw_link *l)
{
	sys_lock_tcpip_core();
	l->broken = 1;
	lw_link_died(l);
	lw_forget_orphans(l);
	lw_links[l->index] = NULL;
	lw_forget_delayed(l);
	l->own->closed = 1;
	lw_link_release(l);
	sys_unlock_tcpip_core();
}

int lw_sleep(int helped)
{
	int more = 0;
	sys_lock_tcpip_core();
	for (int i = 0; i < LW_MAX_LINKS; i++)
		if (lw_links[i] != NULL && (lw_links[i]->mode != LW_INLINE) == helped)
			more |= lw_links[i]->own->doze(lw_links[i]) || lw_links[i]->waiting != 0;
	sys_unlock_tcpip_core();
	return more || lw_events > 0;
}
