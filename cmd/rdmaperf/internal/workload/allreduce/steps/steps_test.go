package steps

import "testing"

// What one sends is what the other expects, for any number of ranks and elements.
func TestEveryRankHasTheSum(t *testing.T) {
	for _, algorithm := range Algorithms() {
		for p := 1; p <= 9; p++ {
			for _, n := range []int{0, 1, 2, 3, 7, 8, 16, 33} {
				lists, data := make([][]Step, p), make([][]int, p)
				type way struct{ from, to int }
				wire := map[way][][]int{}
				for r := range p {
					var err error
					if lists[r], err = Of(algorithm, r, p, n); err != nil {
						t.Fatal(err)
					}
					for i := range n {
						data[r] = append(data[r], (r+1)*100+i)
					}
				}
				sent := make([]bool, p)
				for moved := true; moved; {
					moved = false
					for r := range p {
						if len(lists[r]) == 0 {
							continue
						}
						s := lists[r][0]
						if !sent[r] && s.SendTo >= 0 && s.Send.N > 0 {
							w := way{r, s.SendTo}
							wire[w] = append(wire[w], append([]int(nil), data[r][s.Send.Off:s.Send.Off+s.Send.N]...))
							moved = true
						}
						sent[r] = true
						if s.RecvFrom >= 0 && s.Recv.N > 0 {
							w := way{s.RecvFrom, r}
							if len(wire[w]) == 0 {
								continue
							}
							got := wire[w][0]
							wire[w] = wire[w][1:]
							if len(got) != s.Recv.N {
								t.Fatalf("%s, %d ranks, %d elements: %d arrive where %d are expected", algorithm, p, n,
									len(got), s.Recv.N)
							}
							for i, v := range got {
								if s.Add {
									data[r][s.Recv.Off+i] += v
								} else {
									data[r][s.Recv.Off+i] = v
								}
							}
						}
						lists[r], sent[r], moved = lists[r][1:], false, true
					}
				}
				for r := range p {
					if len(lists[r]) > 0 {
						t.Fatalf("%s, %d ranks, %d elements: rank %d hangs at %+v", algorithm, p, n, r, lists[r][0])
					}
					for i, v := range data[r] {
						if want := p*(p+1)/2*100 + p*i; v != want {
							t.Fatalf("%s, %d ranks, %d elements: rank %d has %d at %d, want %d", algorithm, p, n, r, v,
								i, want)
						}
					}
				}
			}
		}
	}
	if _, err := Of("tree", 0, 2, 1); err == nil {
		t.Error("an unknown algorithm has steps")
	}
}

// Of a power of two of ranks, ring and halving move 2(p-1)/p of the vector from each, the least possible.
func TestWhatMovesInHowManySteps(t *testing.T) {
	for log, p := range map[int]int{1: 2, 2: 4, 3: 8} {
		least := 2 * (p - 1) * 8000 / p
		for algorithm, want := range map[string][2]int{"ring": {least, 2 * (p - 1)}, "halving": {least, 2 * log},
			"doubling": {8000 * log, log}} {
			list, _ := Of(algorithm, 1, p, 8000)
			sum := 0
			for _, s := range list {
				sum += s.Send.N
			}
			if sum != want[0] || len(list) != want[1] {
				t.Errorf("%s of %d ranks sends %d elements in %d steps, want %v", algorithm, p, sum, len(list), want)
			}
		}
	}
}
