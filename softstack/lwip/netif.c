//go:build lwip

// The stack of the process, with one network interface, whose links lead to other processes.
#include <errno.h>
#include <time.h>
#include <arpa/inet.h>
#include "own.h"

struct netif lw_netif;

static err_t to_link(struct netif *n, struct pbuf *p, const ip4_addr_t *to)
{
	(void)n;
	uint32_t i = (ntohl(to->addr) & 0xffff) - 1;
	if (i < LW_MAX_LINKS && lw_links[i] != NULL)
		lw_output(lw_links[i], p);
	return ERR_OK;
}

static err_t plug(struct netif *n)
{
	n->name[0] = 's';
	n->name[1] = 'm';
	n->mtu = LW_MTU;
	n->output = to_link;
	return ERR_OK;
}

static void started(void *arg) { STORE((int *)arg, 1); }

int lw_start(void)
{
	static int up;
	ip4_addr_t a, mask, none;
	tcpip_init(started, &up);
	for (int i = 0; LOAD(&up) == 0; i++) {
		struct timespec ms = {0, 1000000};
		if (i == 5000)
			return -ETIMEDOUT;
		nanosleep(&ms, NULL);
	}
	IP4_ADDR(&a, 10, 0, 0, 1);
	IP4_ADDR(&mask, 255, 0, 0, 0);
	ip4_addr_set_zero(&none);
	sys_lock_tcpip_core();
	struct netif *n = netif_add(&lw_netif, &a, &mask, &none, NULL, plug, ip4_input);
	if (n != NULL) {
		netif_set_default(n);
		netif_set_up(n);
		netif_set_link_up(n);
	}
	sys_unlock_tcpip_core();
	return n == NULL ? -ENOMEM : 0;
}
