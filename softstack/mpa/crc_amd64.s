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

// PCLMUL multiplies the low (imm 0x00) or high (0x11) halves of each 128 bits of Y<s> and
// Y<k> into Y<d>; registers are numbers below 8. The assembler knows the form of AVX-512
// alone, so this is the one of VEX by hand (Intel SDM vol. 2, VPCLMULQDQ).
#define PCLMUL(imm, k, s, d) BYTE $0xC4; BYTE $0xE3; BYTE $((15-s)*8+5); BYTE $0x44; BYTE $(0xC0+d*8+k); BYTE $imm

// FOLD multiplies Y<s> past what follows, and adds what lies at off(SI).
#define FOLD(s, S, off) PCLMUL(0x00, 6, s, 4); PCLMUL(0x11, 6, s, s); VPXOR off(SI), Y4, Y4; VPXOR Y4, S, S

// JOIN multiplies Y<s> past 256 bits and adds it to T.
#define JOIN(s, S, T) PCLMUL(0x00, 7, s, 4); PCLMUL(0x11, 7, s, s); VPXOR Y4, T, T; VPXOR S, T, T

// func foldCRC256(p *byte, n int, state uint32, k *[4]uint64) uint32
//
// The same with vectors of 256 bits, for processors without AVX-512: n is a multiple of
// 32, at least 128; four accumulators go past 1024 bits.
TEXT ·foldCRC256(SB), NOSPLIT, $32-36
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL state+16(FP), AX
	MOVQ k+24(FP), DX

	VBROADCASTI128 (DX), Y6   // past 1024 bits
	VBROADCASTI128 16(DX), Y7 // past 256 bits

	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVD   AX, X4           // clears the rest of Y4
	VPXOR   Y4, Y0, Y0
	ADDQ    $128, SI
	SUBQ    $128, CX
	CMPQ    CX, $128
	JB      join

loop:
	FOLD(0, Y0, 0)
	FOLD(1, Y1, 32)
	FOLD(2, Y2, 64)
	FOLD(3, Y3, 96)
	ADDQ $128, SI
	SUBQ $128, CX
	CMPQ CX, $128
	JAE  loop

join:
	JOIN(0, Y0, Y1)
	JOIN(1, Y1, Y2)
	JOIN(2, Y2, Y3)

rest:
	CMPQ CX, $32
	JB   done
	PCLMUL(0x00, 7, 3, 4)
	PCLMUL(0x11, 7, 3, 3)
	VPXOR (SI), Y4, Y4
	VPXOR Y4, Y3, Y3
	ADDQ $32, SI
	SUBQ $32, CX
	JMP  rest

done:
	VMOVDQU Y3, acc-32(SP)
	VZEROUPPER
	XORQ   AX, AX
	CRC32Q acc-32(SP), AX
	CRC32Q acc-24(SP), AX
	CRC32Q acc-16(SP), AX
	CRC32Q acc-8(SP), AX
	MOVL   AX, ret+32(FP)
	RET

// func features7() (ecx uint32): CPUID leaf 7, subleaf 0.
TEXT ·features7(SB), NOSPLIT, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	MOVL CX, ecx+0(FP)
	RET

// func cycles() uint64
TEXT ·cycles(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// CRC3 takes 8 octets of each of three runs of 1024.
#define CRC3(off) CRC32Q off(BX), R8; CRC32Q (off+1024)(BX), R9; CRC32Q (off+2048)(BX), R10

// SHIFT moves the CRC in r past what the multiplier at k says: X4 and X5 are scratch.
#define SHIFT(k, r) MOVL r, R11; VMOVQ R11, X4; VMOVQ k(DX), X5; VPCLMULQDQ $0x00, X5, X4, X4; VMOVQ X4, R11; XORL r, r; CRC32Q R11, r

// func mixCRC(p *byte, blocks int, state uint32, k *[7]uint64) uint32
//
// Takes blocks of 7168 octets, at least one: the first 4096 by folding 256-bit vectors, as
// foldCRC256, while the CRC32 instruction, which has a unit of its own, takes the other 3072
// as three runs of 1024, so that its latency is hidden. The four CRCs are then shifted past
// what follows each and added.
TEXT ·mixCRC(SB), NOSPLIT, $32-36
	MOVQ p+0(FP), SI
	MOVQ blocks+8(FP), DI
	MOVL state+16(FP), AX
	MOVQ k+24(FP), DX

	VBROADCASTI128 (DX), Y6   // past 1024 bits
	VBROADCASTI128 16(DX), Y7 // past 256 bits

block:
	LEAQ 4096(SI), BX
	MOVQ $31, CX
	XORL R8, R8
	XORL R9, R9
	XORL R10, R10
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVD   AX, X4
	VPXOR   Y4, Y0, Y0
	CRC3(0)
	CRC3(8)
	CRC3(16)
	CRC3(24)

loop:
	ADDQ $128, SI
	ADDQ $32, BX
	FOLD(0, Y0, 0)
	CRC3(0)
	FOLD(1, Y1, 32)
	CRC3(8)
	FOLD(2, Y2, 64)
	CRC3(16)
	FOLD(3, Y3, 96)
	CRC3(24)
	DECQ CX
	JNE  loop

	JOIN(0, Y0, Y1)
	JOIN(1, Y1, Y2)
	JOIN(2, Y2, Y3)
	VMOVDQU Y3, acc-32(SP)
	XORL    AX, AX
	CRC32Q  acc-32(SP), AX
	CRC32Q  acc-24(SP), AX
	CRC32Q  acc-16(SP), AX
	CRC32Q  acc-8(SP), AX
	SHIFT(32, AX)
	SHIFT(40, R8)
	SHIFT(48, R9)
	XORL    R8, AX
	XORL    R9, AX
	XORL    R10, AX
	LEAQ    3200(SI), SI // 128 behind the last vectors, and the three runs
	DECQ    DI
	JNE     block

	VZEROUPPER
	MOVL AX, ret+32(FP)
	RET

// CRC3W is CRC3 of runs of 1536, and CRC9W three of it.
#define CRC3W(off) CRC32Q off(BX), R8; CRC32Q (off+1536)(BX), R9; CRC32Q (off+3072)(BX), R10
#define CRC9W(off) CRC3W(off); CRC3W(off+8); CRC3W(off+16)

// FOLD512 multiplies S past 2048 bits, and adds what lies at off(SI).
#define FOLD512(off, S, T) VPCLMULQDQ $0x00, Z8, S, T; VPCLMULQDQ $0x11, Z8, S, S; VPTERNLOGQ $0x96, off(SI), T, S

// JOIN512 multiplies S past 512 bits and adds it to T.
#define JOIN512(S, T) VPCLMULQDQ $0x00, Z9, S, Z4; VPCLMULQDQ $0x11, Z9, S, S; VPTERNLOGQ $0x96, S, Z4, T

// func mixCRC512(p *byte, blocks int, state uint32, k *[7]uint64) uint32
//
// As mixCRC with vectors of 512 bits: blocks of 12800 octets, of which the first 8192 are
// folded, as foldCRC, and the other 4608 are three runs of 1536. The next block is fetched
// meanwhile, 400 octets a turn: a processor that sees four streams at once, each for a few
// KiB, fetches less ahead than of one, and 1 MiB that comes from the L3 cache took longer.
TEXT ·mixCRC512(SB), NOSPLIT, $64-36
	MOVQ p+0(FP), SI
	MOVQ blocks+8(FP), DI
	MOVL state+16(FP), AX
	MOVQ k+24(FP), DX

	VBROADCASTI32X4 (DX), Z8   // past 2048 bits
	VBROADCASTI32X4 16(DX), Z9 // past 512 bits

block:
	LEAQ 8192(SI), BX
	LEAQ 12800(SI), R12
	MOVQ $31, CX
	XORL R8, R8
	XORL R9, R9
	XORL R10, R10
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVD     AX, X4
	VPXORQ    Z4, Z0, Z0
	CRC9W(0)
	CRC9W(24)

loop:
	ADDQ $256, SI
	ADDQ $48, BX
	ADDQ $400, R12
	PREFETCHT0 (R12)
	PREFETCHT0 64(R12)
	PREFETCHT0 128(R12)
	PREFETCHT0 192(R12)
	PREFETCHT0 256(R12)
	PREFETCHT0 320(R12)
	PREFETCHT0 384(R12)
	FOLD512(0, Z0, Z4)
	CRC3W(0)
	CRC3W(8)
	FOLD512(64, Z1, Z5)
	CRC3W(16)
	FOLD512(128, Z2, Z6)
	CRC3W(24)
	CRC3W(32)
	FOLD512(192, Z3, Z7)
	CRC3W(40)
	DECQ CX
	JNE  loop

	JOIN512(Z0, Z1)
	JOIN512(Z1, Z2)
	JOIN512(Z2, Z3)
	VMOVDQU64 Z3, acc-64(SP)
	XORL      AX, AX
	CRC32Q    acc-64(SP), AX
	CRC32Q    acc-56(SP), AX
	CRC32Q    acc-48(SP), AX
	CRC32Q    acc-40(SP), AX
	CRC32Q    acc-32(SP), AX
	CRC32Q    acc-24(SP), AX
	CRC32Q    acc-16(SP), AX
	CRC32Q    acc-8(SP), AX
	SHIFT(32, AX)
	SHIFT(40, R8)
	SHIFT(48, R9)
	XORL    R8, AX
	XORL    R9, AX
	XORL    R10, AX
	LEAQ    4864(SI), SI // 256 behind the last vectors, and the three runs
	DECQ    DI
	JNE     block

	VZEROUPPER
	MOVL AX, ret+32(FP)
	RET
