#include "textflag.h"

// The sums of a kernel are Z0 to Z3, or Y0 to Y7, two of which are one Z: element i of a round of 64 is added to lane i.
// SI and DI are the vectors, CX is how many floats are left of them.

// mask: sixteen ones before sixteen zeros; what begins k ones before the zeros takes k floats.
DATA masks<>+0(SB)/8, $0xffffffffffffffff
DATA masks<>+8(SB)/8, $0xffffffffffffffff
DATA masks<>+16(SB)/8, $0xffffffffffffffff
DATA masks<>+24(SB)/8, $0xffffffffffffffff
DATA masks<>+32(SB)/8, $0xffffffffffffffff
DATA masks<>+40(SB)/8, $0xffffffffffffffff
DATA masks<>+48(SB)/8, $0xffffffffffffffff
DATA masks<>+56(SB)/8, $0xffffffffffffffff
DATA masks<>+64(SB)/8, $0
DATA masks<>+72(SB)/8, $0
DATA masks<>+80(SB)/8, $0
DATA masks<>+88(SB)/8, $0
DATA masks<>+96(SB)/8, $0
DATA masks<>+104(SB)/8, $0
DATA masks<>+112(SB)/8, $0
DATA masks<>+120(SB)/8, $0
GLOBL masks<>(SB), RODATA|NOPTR, $128

// Steps: load from SI at an offset, combine with DI at it, add to a sum.
#define DOT_Y(off, t, sum) \
	VMOVUPS off(SI), t \
	VFMADD231PS off(DI), t, sum

#define L2_Y(off, t, sum) \
	VMOVUPS off(SI), t \
	VSUBPS off(DI), t, t \
	VFMADD231PS t, t, sum

#define DOT_Z DOT_Y
#define L2_Z L2_Y

#define DOT_LAST_Y(mask, off, t, u, sum) \
	VMASKMOVPS off(SI), mask, t \
	VMASKMOVPS off(DI), mask, u \
	VFMADD231PS u, t, sum

#define L2_LAST_Y(mask, off, t, u, sum) \
	VMASKMOVPS off(SI), mask, t \
	VMASKMOVPS off(DI), mask, u \
	VSUBPS u, t, t \
	VFMADD231PS t, t, sum

#define DOT_LAST_Z(t, u, sum) \
	VMOVUPS.Z (SI), K1, t \
	VMOVUPS.Z (DI), K1, u \
	VFMADD231PS u, t, sum

#define L2_LAST_Z(t, u, sum) \
	VMOVUPS.Z (SI), K1, t \
	VMOVUPS.Z (DI), K1, u \
	VSUBPS u, t, t \
	VFMADD231PS t, t, sum

// KERNEL_Y leaves the sum over SI and DI in X0. It changes CX, SI, DI, AX and Y0 to Y15.
#define KERNEL_Y(STEP, LAST) \
	VXORPS Y0, Y0, Y0 \
	VXORPS Y1, Y1, Y1 \
	VXORPS Y2, Y2, Y2 \
	VXORPS Y3, Y3, Y3 \
	VXORPS Y4, Y4, Y4 \
	VXORPS Y5, Y5, Y5 \
	VXORPS Y6, Y6, Y6 \
	VXORPS Y7, Y7, Y7 \
	SUBQ $64, CX \
	JLT  blocks \
rounds: \
	STEP(0, Y8, Y0) \
	STEP(32, Y9, Y1) \
	STEP(64, Y10, Y2) \
	STEP(96, Y11, Y3) \
	STEP(128, Y12, Y4) \
	STEP(160, Y13, Y5) \
	STEP(192, Y14, Y6) \
	STEP(224, Y15, Y7) \
	ADDQ $256, SI \
	ADDQ $256, DI \
	SUBQ $64, CX \
	JGE  rounds \
blocks: \
	ADDQ $48, CX \
	JLT  last \
nextBlock: \
	STEP(0, Y8, Y0) \
	STEP(32, Y9, Y1) \
	ADDQ $64, SI \
	ADDQ $64, DI \
	SUBQ $16, CX \
	JGE  nextBlock \
last: \
	ADDQ $16, CX \
	JEQ  reduce \
	LEAQ masks<>+64(SB), AX \
	SHLQ $2, CX \
	SUBQ CX, AX \
	VMOVUPS (AX), Y8 \
	VMOVUPS 32(AX), Y9 \
	LAST(Y8, 0, Y10, Y11, Y2) \
	LAST(Y9, 32, Y12, Y13, Y3) \
reduce: \
	VADDPS Y2, Y0, Y0 \
	VADDPS Y3, Y1, Y1 \
	VADDPS Y6, Y4, Y4 \
	VADDPS Y7, Y5, Y5 \
	VADDPS Y4, Y0, Y0 \
	VADDPS Y5, Y1, Y1 \
	VADDPS Y1, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS X1, X0, X0 \
	VMOVHLPS X0, X0, X1 \
	VADDPS X1, X0, X0 \
	VMOVSHDUP X0, X1 \
	VADDSS X1, X0, X0

// KERNEL_Z is KERNEL_Y in registers twice as wide. It changes CX, SI, DI, AX, K1 and Z0 to Z7.
#define KERNEL_Z(STEP, LAST) \
	VPXORQ Z0, Z0, Z0 \
	VPXORQ Z1, Z1, Z1 \
	VPXORQ Z2, Z2, Z2 \
	VPXORQ Z3, Z3, Z3 \
	SUBQ $64, CX \
	JLT  blocks \
rounds: \
	STEP(0, Z4, Z0) \
	STEP(64, Z5, Z1) \
	STEP(128, Z6, Z2) \
	STEP(192, Z7, Z3) \
	ADDQ $256, SI \
	ADDQ $256, DI \
	SUBQ $64, CX \
	JGE  rounds \
blocks: \
	ADDQ $48, CX \
	JLT  last \
nextBlock: \
	STEP(0, Z4, Z0) \
	ADDQ $64, SI \
	ADDQ $64, DI \
	SUBQ $16, CX \
	JGE  nextBlock \
last: \
	ADDQ $16, CX \
	JEQ  reduce \
	MOVL $1, AX \
	SHLXL CX, AX, AX \
	DECL AX \
	KMOVW AX, K1 \
	LAST(Z4, Z5, Z1) \
reduce: \
	VADDPS Z1, Z0, Z0 \
	VADDPS Z3, Z2, Z2 \
	VADDPS Z2, Z0, Z0 \
	VEXTRACTF64X4 $1, Z0, Y1 \
	VADDPS Y1, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS X1, X0, X0 \
	VMOVHLPS X0, X0, X1 \
	VADDPS X1, X0, X0 \
	VMOVSHDUP X0, X1 \
	VADDSS X1, X0, X0

// func dotAVX2(a, b *float32, n int) float32
TEXT ·dotAVX2(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ n+16(FP), CX
	KERNEL_Y(DOT_Y, DOT_LAST_Y)
	VZEROUPPER
	MOVSS X0, ret+24(FP)
	RET

// func dotAVX512(a, b *float32, n int) float32
TEXT ·dotAVX512(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ n+16(FP), CX
	KERNEL_Z(DOT_Z, DOT_LAST_Z)
	VZEROUPPER
	MOVSS X0, ret+24(FP)
	RET

// func l2AVX2(a, b *float32, n int) float32
TEXT ·l2AVX2(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ n+16(FP), CX
	KERNEL_Y(L2_Y, L2_LAST_Y)
	VZEROUPPER
	MOVSS X0, ret+24(FP)
	RET

// func l2AVX512(a, b *float32, n int) float32
TEXT ·l2AVX512(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ n+16(FP), CX
	KERNEL_Z(L2_Z, L2_LAST_Z)
	VZEROUPPER
	MOVSS X0, ret+24(FP)
	RET

// ROW_ADDRESS makes the row number in AX, below 2^32, the address to. R10 is the chunks' headers, 24 bytes each, R11 the shift, R12 the
// stride. It changes AX and BX.
#define ROW_ADDRESS(to) \
	SHRXQ R11, AX, BX \
	LEAQ (BX)(BX*2), to \
	MOVQ (R10)(to*8), to \
	SHLXQ R11, BX, BX \
	SUBQ BX, AX \
	IMULQ R12, AX \
	ADDQ AX, to

// FETCH asks for the row at R9: its first 512 bytes, which is where the processor has seen enough to go on by itself.
#define FETCH \
	PREFETCHT0 (R9) \
	PREFETCHT0 64(R9) \
	PREFETCHT0 128(R9) \
	PREFETCHT0 192(R9) \
	PREFETCHT0 256(R9) \
	PREFETCHT0 320(R9) \
	PREFETCHT0 384(R9) \
	PREFETCHT0 448(R9)

// AHEAD is how many rows are on their way while one is measured.
#define AHEAD 4

// ROWS runs KERNEL for each of the R15 rows whose numbers are at R13 and stores the low 32 bits of X0 at DX. The query is at R8
// and R14 long.
#define ROWS(KERNEL) \
	XORL CX, CX \
ask: \
	MOVL (R13)(CX*4), AX \
	ROW_ADDRESS(R9) \
	FETCH \
	INCQ CX \
	CMPQ CX, R15 \
	JGE  next \
	CMPQ CX, $AHEAD \
	JLT  ask \
next: \
	CMPQ R15, $AHEAD \
	JLE  run \
	MOVL (4*AHEAD)(R13), AX \
	ROW_ADDRESS(R9) \
	FETCH \
run: \
	MOVL (R13), AX \
	ROW_ADDRESS(DI) \
	ADDQ $4, R13 \
	MOVQ R8, SI \
	MOVQ R14, CX \
	KERNEL \
	VMOVD X0, (DX) \
	ADDQ $4, DX \
	DECQ R15 \
	JNE  next

// func dotRowsAVX2(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)
TEXT ·dotRowsAVX2(SB), NOSPLIT, $0-64
	MOVQ query+0(FP), R8
	MOVQ n+8(FP), R14
	MOVQ chunks+16(FP), R10
	MOVQ shift+24(FP), R11
	MOVQ stride+32(FP), R12
	MOVQ at+40(FP), R13
	MOVQ count+48(FP), R15
	MOVQ out+56(FP), DX
	ROWS(KERNEL_Y(DOT_Y, DOT_LAST_Y))
	VZEROUPPER
	RET

// func dotRowsAVX512(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)
TEXT ·dotRowsAVX512(SB), NOSPLIT, $0-64
	MOVQ query+0(FP), R8
	MOVQ n+8(FP), R14
	MOVQ chunks+16(FP), R10
	MOVQ shift+24(FP), R11
	MOVQ stride+32(FP), R12
	MOVQ at+40(FP), R13
	MOVQ count+48(FP), R15
	MOVQ out+56(FP), DX
	ROWS(KERNEL_Z(DOT_Z, DOT_LAST_Z))
	VZEROUPPER
	RET

// func l2RowsAVX2(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)
TEXT ·l2RowsAVX2(SB), NOSPLIT, $0-64
	MOVQ query+0(FP), R8
	MOVQ n+8(FP), R14
	MOVQ chunks+16(FP), R10
	MOVQ shift+24(FP), R11
	MOVQ stride+32(FP), R12
	MOVQ at+40(FP), R13
	MOVQ count+48(FP), R15
	MOVQ out+56(FP), DX
	ROWS(KERNEL_Y(L2_Y, L2_LAST_Y))
	VZEROUPPER
	RET

// func l2RowsAVX512(query *float32, n int, chunks *[]float32, shift uint, stride int, at *uint32, count int, out *float32)
TEXT ·l2RowsAVX512(SB), NOSPLIT, $0-64
	MOVQ query+0(FP), R8
	MOVQ n+8(FP), R14
	MOVQ chunks+16(FP), R10
	MOVQ shift+24(FP), R11
	MOVQ stride+32(FP), R12
	MOVQ at+40(FP), R13
	MOVQ count+48(FP), R15
	MOVQ out+56(FP), DX
	ROWS(KERNEL_Z(L2_Z, L2_LAST_Z))
	VZEROUPPER
	RET

// INT8_Y adds up the products of the CX bytes, a multiple of 16, at SI and DI in X0. Two running sums hide the latency.
#define INT8_Y \
	VPXOR Y0, Y0, Y0 \
	VPXOR Y1, Y1, Y1 \
	SUBQ $32, CX \
	JLT  half \
whole: \
	VPMOVSXBW (SI), Y2 \
	VPMOVSXBW (DI), Y3 \
	VPMOVSXBW 16(SI), Y4 \
	VPMOVSXBW 16(DI), Y5 \
	VPMADDWD Y3, Y2, Y2 \
	VPMADDWD Y5, Y4, Y4 \
	VPADDD Y2, Y0, Y0 \
	VPADDD Y4, Y1, Y1 \
	ADDQ $32, SI \
	ADDQ $32, DI \
	SUBQ $32, CX \
	JGE  whole \
half: \
	ADDQ $32, CX \
	JEQ  add \
	VPMOVSXBW (SI), Y2 \
	VPMOVSXBW (DI), Y3 \
	VPMADDWD Y3, Y2, Y2 \
	VPADDD Y2, Y0, Y0 \
add: \
	VPADDD Y1, Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1 \
	VPADDD X1, X0, X0 \
	VPSHUFD $0x4e, X0, X1 \
	VPADDD X1, X0, X0 \
	VPSHUFD $0xb1, X0, X1 \
	VPADDD X1, X0, X0

// func dotInt8AVX2(query *int8, n int, chunks *[]int8, shift uint, stride int, at *uint32, count int, out *int32)
TEXT ·dotInt8AVX2(SB), NOSPLIT, $0-64
	MOVQ query+0(FP), R8
	MOVQ n+8(FP), R14
	MOVQ chunks+16(FP), R10
	MOVQ shift+24(FP), R11
	MOVQ stride+32(FP), R12
	MOVQ at+40(FP), R13
	MOVQ count+48(FP), R15
	MOVQ out+56(FP), DX
	ROWS(INT8_Y)
	VZEROUPPER
	RET

// func signSumsAVX512(biased *uint8, words int, chunks *[]uint64, shift uint, stride int, at *uint32, count int, out *int32)
//
// A word of a row is the mask of the 64 numbers taken. As each has 128 too many, so many times that is taken off as bits are set.
TEXT ·signSumsAVX512(SB), NOSPLIT, $0-64
	MOVQ biased+0(FP), R8
	MOVQ words+8(FP), R14
	MOVQ chunks+16(FP), R10
	MOVQ shift+24(FP), R11
	MOVQ stride+32(FP), R12
	MOVQ at+40(FP), R13
	MOVQ count+48(FP), R15
	MOVQ out+56(FP), DX
	VPXORQ Z2, Z2, Z2

row:
	MOVL (R13), AX
	ROW_ADDRESS(DI)
	ADDQ $4, R13
	MOVQ R8, SI
	MOVQ R14, CX
	XORL R9, R9
	VPXORQ Z0, Z0, Z0

word:
	MOVQ (DI), AX
	KMOVQ AX, K1
	POPCNTQ AX, BX
	ADDQ BX, R9
	VMOVDQU8.Z (SI), K1, Z1
	VPSADBW Z2, Z1, Z1
	VPADDQ Z1, Z0, Z0
	ADDQ $8, DI
	ADDQ $64, SI
	DECQ CX
	JNE  word

	VEXTRACTI64X4 $1, Z0, Y1
	VPADDQ Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPADDQ X1, X0, X0
	VMOVQ X0, AX
	SHLQ $7, R9
	SUBQ R9, AX
	MOVL AX, (DX)
	ADDQ $4, DX
	DECQ R15
	JNE  row
	VZEROUPPER
	RET

// bytesOf has each of 32 bytes name the byte of its bit, bitsOf has the bit.
DATA bytesOf<>+0(SB)/8, $0x0000000000000000
DATA bytesOf<>+8(SB)/8, $0x0101010101010101
DATA bytesOf<>+16(SB)/8, $0x0202020202020202
DATA bytesOf<>+24(SB)/8, $0x0303030303030303
GLOBL bytesOf<>(SB), RODATA|NOPTR, $32
DATA bitsOf<>+0(SB)/8, $0x8040201008040201
DATA bitsOf<>+8(SB)/8, $0x8040201008040201
DATA bitsOf<>+16(SB)/8, $0x8040201008040201
DATA bitsOf<>+24(SB)/8, $0x8040201008040201
GLOBL bitsOf<>(SB), RODATA|NOPTR, $32

// TAKE adds up in sum those of the 32 biased numbers at from whose bits are set in the 32 at bits. It changes t.
#define TAKE(bits, from, t, sum) \
	VPBROADCASTD bits, t \
	VPSHUFB Y14, t, t \
	VPAND Y15, t, t \
	VPCMPEQB Y15, t, t \
	VPAND from, t, t \
	VPSADBW Y13, t, t \
	VPADDQ t, sum, sum

// func signSumsAVX2(biased *uint8, words int, chunks *[]uint64, shift uint, stride int, at *uint32, count int, out *int32)
//
// It is signSumsAVX512 with masks of bytes. Rows are short, so that the first line is asked for ahead alone.
TEXT ·signSumsAVX2(SB), NOSPLIT, $0-64
	MOVQ biased+0(FP), R8
	MOVQ words+8(FP), R14
	MOVQ chunks+16(FP), R10
	MOVQ shift+24(FP), R11
	MOVQ stride+32(FP), R12
	MOVQ at+40(FP), R13
	MOVQ count+48(FP), R15
	MOVQ out+56(FP), DX
	VMOVDQU bytesOf<>(SB), Y14
	VMOVDQU bitsOf<>(SB), Y15
	VPXOR Y13, Y13, Y13

row:
	CMPQ R15, $AHEAD
	JLE  sum
	MOVL (4*AHEAD)(R13), AX
	ROW_ADDRESS(R9)
	PREFETCHT0 (R9)

sum:
	MOVL (R13), AX
	ROW_ADDRESS(DI)
	ADDQ $4, R13
	MOVQ R8, SI
	MOVQ R14, CX
	XORL R9, R9
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

word:
	POPCNTQ (DI), BX
	ADDQ BX, R9
	TAKE((DI), (SI), Y2, Y0)
	TAKE(4(DI), 32(SI), Y3, Y1)
	ADDQ $8, DI
	ADDQ $64, SI
	DECQ CX
	JNE  word

	VPADDQ Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPADDQ X1, X0, X0
	VMOVQ X0, AX
	SHLQ $7, R9
	SUBQ R9, AX
	MOVL AX, (DX)
	ADDQ $4, DX
	DECQ R15
	JNE  row
	VZEROUPPER
	RET

// func scaleAVX2(dst, v *float32, n int, by float32)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ v+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS by+24(FP), Y0

multiply:
	VMULPS (SI), Y0, Y1
	VMOVUPS Y1, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNE  multiply
	VZEROUPPER
	RET

// func fromF16AVX512(dst *float32, src *byte, n int)
TEXT ·fromF16AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

convert:
	VCVTPH2PS (SI), Z0
	VMOVUPS Z0, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNE  convert
	VZEROUPPER
	RET

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	RET
