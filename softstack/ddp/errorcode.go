package ddp

import "fmt"

// ErrorCode is one row of RFC 5041 §7.2 as a Terminate carries it (RFC 5040 §4.8): layer<<12 | etype<<8 | code with
// layer 1, so that 0 means "no error". It is no Go error.
type ErrorCode uint16

// layer is the Terminate layer of DDP, RFC 5040 §4.8.
const layer = 1

// The error types of layer 1.
const (
	ETypeLocal    = 0 // local catastrophic
	ETypeTagged   = 1 // tagged buffer
	ETypeUntagged = 2 // untagged buffer
	ETypeLLP      = 3 // reserved for the use of the LLP
)

// The DDP error codes, RFC 5041 §7.2.
const (
	ErrLocal ErrorCode = layer<<12 | ETypeLocal<<8 | 0x00 // local catastrophic error

	ErrTaggedSTag          ErrorCode = layer<<12 | ETypeTagged<<8 | 0x00 // invalid STag
	ErrTaggedBounds        ErrorCode = layer<<12 | ETypeTagged<<8 | 0x01 // base or bounds violation
	ErrTaggedNotAssociated ErrorCode = layer<<12 | ETypeTagged<<8 | 0x02 // STag not associated with this stream
	ErrTaggedWrap          ErrorCode = layer<<12 | ETypeTagged<<8 | 0x03 // TO wrap
	ErrTaggedVersion       ErrorCode = layer<<12 | ETypeTagged<<8 | 0x04 // invalid DDP version

	ErrUntaggedQN       ErrorCode = layer<<12 | ETypeUntagged<<8 | 0x01 // invalid QN
	ErrUntaggedNoBuffer ErrorCode = layer<<12 | ETypeUntagged<<8 | 0x02 // invalid MSN: no buffer available
	ErrUntaggedMSN      ErrorCode = layer<<12 | ETypeUntagged<<8 | 0x03 // invalid MSN: range is not valid
	ErrUntaggedMO       ErrorCode = layer<<12 | ETypeUntagged<<8 | 0x04 // invalid MO
	ErrUntaggedTooLong  ErrorCode = layer<<12 | ETypeUntagged<<8 | 0x05 // message too long for the buffer
	ErrUntaggedVersion  ErrorCode = layer<<12 | ETypeUntagged<<8 | 0x06 // invalid DDP version
)

var errorText = map[ErrorCode]string{
	ErrLocal:               "ddp: local catastrophic error",
	ErrTaggedSTag:          "ddp tagged: invalid stag",
	ErrTaggedBounds:        "ddp tagged: base or bounds violation",
	ErrTaggedNotAssociated: "ddp tagged: stag not associated with stream",
	ErrTaggedWrap:          "ddp tagged: tagged offset wraps",
	ErrTaggedVersion:       "ddp tagged: invalid ddp version",
	ErrUntaggedQN:          "ddp untagged: invalid queue number",
	ErrUntaggedNoBuffer:    "ddp untagged: no buffer for msn",
	ErrUntaggedMSN:         "ddp untagged: msn out of range",
	ErrUntaggedMO:          "ddp untagged: invalid message offset",
	ErrUntaggedTooLong:     "ddp untagged: message too long for buffer",
	ErrUntaggedVersion:     "ddp untagged: invalid ddp version",
}

// Layer is the Terminate layer, 1 for every error of this package.
func (c ErrorCode) Layer() uint8 { return uint8(c >> 12) }

// EType is the Terminate error type.
func (c ErrorCode) EType() uint8 { return uint8(c>>8) & 0x0f }

// Code is the Terminate error code within its type.
func (c ErrorCode) Code() uint8 { return uint8(c) }

// Text is the meaning of the code, as "ddp tagged: invalid stag".
func (c ErrorCode) Text() string {
	if text := errorText[c]; text != "" {
		return text
	}
	return "unassigned"
}

// String gives layer/etype/code with the meaning, as "1/1/00 ddp tagged: invalid stag", and "ok" for 0.
func (c ErrorCode) String() string {
	if c == 0 {
		return "ok"
	}
	return fmt.Sprintf("%d/%d/%02x %s", c.Layer(), c.EType(), c.Code(), c.Text())
}
