package suite

import (
	"bytes"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

var memoryCases = []row{
	pair("mem/shared-by-name", "SOSP'17 §4.1",
		"A region that one node made is mapped by name at another; what one writes the other reads.",
		func(c *cluster, a, b Client) {
			h := region(c, a, "r", 10000, readWrite, 0)
			c.same("zeros at first", read(c, a, h, 0, 10000), make([]byte, 10000))
			g := mapped(c, b, readWrite)
			msg := pattern(5000, 1)
			c.ok("write", a.Write(h, 100, msg))
			read(c, a, h, 0, 1) // behind the write, where completions are local
			c.same("the bytes that were written", read(c, b, g, 100, 5000), msg)
			c.wants("a second region of that name", errOf(a.Malloc(lite.RegionConfig{Name: "r", Size: 8})),
				lite.ErrExists)
			c.wants("no such name", errOf(b.Map("none", lite.PermRead, "")), lite.ErrNoRegion)
		}),
	pair("mem/password", "lite.h ask_lmr", "Mapping with another password is refused, and gives no handle.",
		func(c *cluster, a, b Client) {
			region(c, a, "r", 100, lite.PermRead, 0)
			for _, p := range []string{"", "sesam", "sesame ", "Sesame"} {
				h, err := b.Map("r", lite.PermRead, p)
				c.wants(fmt.Sprintf("map with the password %q", p), err, lite.ErrPassword)
				c.wants("a read through what came of it", b.Read(h, 0, make([]byte, 1)), lite.ErrDeadHandle)
			}
			c.wants("more than is open", errOf(b.Map("r", readWrite, "sesame")), lite.ErrPermission)
		}),
	pair("mem/read-only", "lite.h MR_READ_FLAG", "A handle for reading does not write: the bytes stay.",
		func(c *cluster, a, b Client) {
			h := region(c, a, "r", 100, readWrite, 0)
			g := mapped(c, b, lite.PermRead)
			c.wants("write", b.Write(g, 0, []byte{1}), lite.ErrPermission)
			c.wants("memset", b.Memset(g, 0, 1, 10), lite.ErrPermission)
			c.holds("the bytes stay", read(c, a, h, 0, 1)[0] == 0, "a refused write arrived")
		}),
	pair("mem/write-only", "lite.h MR_WRITE_FLAG", "A handle for writing does not read.",
		func(c *cluster, a, b Client) {
			region(c, a, "r", 100, readWrite, 0)
			g := mapped(c, b, lite.PermWrite)
			c.ok("write", b.Write(g, 0, []byte{1}))
			got := []byte{9}
			c.wants("read", b.Read(g, 0, got), lite.ErrPermission)
			c.holds("nothing was read", got[0] == 9, got)
		}),
	pair("mem/atomic-permission", "lite.h MR_ATOMIC_FLAG", "Atomics need their own permission.",
		func(c *cluster, a, b Client) {
			c.atomics()
			h := region(c, a, "r", 64, lite.PermAll&^lite.PermMaster, 0)
			g := mapped(c, b, readWrite)
			c.wants("fetch-add", errOf(b.FetchAdd(g, 0, 1)), lite.ErrPermission)
			c.wants("compare-swap", errOf(b.CmpSwap(g, 0, 0, 1)), lite.ErrPermission)
			old, err := a.FetchAdd(h, 0, 5)
			c.holds("fetch-add finds 0", err == nil && old == 0, fmt.Sprint(old, err))
			c.wants("an address that is no multiple of 8", errOf(a.FetchAdd(h, 4, 5)), lite.ErrBounds)
		}),
	pair("mem/masters-alone", "SOSP'17 §4.1", "Who is no master neither frees, moves nor grants.",
		func(c *cluster, a, b Client) {
			region(c, a, "r", 100, readWrite, 0)
			g := mapped(c, b, readWrite)
			c.wants("free", b.FreeRegion(g), lite.ErrPermission)
			c.wants("move", errOf(b.Move(g, 2)), lite.ErrPermission)
			c.wants("grant", b.Grant(g, 2, lite.PermMaster), lite.ErrPermission)
			read(c, b, g, 0, 1)
		}),
	pair("mem/grant", "SOSP'17 §4.1", "Who was granted a permission maps without the password, with that permission.",
		func(c *cluster, a, b Client) {
			h := region(c, a, "r", 100, 0, 0)
			c.wants("before the grant", errOf(b.Map("r", lite.PermRead, "sesame")), lite.ErrPermission)
			c.ok("grant", a.Grant(h, 2, lite.PermRead))
			g, err := b.Map("r", lite.PermRead, "nobody asks")
			c.ok("map", err)
			read(c, b, g, 0, 100)
			c.wants("more than was granted", errOf(b.Map("r", lite.PermWrite, "sesame")), lite.ErrPermission)
		}),
	must("mem/bounds", "package lite, ErrBounds",
		"Nothing outside the region is read or written, however the range is put.", func(c *cluster) {
			a := c.client(1, lite.ClientConfig{})
			h := region(c, a, "r", 4096, 0, 0)
			next := region(c, a, "next", 4096, 0, 0)
			for _, r := range []struct {
				off uint64
				n   int
			}{{4096, 1}, {4090, 7}, {0, 4097}, {1 << 63, 1}, {^uint64(0), 8}, {1 << 32, 4096}} {
				c.wants(fmt.Sprintf("write of %d bytes at %d", r.n, r.off), a.Write(h, r.off, pattern(r.n, 1)),
					lite.ErrBounds)
				c.wants(fmt.Sprintf("read of %d bytes at %d", r.n, r.off), a.Read(h, r.off, make([]byte, r.n)),
					lite.ErrBounds)
			}
			c.same("the region behind it is as it was", read(c, a, next, 0, 4096), make([]byte, 4096))
			c.ok("the last byte", a.Write(h, 4095, []byte{1}))
		}),
	must("mem/spans-nodes", "SOSP'17 §4.1", "A range over chunks of several nodes is one operation.", func(c *cluster) {
		a := c.client(1, lite.ClientConfig{})
		h := region(c, a, "r", 2*lite.ChunkSize+1000, 0, 0, 1, 2)
		msg := pattern(lite.ChunkSize+200, 3)
		c.ok("write", a.Write(h, lite.ChunkSize-100, msg))
		c.same("the bytes that were written", read(c, a, h, lite.ChunkSize-100, len(msg)), msg)
		c.holds("the byte before", read(c, a, h, lite.ChunkSize-101, 1)[0] == 0, "changed")
	}),
	must("mem/set-and-move", "SOSP'17 table 1, LT_memset, LT_memmove",
		"memset and memmove are exact, over nodes and where ranges overlap.", func(c *cluster) {
			a := c.client(1, lite.ClientConfig{})
			h := region(c, a, "r", lite.ChunkSize+8192, 0, 0, 2)
			model := pattern(lite.ChunkSize+8192, 5)
			c.ok("write", a.Write(h, 0, model))
			read(c, a, h, 0, 1)
			read(c, a, h, lite.ChunkSize, 1)
			c.ok("memset", a.Memset(h, lite.ChunkSize-50, 0xee, 100))
			copy(model[lite.ChunkSize-50:], bytes.Repeat([]byte{0xee}, 100))
			for _, m := range [][3]uint64{{0, 3000, 6000}, {3000, 0, 6000},
				{lite.ChunkSize - 3, lite.ChunkSize - 9, 64},
				{17, lite.ChunkSize - 500, 1000}} {
				c.ok("memmove", a.Memmove(h, m[0], h, m[1], m[2]))
				copy(model[m[0]:m[0]+m[2]], model[m[1]:m[1]+m[2]])
				c.same(fmt.Sprintf("memmove of %d bytes from %d to %d is exact", m[2], m[1], m[0]),
					read(c, a, h, 0, len(model)), model)
			}
		}),
}
