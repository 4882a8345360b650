package rdmap

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
)

// TermCode is why a stream was terminated: layer, error type and code (RFC 5040 §4.8). 0 means "no error": bit 16 is
// set in every reason, as 0/0/00 is one.
type TermCode uint32

// The layers of a TermCode.
const (
	LayerRDMAP = 0
	LayerDDP   = 1
	LayerMPA   = 2
)

const termSet TermCode = 1 << 16

// NewTermCode packs a reason. layer and etype use their low four bits.
func NewTermCode(layer, etype, code uint8) TermCode {
	return termSet | TermCode(layer&0x0f)<<12 | TermCode(etype&0x0f)<<8 | TermCode(code)
}

// Layer 0 reasons, RFC 5040 §4.8 Fig. 9.
const (
	TermLocal = termSet | 0x0000 // local catastrophic error

	TermProtSTag          = termSet | 0x0100 // invalid STag
	TermProtBounds        = termSet | 0x0101 // base or bounds violation
	TermProtAccess        = termSet | 0x0102 // access rights violation
	TermProtNotAssociated = termSet | 0x0103 // STag not associated with the stream
	TermProtWrap          = termSet | 0x0104 // TO wrap
	TermProtCannotInv     = termSet | 0x0109 // STag cannot be invalidated
	TermProtUnspecified   = termSet | 0x01ff

	TermRDMAPVersion = termSet | 0x0205 // invalid RDMAP version
	TermOpcode       = termSet | 0x0206 // unexpected opcode
	TermStream       = termSet | 0x0207 // catastrophic, localized to the stream
	TermGlobal       = termSet | 0x0208 // catastrophic, global
	TermCannotInv    = termSet | 0x0209 // STag cannot be invalidated
	TermUnspecified  = termSet | 0x02ff
)

// Layer 1 reasons, RFC 5041 §7.2.
const (
	TermDDPLocal         = termSet | TermCode(ddp.ErrLocal)
	TermTaggedSTag       = termSet | TermCode(ddp.ErrTaggedSTag)
	TermTaggedBounds     = termSet | TermCode(ddp.ErrTaggedBounds)
	TermTaggedNotAssoc   = termSet | TermCode(ddp.ErrTaggedNotAssociated)
	TermTaggedWrap       = termSet | TermCode(ddp.ErrTaggedWrap)
	TermTaggedVersion    = termSet | TermCode(ddp.ErrTaggedVersion)
	TermUntaggedQN       = termSet | TermCode(ddp.ErrUntaggedQN)
	TermUntaggedNoBuffer = termSet | TermCode(ddp.ErrUntaggedNoBuffer)
	TermUntaggedMSN      = termSet | TermCode(ddp.ErrUntaggedMSN)
	TermUntaggedMO       = termSet | TermCode(ddp.ErrUntaggedMO)
	TermUntaggedTooLong  = termSet | TermCode(ddp.ErrUntaggedTooLong)
	TermUntaggedVersion  = termSet | TermCode(ddp.ErrUntaggedVersion)
)

// Layer 2 reasons, RFC 5044 §8 and RFC 6581 §8.
const (
	termMPA = termSet | LayerMPA<<12

	TermMPATCPLost         = termMPA | TermCode(mpa.CodeTCPLost)
	TermMPACRC             = termMPA | TermCode(mpa.CodeCRC)
	TermMPAMarker          = termMPA | TermCode(mpa.CodeMarker)
	TermMPABadFrame        = termMPA | TermCode(mpa.CodeBadFrame)
	TermMPALocal           = termMPA | TermCode(mpa.CodeLocal)
	TermMPAInsufficientIRD = termMPA | TermCode(mpa.CodeInsufficientIRD)
	TermMPANoRTR           = termMPA | TermCode(mpa.CodeNoRTR)
)

// FromDDP is the reason of a DDP error, and 0 for 0.
func FromDDP(c ddp.ErrorCode) TermCode {
	if c == 0 {
		return 0
	}
	return termSet | TermCode(c)
}

// FromMPA is the reason of an MPA error, and 0 for 0.
func FromMPA(c mpa.Code) TermCode {
	if c == 0 {
		return 0
	}
	return termMPA | TermCode(c)
}

// headers says which headers of the offending segment a Terminate carries (RFC 5040 §4.8 Fig. 10).
type headers uint8

const (
	headersNone headers = iota // neither
	headersDDP                 // DDP header and segment length
	headersRead                // the same, and the RDMAP header of a Read Request
)

type termInfo struct {
	text string
	with headers
}

var termTable = map[TermCode]termInfo{
	TermLocal:             {"rdmap: local catastrophic error", headersNone},
	TermProtSTag:          {"rdmap remote protection: invalid stag", headersRead},
	TermProtBounds:        {"rdmap remote protection: base or bounds violation", headersRead},
	TermProtAccess:        {"rdmap remote protection: access rights violation", headersRead},
	TermProtNotAssociated: {"rdmap remote protection: stag not associated with stream", headersRead},
	TermProtWrap:          {"rdmap remote protection: tagged offset wraps", headersRead},
	TermProtCannotInv:     {"rdmap remote protection: stag cannot be invalidated", headersRead},
	TermProtUnspecified:   {"rdmap remote protection: unspecified", headersRead},
	TermRDMAPVersion:      {"rdmap remote operation: invalid rdmap version", headersDDP},
	TermOpcode:            {"rdmap remote operation: unexpected opcode", headersDDP},
	TermStream:            {"rdmap remote operation: catastrophic, localized to stream", headersDDP},
	TermGlobal:            {"rdmap remote operation: catastrophic, global", headersDDP},
	TermCannotInv:         {"rdmap remote operation: stag cannot be invalidated", headersDDP},
	TermUnspecified:       {"rdmap remote operation: unspecified", headersDDP},

	TermDDPLocal:         {ddp.ErrLocal.Text(), headersNone},
	TermTaggedSTag:       {ddp.ErrTaggedSTag.Text(), headersDDP},
	TermTaggedBounds:     {ddp.ErrTaggedBounds.Text(), headersDDP},
	TermTaggedNotAssoc:   {ddp.ErrTaggedNotAssociated.Text(), headersDDP},
	TermTaggedWrap:       {ddp.ErrTaggedWrap.Text(), headersDDP},
	TermTaggedVersion:    {ddp.ErrTaggedVersion.Text(), headersDDP},
	TermUntaggedQN:       {ddp.ErrUntaggedQN.Text(), headersDDP},
	TermUntaggedNoBuffer: {ddp.ErrUntaggedNoBuffer.Text(), headersDDP},
	TermUntaggedMSN:      {ddp.ErrUntaggedMSN.Text(), headersDDP},
	TermUntaggedMO:       {ddp.ErrUntaggedMO.Text(), headersDDP},
	TermUntaggedTooLong:  {ddp.ErrUntaggedTooLong.Text(), headersDDP},
	TermUntaggedVersion:  {ddp.ErrUntaggedVersion.Text(), headersDDP},

	TermMPATCPLost:         {"mpa: " + mpa.CodeTCPLost.String(), headersNone},
	TermMPACRC:             {"mpa: " + mpa.CodeCRC.String(), headersNone},
	TermMPAMarker:          {"mpa: " + mpa.CodeMarker.String(), headersNone},
	TermMPABadFrame:        {"mpa: " + mpa.CodeBadFrame.String(), headersNone},
	TermMPALocal:           {"mpa: " + mpa.CodeLocal.String(), headersNone},
	TermMPAInsufficientIRD: {"mpa: " + mpa.CodeInsufficientIRD.String(), headersNone},
	TermMPANoRTR:           {"mpa: " + mpa.CodeNoRTR.String(), headersNone},
}

// Layer is 0 for RDMAP, 1 for DDP, 2 for MPA.
func (c TermCode) Layer() uint8 { return uint8(c>>12) & 0x0f }

// EType is the error type within the layer.
func (c TermCode) EType() uint8 { return uint8(c>>8) & 0x0f }

// Code is the error code within the type.
func (c TermCode) Code() uint8 { return uint8(c) }

// Known reports whether the reason is assigned by RFC 5040, 5041, 5044 or 6581.
func (c TermCode) Known() bool {
	_, ok := c.info()
	return ok
}

// info finds the row of c. Error type 0/0 has no code, any value means the same (RFC 5040 §4.8 Fig. 9).
func (c TermCode) info() (termInfo, bool) {
	if c&^0xff == TermLocal {
		c = TermLocal
	}
	row, ok := termTable[c]
	return row, ok
}

// String gives layer/etype/code with the meaning, as "1/1/00 ddp tagged: invalid stag", and "ok" for 0.
func (c TermCode) String() string {
	if c == 0 {
		return "ok"
	}
	row, ok := c.info()
	if !ok {
		row.text = "unassigned"
	}
	return fmt.Sprintf("%d/%d/%02x %s", c.Layer(), c.EType(), c.Code(), row.text)
}
