package devices

import (
	"fmt"
	"strconv"
	"strings"
)

// Octets around the payload of a packet. RoCE v2: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap
// 12 (IBTA annex 17, IEEE 802.3). InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2 (IBTA 5.2).
const (
	aroundRoCE       = 82
	aroundInfiniBand = 26

	// leastMTU is taken where nobody says the MTU of a path.
	leastMTU = 1024

	// pcieShare of a PCIe link is payload: packets of 256 bytes have 24 around them (PCIe base specification 2.2).
	pcieShare = 256. / (256 + 24)
)

// Expected is what a healthy path through a port carries one way, bytes a second, by its link and slot; 0: not known,
// as of software devices and of iWARP.
func (d *Device) Expected(p *Port) float64 {
	text, unit, _ := strings.Cut(p.Rate, " ")
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.HasPrefix(unit, "Gb/sec") || d.Software || d.NodeType == "RNIC" {
		return 0
	}
	mtu, around := float64(max(p.MTU, leastMTU)), aroundRoCE
	if p.MTU > 0 {
		mtu = float64(p.MTU)
	}
	if p.LinkLayer == "InfiniBand" {
		around = aroundInfiniBand
	}
	expected := rate * 1e9 / 8 * mtu / (mtu + float64(around))
	if slot := d.slot(); slot > 0 {
		expected = min(expected, slot)
	}
	return expected
}

func (d *Device) slot() float64 {
	text, _, _ := strings.Cut(d.PCIeSpeed, " ") // "16.0 GT/s PCIe"
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || d.PCIeWidth == 0 {
		return 0
	}
	coding := 128. / 130
	if speed <= 5 {
		coding = 8. / 10
	}
	return speed * 1e9 / 8 * float64(d.PCIeWidth) * coding * pcieShare
}

// PCIe is the device's link in words, "" where it is not known.
func (d *Device) PCIe() string {
	if d.PCIeSpeed == "" || d.PCIeWidth == 0 {
		return ""
	}
	return fmt.Sprintf("%s x%d", d.PCIeSpeed, d.PCIeWidth)
}
