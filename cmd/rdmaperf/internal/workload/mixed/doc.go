// Package mixed is the workload of reads and writes together, as storage has them and fio
// (its man page: rwmixread, bssplit, randrw) made them known: a share of RDMA reads, the
// rest RDMA writes, of several block sizes, at random places of the server's window.
//
// What operation n is follows from the seed alone, see [order]: of every hundred
// operations as many are reads as asked for, and of every hundred reads, or writes, as
// many have each size.
//
// One half of the window is read and the other written, so that both can be compared: no
// read meets a write. A block lies within a cell of the largest block's size, at a multiple
// of its own. Operations of a queue pair take its slots in turn, so that one that completes
// before an older one does not make room. With more than one under way, what completes
// while data is compared is seen a little later.
package mixed
