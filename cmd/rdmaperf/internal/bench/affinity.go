package bench

import "golang.org/x/sys/unix"

// AllowedCPUs lists the CPUs that this process may run on, in rising order.
func AllowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// pinThread binds the calling thread to one CPU and tells whether it worked.
// Whoever is not allowed to use that CPU goes on unpinned; results say so.
func pinThread(cpu int) bool {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set) == nil
}
