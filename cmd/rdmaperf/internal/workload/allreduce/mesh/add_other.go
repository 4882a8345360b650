//go:build !amd64

package mesh

// addVectors leaves everything to the caller's loop.
func addVectors(dst, a, b []float32) int { return 0 }
