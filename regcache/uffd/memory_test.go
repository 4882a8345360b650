package uffd

import "unsafe"

func slice(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }
func ptr(b []byte) unsafe.Pointer          { return unsafe.Pointer(unsafe.SliceData(b)) }
