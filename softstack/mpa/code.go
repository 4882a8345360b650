package mpa

import "fmt"

// Code is an MPA error (RFC 5044 §8, RFC 6581 §8), of a Terminate with layer 2, type 0; 0 means "no error".
type Code uint8

// The MPA errors.
const (
	CodeTCPLost         Code = 1 // TCP connection closed, terminated or lost
	CodeCRC             Code = 2 // received CRC does not match
	CodeMarker          Code = 3 // marker and ULPDU_Length disagree
	CodeBadFrame        Code = 4 // invalid Request or Reply frame
	CodeLocal           Code = 5 // local catastrophic error, RFC 6581
	CodeInsufficientIRD Code = 6 // not enough IRD resources, RFC 6581
	CodeNoRTR           Code = 7 // no matching RTR option, RFC 6581
)

var codeText = [...]string{
	CodeTCPLost:         "tcp connection lost",
	CodeCRC:             "crc mismatch",
	CodeMarker:          "marker and length disagree",
	CodeBadFrame:        "invalid request or reply frame",
	CodeLocal:           "local catastrophic error",
	CodeInsufficientIRD: "insufficient ird resources",
	CodeNoRTR:           "no matching rtr option",
}

// String describes the error.
func (c Code) String() string {
	if c == 0 {
		return "ok"
	}
	if int(c) < len(codeText) {
		return codeText[c]
	}
	return fmt.Sprintf("mpa error %d", uint8(c))
}

// Error is an MPA error with what was found.
type Error struct {
	Code   Code
	Detail string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Detail == "" {
		return "mpa: " + e.Code.String()
	}
	return "mpa: " + e.Code.String() + ": " + e.Detail
}

func badFrame(format string, args ...any) *Error {
	return &Error{Code: CodeBadFrame, Detail: fmt.Sprintf(format, args...)}
}
