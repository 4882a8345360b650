package claims

import "slices"

// All are the papers, in the order of their command's help.
var All = []*Paper{&srdma, &lite, &registration, &softrdma, &rrcompound, &peers, &self}

// Has tells whether the paper has a claim.
func (p *Paper) Has(id string) bool {
	return slices.ContainsFunc(p.Claims, func(c Claim) bool { return c.ID == id })
}
