package verbs

import "testing"

func TestSoftwareDevicesPlaceAsTheKernelCopies(t *testing.T) {
	for _, c := range []struct {
		arch, release, flags string
		want                 bool
	}{
		{"amd64", "6.1.0-56-amd64\n", "fpu rep_good nopl", true},
		{"amd64", "6.1.0-56-amd64\n", "fpu erms", true},
		{"amd64", "6.1.0-56-amd64\n", "fpu nopl", false},
		{"amd64", "6.3.9", "rep_good", true},
		{"amd64", "6.4.0", "rep_good erms", false},
		{"amd64", "6.12.117+deb12-amd64", "rep_good erms", false},
		{"amd64", "6.12.117+deb12-amd64", "rep_good erms fsrm", true},
		{"amd64", "6.12.117+deb12-amd64", "rep_good erms nofsrm", false},
		{"amd64", "7.0.1", "fsrm", true},
		{"amd64", "odd", "fsrm", false},
		{"arm64", "6.1.0", "rep_good", false},
	} {
		info := "processor\t: 0\nflags\t\t: " + c.flags + "\nbugs\t\t:\n"
		if got := copiesUpwards(c.arch, c.release, info); got != c.want {
			t.Errorf("%s, %q, %q: %v", c.arch, c.release, c.flags, got)
		}
	}
}
