// Package memdev is the reference provider of [rdma.Device]: RDMA inside one process, with the semantics of a reliable
// connection as the InfiniBand specification states them, and with faults that prove that a test would see them.
// Devices of one [Fabric] reach each other by the addresses they listen on, which are names: no host is resolved.
//
// There is no goroutine: PostSend moves the bytes and writes both sides' completions. Work that cannot proceed (no
// receive, a fence, the ORD limit, a delayed answer) is taken up by the post of a receive, or by any Poll or Wait on
// the fabric once its time has come. One lock guards a fabric, so the order of events is a function of the calls alone,
// and nothing here says anything about scaling.
//
// Where the specification leaves a choice: a QP that fails by itself tells its peer nothing, Disconnect and Close do;
// failed completions are zero but for ID, Status and QPNum; OpLocalInv takes either key; with ORD 0 a read completes
// with StatusLocQPOpErr; SRQ.Arm below the limit raises the event at once; refused requests place nothing.
package memdev
