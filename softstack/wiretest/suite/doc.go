// Package suite aims the wire cases of the catalogue, W-01 to W-70, at an iWARP peer
// that listens somewhere: a case dials, says what the row says, and judges the answer.
// Verdicts, ledger and forms are those of transports/conform.
//
// The peer has to serve rping (librdmacm/examples/rping.c; 'rdmaperf rping -s'): its
// Send of 16 octets makes the peer issue a Read Request, which proves that a message
// was delivered, and tells an STag of the peer's. Nothing else has to be known of it.
//
// Ownership: a case owns its connections and closes them. Every wait has the
// deadline that Options give.
//
// # Limitations
//
//   - Rows where the peer under test has to connect, to want markers, or to tell
//     STags that rping does not, are "unsupported" and say what they miss.
//   - rping's receives are posted again by its application. W-43 and W-57 therefore
//     have outcomes that depend on its speed, and say which one was seen.
//   - Cases that crash unpatched kernels are hazards: Options.Hazard runs them.
package suite
