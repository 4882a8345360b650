// Package wordcount counts the words of files by MapReduce over named memory.
//
// Every node is a mapper and a reducer. Mappers take files from a shared counter and leave their counts, parted by the
// word's hash, in regions of their own. Behind a barrier reducer r adds up part r of every mapper, and leaves the sum
// in a region that others read. All nodes must see the files under the same names. A word is a run of letters and
// digits, in lower case.
package wordcount

import (
	"bufio"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// Source is this package, to count its lines.
//
//go:embed *.go
var Source embed.FS

// Counts are words and how often they are there.
type Counts map[string]uint64

// Job is one count. Every node runs the same.
type Job struct {
	Name  string // in the cluster
	Nodes []int  // that take part
	Files []string
}

// Scan adds the words of r.
func (c Counts) Scan(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var word strings.Builder
	for {
		ch, _, err := in.ReadRune()
		if err == nil && (unicode.IsLetter(ch) || unicode.IsDigit(ch)) {
			word.WriteRune(unicode.ToLower(ch))
			continue
		}
		if word.Len() > 0 {
			c[word.String()]++
			word.Reset()
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
}

// File adds the words of a file.
func (c Counts) File(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.Scan(f)
}

// Local is the answer of a single machine.
func Local(files []string) (Counts, error) {
	c := Counts{}
	for _, name := range files {
		if err := c.File(name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Run takes part in a job as node n, and returns the whole answer and how many files this node took. It fails with
// lite.ErrPeerDead when a node dies, and at the latest with the node's timeout when one fails.
func Run(n *lite.Node, j Job) (all Counts, files int, err error) {
	c, err := n.Client(lite.ClientConfig{})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	me := slices.Index(j.Nodes, n.ID())
	if me == 0 { // the counter of files
		if _, err := c.Malloc(lite.RegionConfig{Name: j.Name + ".next", Size: 8, Open: lite.PermAtomic}); err != nil {
			return nil, 0, err
		}
	}
	if err := c.BarrierOf(j.Name+".begin", j.Nodes); err != nil {
		return nil, 0, err
	}
	parts, files, err := mapFiles(c, j)
	if err != nil {
		return nil, files, err
	}
	var mine []lite.Handle
	publish := func(name string, part Counts) error {
		b := encode(part)
		h, err := c.Malloc(lite.RegionConfig{Name: name, Size: uint64(len(b)), Open: lite.PermRead})
		if err != nil {
			return err
		}
		mine = append(mine, h)
		return c.Write(h, 0, b)
	}
	fetch := func(name string, into Counts) error {
		h, err := c.Map(name, lite.PermRead, "")
		if err != nil {
			return err
		}
		size, err := c.Size(h)
		if err != nil {
			return err
		}
		b := make([]byte, size)
		if err := c.Read(h, 0, b); err != nil {
			return err
		}
		return errors.Join(into.decode(b), c.Unmap(h))
	}
	for r, part := range parts {
		if err := publish(fmt.Sprintf("%s.%d.%d", j.Name, me, r), part); err != nil {
			return nil, files, err
		}
	}
	if err := c.BarrierOf(j.Name+".mapped", j.Nodes); err != nil {
		return nil, files, err
	}
	sum := Counts{}
	for m := range j.Nodes {
		if err := fetch(fmt.Sprintf("%s.%d.%d", j.Name, m, me), sum); err != nil {
			return nil, files, err
		}
	}
	if err := publish(fmt.Sprintf("%s.out.%d", j.Name, me), sum); err != nil {
		return nil, files, err
	}
	if err := c.BarrierOf(j.Name+".reduced", j.Nodes); err != nil {
		return nil, files, err
	}
	all = Counts{}
	for r := range j.Nodes {
		if err := fetch(fmt.Sprintf("%s.out.%d", j.Name, r), all); err != nil {
			return nil, files, err
		}
	}
	if err := c.BarrierOf(j.Name+".read", j.Nodes); err != nil {
		return nil, files, err
	}
	for _, h := range mine {
		err = errors.Join(err, c.FreeRegion(h))
	}
	return all, files, err
}

func mapFiles(c *lite.Client, j Job) (parts []Counts, files int, err error) {
	next, err := c.Map(j.Name+".next", lite.PermAtomic, "")
	if err != nil {
		return nil, 0, err
	}
	counts := Counts{}
	for {
		i, err := c.FetchAdd(next, 0, 1)
		if err != nil {
			return nil, files, err
		}
		if i >= uint64(len(j.Files)) {
			break
		}
		if err := counts.File(j.Files[i]); err != nil {
			return nil, files, err
		}
		files++
	}
	for range j.Nodes {
		parts = append(parts, Counts{})
	}
	for w, n := range counts {
		h := fnv.New32a()
		io.WriteString(h, w)
		parts[h.Sum32()%uint32(len(parts))][w] = n
	}
	return parts, files, nil
}

// encode is the number of words, and the words in order, each with its length before it and its count behind it.
func encode(c Counts) []byte {
	words := make([]string, 0, len(c))
	for w := range c {
		words = append(words, w)
	}
	slices.Sort(words)
	b := binary.AppendUvarint(nil, uint64(len(words)))
	for _, w := range words {
		b = binary.AppendUvarint(b, uint64(len(w)))
		b = append(b, w...)
		b = binary.AppendUvarint(b, c[w])
	}
	return b
}

var errEncoding = errors.New("counts of another node make no sense")

// decode adds what encode made.
func (c Counts) decode(b []byte) error {
	number := func() (uint64, bool) {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return 0, false
		}
		b = b[k:]
		return v, true
	}
	words, ok := number()
	if !ok {
		return errEncoding
	}
	for ; words > 0; words-- {
		size, ok := number()
		if !ok || size > uint64(len(b)) {
			return errEncoding
		}
		w := string(b[:size])
		b = b[size:]
		n, ok := number()
		if !ok {
			return errEncoding
		}
		c[w] += n
	}
	return nil
}
