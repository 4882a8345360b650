//go:build lwip

// A link in shared memory. The other side is another process of the same user: what
// it writes is checked where it could lead out of the mapping. A packet that lwIP
// reads in place may still be changed below it, which only the same user can do.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "own.h"

struct lw_packet {
	struct pbuf_custom pc;
	struct lw_link *link;
	uint32_t slot;
};

// rings_size is in whole pages, before the frames.
static size_t rings_size(uint32_t slots)
{
	size_t rings = sizeof(struct lw_dir) + slots * (sizeof(union lw_entry) + sizeof(uint32_t));
	return (rings + 4095) / 4096 * 4096;
}

static size_t dir_size(uint32_t slots)
{
	return rings_size(slots) + (size_t)slots * LW_SLOT;
}

size_t lw_shm_size(uint32_t slots) { return 2 * dir_size(slots); }

static void ring_bell(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	// A store before and a load behind must not change places: lw_sleep does it the
	// other way round.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (LOAD(&o->tx->asleep) == 0 || __atomic_exchange_n(&o->tx->asleep, 0, __ATOMIC_ACQ_REL) == 0 || o->bell < 0)
		return;
	l->n.bells++;
	if (send(o->bell, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		// A full socket has bells enough; a closed one is noticed by its reader.
	}
}

// few is how many slots may be away before the ring of free ones is looked at: a
// small circulating set stays in the caches. Arbitrary.
#define few 32

static void ring_put(struct lw_link *l, struct pbuf *p)
{
	struct lw_link_own *o = l->own;
	if (o->closed || l->broken)
		return;
	if (o->slots - o->spares > (o->slots / 2 < few ? o->slots / 2 : few)) {
		uint32_t head = LOAD(&o->tx->freed);
		if (head - o->tx_freed_tail > o->slots - o->spares) {
			l->broken = 1;
			return;
		}
		for (; o->tx_freed_tail != head; o->tx_freed_tail++) {
			uint32_t s = o->tx_freed[o->tx_freed_tail & (o->slots - 1)];
			if (s >= o->slots) {
				l->broken = 1;
				return;
			}
			o->spare[o->spares++] = s;
		}
	}
	if (o->spares == 0 || p->tot_len > LW_SLOT) {
		l->n.tx_dropped++;
		STORE(&o->tx->dropped, l->n.tx_dropped);
		return;
	}
	uint32_t slot = o->spare[--o->spares];
	uint8_t *to = o->tx_frames + (size_t)slot * LW_SLOT;
	if (p->next == NULL)
		memcpy(to, p->payload, p->len);
	else
		pbuf_copy_partial(p, to, p->tot_len, 0);
	union lw_entry e = {{o->tx_sent + 1, (uint16_t)slot, p->tot_len}};
	STORE(&o->tx_used[o->tx_sent++ & (o->slots - 1)].word, e.word);
	l->n.tx_frames++;
	l->n.tx_octets += p->tot_len;
	ring_bell(l);
}

static void give_back(struct lw_link *l, uint32_t slot)
{
	struct lw_link_own *o = l->own;
	o->rx_freed[o->rx_freed_head & (o->slots - 1)] = slot;
	STORE(&o->rx->freed, ++o->rx_freed_head);
}

// A packet that lay in a slot is read.
static void packet_free(struct pbuf *p)
{
	struct lw_packet *k = (struct lw_packet *)p;
	give_back(k->link, k->slot);
	k->link->own->held--;
	lw_link_release(k->link);
}

// adjust is a checksum after words of what it covers have changed (RFC 1624, equation 3).
static void adjust(uint8_t *at, const uint16_t *from, const uint16_t *to, int words)
{
	uint16_t sum;
	memcpy(&sum, at, 2);
	uint32_t s = (uint16_t)~sum;
	for (int i = 0; i < words; i++)
		s += (uint16_t)~from[i] + to[i];
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	sum = (uint16_t)~s;
	memcpy(at, &sum, 2);
}

// readdress makes the addresses of a packet this side's: every process calls itself
// by one address and each link's other end by one of that link's, so nobody needs to
// agree on any, and no peer can speak for another's link.
static int readdress(struct lw_link *l, uint8_t *b, uint32_t len)
{
	uint16_t old[16], now[16];
	ip_addr_t from, to;
	int v6 = b[0] >> 4 == 6;
	if (v6 ? len < 60 || b[6] != 6 : len < 40 || b[0] != 0x45 || b[9] != 6)
		return 0; // TCP without options of IP is all that leaves a stack like this one
	lw_address_of(l, 0, v6, &from);
	lw_our_address(&to, v6);
	if (v6) {
		memcpy(old, b + 8, 32);
		memcpy(now, ip_2_ip6(&from)->addr, 16);
		memcpy(now + 8, ip_2_ip6(&to)->addr, 16);
		memcpy(b + 8, now, 32);
		adjust(b + 40 + 16, old, now, 16);
		return 1;
	}
	memcpy(old, b + 12, 8);
	memcpy(now, &ip_2_ip4(&from)->addr, 4);
	memcpy(now + 2, &ip_2_ip4(&to)->addr, 4);
	memcpy(b + 12, now, 8);
	adjust(b + 10, old, now, 4);
	adjust(b + 20 + 16, old, now, 4);
	return 1;
}

// expect has lookers wait for the next entry.
static void expect(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	STORE(&l->rx_head, &o->rx_used[o->rx_taken & (o->slots - 1)].turn);
	STORE(&l->rx_tail, o->rx_taken + 1 - o->slots);
}

// fetch has the lines of a short frame, which the other CPU wrote just now, come together and
// not one after the other; the first to be written, see readdress.
static void fetch(const uint8_t *b, uint32_t len)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*b));
#else
	__builtin_prefetch(b, 1);
#endif
	for (uint32_t at = 64; at < len && at < 4 * 64; at += 64)
		__builtin_prefetch(b + at, 0);
}

static int ring_take(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	union lw_entry e = {.word = LOAD(&o->rx_used[o->rx_taken & (o->slots - 1)].word)};
	uint32_t turn = o->rx_taken + 1, slot = e.slot, len = e.len;
	if (e.turn == turn - o->slots || l->broken || o->closed || (e.turn == 0 && turn != 0)) // 0: the peer begins
		return 0;
	if (e.turn != turn || slot >= o->slots || len > LW_SLOT || len == 0) {
		l->broken = 1;
		return 0;
	}
	uint8_t *b = o->rx_frames + (size_t)slot * LW_SLOT;
	fetch(b, len);
	o->rx_taken++;
	expect(l);
	l->n.rx_frames++;
	l->n.rx_octets += len;
	struct pbuf *p = NULL;
	// An application that does not read must not keep the ring: the last quarter is
	// for packets that are copied out at once.
	if (o->two_copies || (uint32_t)o->held >= o->slots / 4 * 3) {
		p = pbuf_alloc(PBUF_RAW, (u16_t)len, PBUF_RAM);
		if (p != NULL) {
			memcpy(p->payload, b, len);
			l->n.rx_copied += len;
			b = p->payload;
		}
		give_back(l, slot);
	} else {
		struct lw_packet *k = &o->packets[slot];
		if (k->link != NULL && k->pc.pbuf.ref != 0) { // the peer sent a slot that it does not own
			l->broken = 1;
			return 0;
		}
		k->link = l;
		k->slot = slot;
		k->pc.custom_free_function = packet_free;
		p = pbuf_alloced_custom(PBUF_RAW, (u16_t)len, PBUF_REF, &k->pc, b, LW_SLOT);
		if (p == NULL)
			give_back(l, slot);
		else
			o->held++;
	}
	if (p == NULL)
		return 1;
	if (!readdress(l, b, len)) {
		pbuf_free(p);
		return 1;
	}
	lw_input(l, p);
	return 1;
}

static int ring_doze(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	__atomic_store_n(&o->rx->asleep, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(l->rx_head, __ATOMIC_SEQ_CST) == o->rx_taken + 1 && !l->broken;
}

static void ring_wake(struct lw_link *l) { STORE(&l->own->rx->asleep, 0); }

// A poller may still look at the entry that the peer wrote: the ring's pages stay, empty.
static void ring_unmap(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	uint8_t *from = o->mem, *ring = (uint8_t *)o->rx, *behind = ring + rings_size(o->slots), *end = from + o->size;
	if (mmap(ring, (size_t)(behind - ring), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == ring) {
		if (ring > from)
			munmap(from, (size_t)(ring - from));
		munmap(behind, (size_t)(end - behind));
	}
	free(o->spare);
	free(o->packets);
}

static void no_unmap(struct lw_link *l) { (void)l; } // the mapping is still the caller's

static struct lw_dir *lay(uint8_t *at, uint32_t slots, union lw_entry **used, uint32_t **freed, uint8_t **frames)
{
	struct lw_dir *d = (struct lw_dir *)at;
	*used = (union lw_entry *)(d + 1);
	*freed = (uint32_t *)(*used + slots);
	*frames = at + dir_size(slots) - (size_t)slots * LW_SLOT;
	return d;
}

struct lw_link *lw_link_shm(void *mem, uint32_t slots, int end, int bell, int two_copies, int mode, const struct lw_impair *imp)
{
	struct lw_link *l = NULL;
	struct lw_link_own *o = calloc(1, sizeof *o);
	uint32_t *spare = calloc(slots, sizeof *spare);
	struct lw_packet *packets = calloc(slots, sizeof *packets);
	sys_lock_tcpip_core();
	if (o != NULL && spare != NULL && packets != NULL)
		l = lw_link_new();
	if (l == NULL)
		goto fail;
	o->put = ring_put;
	o->take = ring_take;
	o->doze = ring_doze;
	o->wake = ring_wake;
	o->unmap = ring_unmap;
	o->mem = mem;
	o->size = lw_shm_size(slots);
	o->slots = slots;
	o->bell = bell;
	o->two_copies = two_copies;
	l->mode = mode;
	o->imp = *imp;
	o->random = lw_seed(imp->seed * 2 + (uint64_t)end); // the ends differ
	o->spare = spare;
	o->packets = packets;
	for (uint32_t i = 0; i < slots; i++)
		spare[i] = slots - 1 - i;
	o->spares = slots;
	uint8_t *a = mem, *b = a + dir_size(slots);
	o->tx = lay(end ? b : a, slots, &o->tx_used, &o->tx_freed, &o->tx_frames);
	o->rx = lay(end ? a : b, slots, &o->rx_used, &o->rx_freed, &o->rx_frames);
	// Each side writes where it produces alone; until it has, lookers of the other find less.
	for (uint32_t i = 0; i < slots; i++)
		STORE(&o->tx_used[i].turn, i + 1 - slots);
	l->own = o;
	expect(l);
	if (lw_link_enter(l)) {
		sys_unlock_tcpip_core();
		return l;
	}
	o->closed = 1;
	o->unmap = no_unmap;
	lw_link_release(l);
	o = NULL;
fail:
	sys_unlock_tcpip_core();
	free(o);
	free(spare);
	free(packets);
	return NULL;
}

void lw_counts_of(struct lw_link *l, struct lw_counts *out)
{
	sys_lock_tcpip_core();
	*out = l->n;
	if (l->own != NULL && l->own->rx != NULL)
		out->rx_missed = LOAD(&l->own->rx->dropped);
	if (l->own != NULL && l->own->xsk != NULL)
		out->rx_missed = lw_xsk_dropped(l);
	sys_unlock_tcpip_core();
}
