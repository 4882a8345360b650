// Package dsm is a distributed shared memory: pages that every node reads and writes as
// its own, with coherence by invalidation.
//
// A page has a home, which keeps its directory entry: who has a copy, or who owns it. A
// read takes a copy from the home; a write takes the page for itself, which the home
// allows when every copy is gone. Who owns a page gives it back, with its bytes, when
// the home asks. The states of a page at a node are invalid, shared and owned (the MSI
// protocol), and all of its transitions are in one table.
//
// Grants carry a number that the home counts up for each page: an invalidation that
// overtakes the grant it ends is known by its higher number, and the grant is for one
// access only.
//
// Pages that a dead node owned are lost: an access answers with [ErrLost]. Pages whose
// home died answer with lite.ErrPeerDead. A node's pages are as many as it touched.
package dsm
