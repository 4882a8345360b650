package fused

import (
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// reserved keys are the protocol's own: those of an application are left out (grpc PROTOCOL-HTTP2.md, Custom-Metadata).
func reserved(key string) bool {
	if strings.HasPrefix(key, ":") {
		return true
	}
	switch key {
	case "content-type", "user-agent", "grpc-message-type", "grpc-encoding", "grpc-message", "grpc-status",
		"grpc-timeout", "te":
		return true
	}
	return false
}

// checkMD returns Internal for keys and values that HTTP/2 cannot carry, so that programs may change to it.
func checkMD(md metadata.MD) error {
	for key, values := range md {
		bad := func(what string) error { return status.Errorf(codes.Internal, "fused: header key %q %s", key, what) }
		switch {
		case key == "":
			return bad("is empty")
		case key[0] == ':':
			continue // left out later
		}
		for i := range len(key) {
			if c := key[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
				return bad("contains illegal characters not in [0-9a-z-_.]")
			}
		}
		if strings.HasSuffix(key, "-bin") {
			continue
		}
		for _, v := range values {
			for i := range len(v) {
				if v[i] < 0x20 || v[i] > 0x7e {
					return bad("contains value with non-printable ASCII characters")
				}
			}
		}
	}
	return nil
}

var plainType = []string{"application/grpc"}

func contentType(codec string) []string {
	if codec == "" {
		return plainType
	}
	return []string{"application/grpc+" + codec}
}

func withType(md metadata.MD, codec string) metadata.MD {
	all := make(metadata.MD, len(md)+1)
	maps.Copy(all, md)
	all["content-type"] = contentType(codec)
	return all
}

func tooLong(n, most int) error {
	return status.Errorf(codes.Internal,
		"fused: header list size to send violates the maximum size (%d bytes) set by the peer: it is %d", most, n)
}
