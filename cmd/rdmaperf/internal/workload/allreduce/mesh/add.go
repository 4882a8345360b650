package mesh

// add puts a + b into dst, which may be one of them. All have the length of dst or more.
func add(dst, a, b []float32) {
	n := addVectors(dst, a, b)
	dst, a, b = dst[n:], a[n:len(dst)], b[n:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
