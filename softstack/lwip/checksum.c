//go:build lwip

// The Internet checksum (RFC 1071) of the library, replaced. lwIP's own adds 16 bits at
// a time and takes more time of a full segment than all the rest of TCP; a port is meant
// to bring its own (LWIP_CHKSUM, LWIP_CHKSUM_COPY). The library calls it through its
// table of symbols, where those of the program come first, if they are exported
// (-Wl,-E). Where they are not, the library's own is used, and only speed is lost.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include "lw.h"

uint16_t lwip_standard_chksum(const void *data, int len);
uint16_t lwip_chksum_copy(void *to, const void *from, uint16_t len);

static uint64_t word(const uint8_t *p)
{
	uint64_t w;
	memcpy(&w, p, sizeof w);
	return w;
}

// fold makes 16 bits of a sum of words of any size, which is the same as adding 16 bits at
// a time (RFC 1071 §2 (A) and (C)).
static uint16_t fold(unsigned __int128 sum)
{
	uint64_t s = (uint64_t)(sum & UINT32_MAX) + (uint64_t)(sum >> 32 & UINT32_MAX) + (uint64_t)(sum >> 64);
	s = (s & UINT32_MAX) + (s >> 32);
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (uint16_t)((s & 0xffff) + (s >> 16));
}

uint16_t lw_checksum(const void *data, int len)
{
	const uint8_t *p = data;
	size_t n = len > 0 ? (size_t)len : 0;
	unsigned __int128 a = 0, b = 0, c = 0, d = 0; // side by side: a carry waits for nobody
	for (; n >= 32; p += 32, n -= 32) {
		a += word(p);
		b += word(p + 8);
		c += word(p + 16);
		d += word(p + 24);
	}
	for (; n >= 8; p += 8, n -= 8)
		a += word(p);
	if (n & 4) {
		uint32_t w;
		memcpy(&w, p, sizeof w);
		b += w;
		p += 4;
	}
	if (n & 2) {
		uint16_t w;
		memcpy(&w, p, sizeof w);
		c += w;
		p += 2;
	}
	if (n & 1) {
		uint16_t w = 0;
		memcpy(&w, p, 1); // as if a zero followed
		d += w;
	}
	return fold(a + b + c + d);
}

uint16_t lwip_standard_chksum(const void *data, int len) { return lw_checksum(data, len); }

uint16_t lwip_chksum_copy(void *to, const void *from, uint16_t len)
{
	memcpy(to, from, len);
	return lw_checksum(to, len); // of what is sent: the source may change meanwhile
}

// The library looks where RTLD_DEFAULT does: in the program, and then in itself.
int lw_checksum_ours(void)
{
	return dlsym(RTLD_DEFAULT, "lwip_standard_chksum") == (void *)lwip_standard_chksum &&
		dlsym(RTLD_DEFAULT, "lwip_chksum_copy") == (void *)lwip_chksum_copy;
}
