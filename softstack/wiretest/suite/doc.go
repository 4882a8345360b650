// Package suite aims the wire cases of the catalogue, W-01 to W-70, at an iWARP peer
// that listens somewhere: a case connects, or is connected to, sends what its row says, and
// judges the answer. Verdicts, ledger and forms are those of transports/conform.
//
// The peer is one of two:
//
//   - One that serves rping (librdmacm/examples/rping.c; 'rdmaperf rping -s'): its Send
//     of 16 octets makes the peer issue a Read Request, which proves that a message was
//     delivered, and has an STag of the peer's.
//   - A test target ('rdmaperf serve --target', package target), whose application the
//     suite leads: then every row runs, also those where the peer connects, wants markers
//     or asks for atomics, and each row also judges the peer's memory, completions and
//     QP state.
//
// A case owns its connections and closes them. Every wait has the deadline of Options.
//
// rping's receives are posted again by its application, so the outcome of W-57 depends on its
// speed, and says which one was seen. RFC 7306 has no bit for "I speak it": the suite makes
// the offer of package rdmap in private data, and its rows are unsupported by a peer that
// does not answer it. Cases that crash unpatched kernels are hazards: Options.Hazard runs them.
package suite
