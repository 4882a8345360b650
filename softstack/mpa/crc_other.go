//go:build !amd64

package mpa

import "hash/crc32"

func updateCRC(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }
