#include "textflag.h"

// func foldCRC(p *byte, n int, state uint32, k *[4]uint64) uint32
//
// Folds n octets (a multiple of 64, at least 256) into 64 that have the same
// CRC: four accumulators of 512 bits, each multiplied past the 2048 bits that
// follow it, then joined past 512. The CRC32 instruction takes the last 64; the
// register starts at zero for them, because the old state is in them.
TEXT ·foldCRC(SB), NOSPLIT, $64-36
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL state+16(FP), AX
	MOVQ k+24(FP), DX

	VBROADCASTI32X4 (DX), Z8   // past 2048 bits
	VBROADCASTI32X4 16(DX), Z9 // past 512 bits

	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVD     AX, X4           // clears the rest of Z4
	VPXORQ    Z4, Z0, Z0
	ADDQ      $256, SI
	SUBQ      $256, CX
	CMPQ      CX, $256
	JB        join

loop:
	VPCLMULQDQ $0x00, Z8, Z0, Z4
	VPCLMULQDQ $0x11, Z8, Z0, Z0
	VPCLMULQDQ $0x00, Z8, Z1, Z5
	VPCLMULQDQ $0x11, Z8, Z1, Z1
	VPCLMULQDQ $0x00, Z8, Z2, Z6
	VPCLMULQDQ $0x11, Z8, Z2, Z2
	VPCLMULQDQ $0x00, Z8, Z3, Z7
	VPCLMULQDQ $0x11, Z8, Z3, Z3
	VPTERNLOGQ $0x96, (SI), Z4, Z0
	VPTERNLOGQ $0x96, 64(SI), Z5, Z1
	VPTERNLOGQ $0x96, 128(SI), Z6, Z2
	VPTERNLOGQ $0x96, 192(SI), Z7, Z3
	ADDQ       $256, SI
	SUBQ       $256, CX
	CMPQ       CX, $256
	JAE        loop

join:
	VPCLMULQDQ $0x00, Z9, Z0, Z4
	VPCLMULQDQ $0x11, Z9, Z0, Z0
	VPTERNLOGQ $0x96, Z0, Z4, Z1
	VPCLMULQDQ $0x00, Z9, Z1, Z4
	VPCLMULQDQ $0x11, Z9, Z1, Z1
	VPTERNLOGQ $0x96, Z1, Z4, Z2
	VPCLMULQDQ $0x00, Z9, Z2, Z4
	VPCLMULQDQ $0x11, Z9, Z2, Z2
	VPTERNLOGQ $0x96, Z2, Z4, Z3

rest:
	CMPQ       CX, $64
	JB         done
	VPCLMULQDQ $0x00, Z9, Z3, Z4
	VPCLMULQDQ $0x11, Z9, Z3, Z3
	VPTERNLOGQ $0x96, (SI), Z4, Z3
	ADDQ       $64, SI
	SUBQ       $64, CX
	JMP        rest

done:
	VMOVDQU64 Z3, acc-64(SP)
	VZEROUPPER
	XORQ      AX, AX
	CRC32Q    acc-64(SP), AX
	CRC32Q    acc-56(SP), AX
	CRC32Q    acc-48(SP), AX
	CRC32Q    acc-40(SP), AX
	CRC32Q    acc-32(SP), AX
	CRC32Q    acc-24(SP), AX
	CRC32Q    acc-16(SP), AX
	CRC32Q    acc-8(SP), AX
	MOVL      AX, ret+32(FP)
	RET
