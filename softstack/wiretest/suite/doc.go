// Package suite aims the wire cases of the catalogue, W-01 to W-70, at an iWARP peer that listens somewhere. Verdicts,
// ledger and forms are those of transports/conform. The peer serves rping (librdmacm/examples/rping.c), whose Read
// Request proves that a message was delivered, or is a test target (package target), with which every row runs and also
// judges the peer's memory, completions and QP state. A case owns its connections and closes them.
//
// rping posts its receives again by its application, so the outcome of W-57 depends on its speed, and says which was
// seen. Rows of RFC 7306 are unsupported by a peer that does not answer the offer of package rdmap in private data.
package suite
