//go:build lwip

// A link through an AF_XDP socket (Documentation/networking/af_xdp.rst): IPv4 packets
// in Ethernet frames of one interface. lwIP knows every peer by an address of ours, so
// that hosts need not agree on any; on the wire are the real ones.
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "own.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

enum { FRAME = 2048, HEADER = 14, PEERS = 64, KICK_AT = 32 };

struct xring {
	uint32_t *producer, *consumer, *flags;
	void *desc;
	uint32_t mask, cached;
	void *map;
	size_t size;
};

struct xpacket {
	struct pbuf_custom pc;
	struct lw_link *link;
	uint64_t addr;
};

struct xpeer {
	uint32_t ip; // network order; 0 for none
	uint8_t mac[6];
};

struct lw_xsk {
	int fd;
	uint8_t *umem;
	size_t size;
	uint32_t frames;
	struct xring rx, tx, fill, done;
	uint64_t *spare; // frames to send
	uint32_t spares, pending;
	struct xpacket *packets;
	struct xpeer peer[PEERS];
	uint32_t ip;
	uint8_t mac[6];
	int unsummed; // the other end is this kernel, which may leave checksums out
};

static int map_ring(struct xring *r, int fd, const struct xdp_ring_offset *o, uint64_t at, uint32_t n, size_t each)
{
	r->size = o->desc + n * each;
	r->map = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return -errno;
	}
	r->producer = (uint32_t *)((char *)r->map + o->producer);
	r->consumer = (uint32_t *)((char *)r->map + o->consumer);
	r->flags = (uint32_t *)((char *)r->map + o->flags);
	r->desc = (char *)r->map + o->desc;
	r->mask = n - 1;
	return 0;
}

static void xsk_free(struct lw_xsk *x)
{
	struct xring *all[] = {&x->rx, &x->tx, &x->fill, &x->done};
	if (x->fd >= 0)
		close(x->fd);
	for (int i = 0; i < 4; i++)
		if (all[i]->map != NULL)
			munmap(all[i]->map, all[i]->size);
	if (x->umem != NULL)
		munmap(x->umem, x->size);
	free(x->spare);
	free(x->packets);
	free(x);
}

static void give(struct lw_xsk *x, uint64_t addr)
{
	uint32_t p = *x->fill.producer;
	((uint64_t *)x->fill.desc)[p & x->fill.mask] = addr;
	STORE(x->fill.producer, p + 1);
}

static int xsk_setup(struct lw_xsk *x, uint32_t ifindex, uint32_t queue, int copy)
{
	uint32_t n = x->frames;
	struct xdp_umem_reg reg = {.addr = (uint64_t)(uintptr_t)x->umem, .len = x->size, .chunk_size = FRAME};
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof off;
	if ((x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)) < 0 ||
	    setsockopt(x->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof reg) < 0 ||
	    setsockopt(x->fd, SOL_XDP, XDP_UMEM_FILL_RING, &n, sizeof n) < 0 ||
	    setsockopt(x->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &n, sizeof n) < 0 ||
	    setsockopt(x->fd, SOL_XDP, XDP_RX_RING, &n, sizeof n) < 0 ||
	    setsockopt(x->fd, SOL_XDP, XDP_TX_RING, &n, sizeof n) < 0 ||
	    getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) < 0)
		return -errno;
	int e;
	if ((e = map_ring(&x->rx, x->fd, &off.rx, XDP_PGOFF_RX_RING, n, sizeof(struct xdp_desc))) ||
	    (e = map_ring(&x->tx, x->fd, &off.tx, XDP_PGOFF_TX_RING, n, sizeof(struct xdp_desc))) ||
	    (e = map_ring(&x->fill, x->fd, &off.fr, XDP_UMEM_PGOFF_FILL_RING, n, sizeof(uint64_t))) ||
	    (e = map_ring(&x->done, x->fd, &off.cr, XDP_UMEM_PGOFF_COMPLETION_RING, n, sizeof(uint64_t))))
		return e;
	for (uint32_t i = 0; i < n; i++)
		give(x, (uint64_t)i * FRAME);
	struct sockaddr_xdp a = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_USE_NEED_WAKEUP | (copy ? XDP_COPY : XDP_ZEROCOPY), .sxdp_ifindex = ifindex, .sxdp_queue_id = queue};
	if (bind(x->fd, (struct sockaddr *)&a, sizeof a) < 0)
		return -errno;
	return 0;
}

struct lw_xsk *lw_xsk_open(uint32_t ifindex, uint32_t queue, uint32_t frames, uint32_t ip, const uint8_t *mac, int copy, int unsummed, int *err)
{
	struct lw_xsk *x = calloc(1, sizeof *x);
	*err = -ENOMEM;
	if (x == NULL)
		return NULL;
	x->fd = -1;
	x->frames = frames;
	x->size = (size_t)frames * 2 * FRAME;
	x->ip = ip;
	x->unsummed = unsummed;
	memcpy(x->mac, mac, 6);
	x->spare = calloc(frames, sizeof *x->spare);
	x->packets = calloc(frames, sizeof *x->packets);
	x->umem = mmap(NULL, x->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (x->umem == MAP_FAILED)
		x->umem = NULL;
	if (x->spare == NULL || x->packets == NULL || x->umem == NULL || (*err = xsk_setup(x, ifindex, queue, copy)) != 0) {
		xsk_free(x);
		return NULL;
	}
	for (uint32_t i = 0; i < frames; i++)
		x->spare[x->spares++] = (uint64_t)(frames + i) * FRAME;
	return x;
}

int lw_xsk_fd(struct lw_xsk *x) { return x->fd; }
void lw_xsk_abandon(struct lw_xsk *x) { xsk_free(x); }

// kick has the kernel look at what is to be sent. The driver of a copying socket always
// wants to be told.
static void xdp_kick(struct lw_link *l)
{
	struct lw_xsk *x = l->own->xsk;
	x->pending = 0;
	if (!(LOAD(x->tx.flags) & XDP_RING_NEED_WAKEUP))
		return;
	l->n.bells++;
	// EAGAIN, EBUSY, ENOBUFS: some are left, and the next one does it; ENETDOWN: nothing will.
	if (sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
		x->pending = 1;
}

static void reclaim(struct lw_xsk *x)
{
	uint32_t head = LOAD(x->done.producer), at = *x->done.consumer;
	for (; at != head; at++)
		x->spare[x->spares++] = ((uint64_t *)x->done.desc)[at & x->done.mask];
	STORE(x->done.consumer, at);
}

static uint16_t sum_adjust(uint16_t sum, const uint16_t *from, const uint16_t *to)
{
	uint32_t s = (uint16_t)~sum; // RFC 1624, equation 3
	for (int i = 0; i < 4; i++)
		s += (uint16_t)~from[i] + to[i];
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static void addresses(uint8_t *b, uint32_t from, uint32_t to)
{
	uint16_t old[4], now[4], sum;
	memcpy(old, b + 12, 8);
	memcpy(now, &from, 4);
	memcpy(now + 2, &to, 4);
	memcpy(b + 12, now, 8);
	memcpy(&sum, b + 10, 2);
	sum = sum_adjust(sum, old, now);
	memcpy(b + 10, &sum, 2);
	memcpy(&sum, b + 36, 2);
	sum = sum_adjust(sum, old, now);
	memcpy(b + 36, &sum, 2);
}

static void xdp_put(struct lw_link *l, struct pbuf *p)
{
	struct lw_xsk *x = l->own->xsk;
	if (l->own->closed || l->broken)
		return;
	if (x->spares == 0) {
		reclaim(x);
		if (x->spares == 0)
			xdp_kick(l);
	}
	uint32_t tail = *x->tx.producer;
	if (x->spares == 0 || p->tot_len > FRAME - HEADER || p->tot_len < 40 || tail - LOAD(x->tx.consumer) > x->tx.mask) {
		l->n.tx_dropped++;
		return;
	}
	uint64_t addr = x->spare[--x->spares];
	uint8_t *b = x->umem + addr;
	pbuf_copy_partial(p, b + HEADER, p->tot_len, 0);
	struct xpeer *to = &x->peer[b[HEADER + 17] & (PEERS - 1)];
	memcpy(b, to->mac, 6);
	memcpy(b + 6, x->mac, 6);
	b[12] = ETH_P_IP >> 8;
	b[13] = ETH_P_IP & 0xff;
	addresses(b + HEADER, x->ip, to->ip);
	struct xdp_desc *d = &((struct xdp_desc *)x->tx.desc)[tail & x->tx.mask];
	d->addr = addr;
	d->len = HEADER + p->tot_len;
	d->options = 0;
	STORE(x->tx.producer, tail + 1);
	l->n.tx_frames++;
	l->n.tx_octets += p->tot_len;
	if (++x->pending >= KICK_AT || !lw_batching)
		xdp_kick(l);
}

int lw_batching;

void lw_flush(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	lw_batching = 0;
	if (o != NULL && o->xsk != NULL && o->xsk->pending > 0 && !o->closed)
		xdp_kick(l);
}

int lw_untold(struct lw_link *l)
{
	sys_lock_tcpip_core();
	int n = l->own != NULL && l->own->xsk != NULL ? (int)l->own->xsk->pending : 0;
	sys_unlock_tcpip_core();
	return n;
}

void lw_flush_all(void)
{
	lw_batching = 0;
	for (int i = 0; i < lw_links_end; i++)
		if (lw_links[i] != NULL)
			lw_flush(lw_links[i]);
}

// complete makes the checksum of a TCP segment that a kernel left to its device: what
// stands there is the sum of the pseudo header alone (CHECKSUM_PARTIAL of
// include/linux/skbuff.h). The device of a veth pair is the other end, which is us.
static void complete(uint8_t *b, uint32_t total)
{
	uint8_t pseudo[12];
	uint32_t len = total - 20;
	uint16_t stands, sum;
	memcpy(pseudo, b + 12, 8);
	pseudo[8] = 0;
	pseudo[9] = 6;
	pseudo[10] = (uint8_t)(len >> 8);
	pseudo[11] = (uint8_t)len;
	memcpy(&stands, b + 36, 2);
	if (stands != lw_checksum(pseudo, sizeof pseudo))
		return;
	sum = (uint16_t)~lw_checksum(b + 20, (int)len);
	memcpy(b + 36, &sum, 2);
}

static void xpacket_free(struct pbuf *p)
{
	struct xpacket *k = (struct xpacket *)p;
	struct lw_link *l = k->link;
	give(l->own->xsk, k->addr);
	l->own->held--;
	lw_link_release(l);
}

static int find_peer(struct lw_xsk *x, uint32_t ip)
{
	for (int i = 0; i < PEERS; i++)
		if (x->peer[i].ip == ip)
			return i;
	return -1;
}

static int xdp_take(struct lw_link *l)
{
	struct lw_link_own *o = l->own;
	struct lw_xsk *x = o->xsk;
	uint32_t head = LOAD(x->rx.producer);
	if (head == l->rx_tail || l->broken || o->closed)
		return 0;
	struct xdp_desc d = ((struct xdp_desc *)x->rx.desc)[l->rx_tail & x->rx.mask];
	STORE(&l->rx_tail, l->rx_tail + 1);
	STORE(x->rx.consumer, l->rx_tail);
	uint8_t *f = x->umem + d.addr, *b = f + HEADER;
	uint64_t chunk = d.addr & ~(uint64_t)(FRAME - 1);
	uint32_t from, len = d.len - HEADER;
	l->n.rx_frames++;
	l->n.rx_octets += d.len > HEADER ? len : 0;
	if (d.len < HEADER + 40 || f[12] != ETH_P_IP >> 8 || f[13] != (ETH_P_IP & 0xff) || b[0] != 0x45 || b[9] != 6) {
		give(x, chunk);
		return 1;
	}
	memcpy(&from, b + 12, 4);
	int peer = find_peer(x, from);
	if (peer < 0 && (b[33] & 0x12) == 0x02) { // SYN without ACK: somebody new, who is where the frame came from
		peer = find_peer(x, 0);
		if (peer >= 0) {
			x->peer[peer].ip = from;
			memcpy(x->peer[peer].mac, f + 6, 6);
		}
	}
	uint32_t total = (uint32_t)b[2] << 8 | b[3];
	if (peer < 0 || total > len || total < 40) {
		give(x, chunk);
		return 1;
	}
	if (x->unsummed)
		complete(b, total);
	struct pbuf *p;
	if (o->two_copies || (uint32_t)o->held >= x->frames / 4 * 3) {
		p = pbuf_alloc(PBUF_RAW, (u16_t)total, PBUF_RAM);
		if (p != NULL) {
			memcpy(p->payload, b, total);
			b = p->payload;
			l->n.rx_copied += total;
		}
		give(x, chunk);
	} else {
		struct xpacket *k = &x->packets[chunk / FRAME];
		k->link = l;
		k->addr = chunk;
		k->pc.custom_free_function = xpacket_free;
		p = pbuf_alloced_custom(PBUF_RAW, (u16_t)total, PBUF_REF, &k->pc, b, (u16_t)total);
		if (p == NULL)
			give(x, chunk);
		else
			o->held++;
	}
	if (p == NULL)
		return 1;
	ip_addr_t mine;
	lw_address_of(l, peer, 0, &mine);
	addresses(b, ip_2_ip4(&mine)->addr, netif_ip4_addr(&lw_netif)->addr);
	lw_input(l, p);
	return 1;
}

static int xdp_doze(struct lw_link *l)
{
	lw_flush(l);
	return LOAD(l->own->xsk->rx.producer) != l->rx_tail;
}

static void xdp_wake(struct lw_link *l) { (void)l; }

static void xdp_unmap(struct lw_link *l) { xsk_free(l->own->xsk); }

// lw_link_xdp takes over the socket.
struct lw_link *lw_link_xdp(struct lw_xsk *x, int two_copies, int mode, const struct lw_impair *imp)
{
	struct lw_link_own *o = calloc(1, sizeof *o);
	sys_lock_tcpip_core();
	struct lw_link *l = o == NULL ? NULL : lw_link_new();
	if (l != NULL) {
		o->put = xdp_put;
		o->take = xdp_take;
		o->doze = xdp_doze;
		o->wake = xdp_wake;
		o->unmap = xdp_unmap;
		o->xsk = x;
		o->two_copies = two_copies;
		o->imp = *imp;
		o->random = lw_seed(imp->seed);
		l->mode = mode;
		l->own = o;
		STORE(&l->rx_tail, 0);
		STORE(&l->rx_head, x->rx.producer);
		if (!lw_link_enter(l)) {
			l->own = NULL;
			l = NULL;
		}
	}
	if (l == NULL) {
		xsk_free(x);
		free(o);
	}
	sys_unlock_tcpip_core();
	return l;
}

// lw_peer is the number of a peer of the link, or -1.
int lw_peer(struct lw_link *l, uint32_t ip, const uint8_t *mac)
{
	sys_lock_tcpip_core();
	struct lw_xsk *x = l->own->xsk;
	int i = find_peer(x, ip);
	if (i < 0)
		i = find_peer(x, 0);
	if (i >= 0) {
		x->peer[i].ip = ip;
		memcpy(x->peer[i].mac, mac, 6);
	}
	sys_unlock_tcpip_core();
	return i;
}

uint32_t lw_peer_ip(struct lw_link *l, int peer)
{
	return l->own != NULL && l->own->xsk != NULL ? l->own->xsk->peer[peer & (PEERS - 1)].ip : 0;
}

// lw_xsk_dropped is what the kernel dropped for want of room in the rings of the link.
uint64_t lw_xsk_dropped(struct lw_link *l)
{
	struct xdp_statistics s;
	socklen_t n = sizeof s;
	memset(&s, 0, sizeof s);
	if (l->own == NULL || l->own->xsk == NULL || getsockopt(l->own->xsk->fd, SOL_XDP, XDP_STATISTICS, &s, &n) < 0)
		return 0;
	return s.rx_dropped + s.rx_ring_full + s.rx_fill_ring_empty_descs;
}

// lw_xsk_wait sleeps until something came, or ms have passed.
int lw_xsk_wait(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, ms);
}
