package main

// helper is laid into the package beside its files.
func (s *source) helper() string { return "package " + s.name + "\n" + helper }

const helper = `
import (
	"os"
	"syscall"
)

// The change that is made, and a place in a file for each number to say that it was reached.
var schemaNumber, schemaSeen = schemaBegin()

func schemaBegin() (number int, seen []byte) {
	for _, c := range os.Getenv("MUTATE_NUMBER") {
		number = 10*number + int(c-'0')
	}
	if f, err := os.OpenFile(os.Getenv("MUTATE_SEEN"), os.O_RDWR, 0); err == nil {
		defer f.Close()
		if i, err := f.Stat(); err == nil {
			seen, _ = syscall.Mmap(int(f.Fd()), 0, int(i.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		}
	}
	return number, seen
}

func schemaOn(n int) bool {
	if schemaSeen != nil {
		schemaSeen[n] = 1
	}
	return n == schemaNumber
}

type schemaInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}
type schemaReal interface{ schemaInteger | ~float32 | ~float64 }
type schemaField interface{ schemaReal | ~complex64 | ~complex128 }
type schemaOrdered interface{ schemaReal | ~string }

func schemaAdd[T schemaField](n int, a, b T) T {
	if schemaOn(n) {
		return a - b
	}
	return a + b
}

func schemaSub[T schemaField](n int, a, b T) T {
	if schemaOn(n) {
		return a + b
	}
	return a - b
}

func schemaMul[T schemaField](n int, a, b T) T {
	if schemaOn(n) {
		return a / b
	}
	return a * b
}

func schemaQuo[T schemaField](n int, a, b T) T {
	if schemaOn(n) {
		return a * b
	}
	return a / b
}

func schemaRem[T schemaInteger](n int, a, b T) T {
	if schemaOn(n) {
		return a * b
	}
	return a % b
}

func schemaNeg[T schemaField](n int, a T) T {
	if schemaOn(n) {
		return +a
	}
	return -a
}

func schemaLess[T schemaOrdered](n int, a, b T) bool {
	if schemaOn(n) {
		return a <= b
	}
	if schemaNumber == n+1 {
		return a >= b
	}
	return a < b
}

func schemaAtMost[T schemaOrdered](n int, a, b T) bool {
	if schemaOn(n) {
		return a < b
	}
	if schemaNumber == n+1 {
		return a > b
	}
	return a <= b
}

func schemaMore[T schemaOrdered](n int, a, b T) bool {
	if schemaOn(n) {
		return a >= b
	}
	if schemaNumber == n+1 {
		return a <= b
	}
	return a > b
}

func schemaAtLeast[T schemaOrdered](n int, a, b T) bool {
	if schemaOn(n) {
		return a > b
	}
	if schemaNumber == n+1 {
		return a < b
	}
	return a >= b
}

func schemaInc[T schemaField](n int, a *T) {
	if schemaOn(n) {
		*a--
	} else {
		*a++
	}
}

func schemaDec[T schemaField](n int, a *T) {
	if schemaOn(n) {
		*a++
	} else {
		*a--
	}
}
`
