/* SPDX-License-Identifier: MIT */
/*
 * Every kind of call that the calling convention knows: arguments and results in all classes of
 * registers and on the stack, variadic calls, tail calls, leaf functions with a red zone, static
 * functions, calls through pointers, recursion. The results are printed; a register or a stack word
 * that tracing disturbed shows there.
 */
#include "tests/programs/count.h"
#include <complex.h>
#include <errno.h>
#include <immintrin.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct small {
	int a, b;
};
struct mixed {
	double d;
	long l;
};
struct big {
	long v[6];
};

COUNTED long twenty(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
		    long k, long l, long m, long n, long o, long p, long q, long r, long s, long t)
{
	ENTER();
	long sum = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j +
		   11 * k + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p + 17 * q + 18 * r + 19 * s +
		   20 * t;
	LEAVE();
	return sum;
}

COUNTED double doubles(double a, double b, double c, double d, double e, double f, double g,
		       double h, double i, double j, float k)
{
	ENTER();
	double sum = a - 2 * b + 3 * c - 4 * d + 5 * e - 6 * f + 7 * g - 8 * h + 9 * i - 10 * j + k;
	LEAVE();
	return sum;
}

COUNTED float one_float(float a, int b, float c)
{
	ENTER();
	float r = a * (float)b + c;
	LEAVE();
	return r;
}

COUNTED long double long_doubles(long double a, long double b, long c)
{
	ENTER();
	long double r = a * b + (long double)c;
	LEAVE();
	return r;
}

COUNTED _Complex long double complex_long(long double a, long double b)
{
	ENTER();
	_Complex long double r = a + b * I;
	LEAVE();
	return r * r;
}

COUNTED _Complex double complex_double(double a, double b)
{
	ENTER();
	_Complex double r = a + b * I;
	LEAVE();
	return r + r;
}

COUNTED __int128 wide(__int128 a, __int128 b, long c)
{
	ENTER();
	__int128 r = a * b + c;
	LEAVE();
	return r;
}

COUNTED struct small small_struct(int a, struct small b)
{
	ENTER();
	struct small r = { a + b.b, a - b.a };
	LEAVE();
	return r;
}

COUNTED struct mixed mixed_struct(struct mixed a, double b)
{
	ENTER();
	struct mixed r = { a.d + b, a.l + 1 };
	LEAVE();
	return r;
}

COUNTED struct big big_struct(struct big a, long b)
{
	ENTER();
	struct big r;
	for (int i = 0; i < 6; i++)
		r.v[i] = a.v[5 - i] + b * i;
	LEAVE();
	return r;
}

COUNTED long ints_by_list(int n, ...)
{
	ENTER();
	va_list list;
	long sum = 0;
	va_start(list, n);
	for (int i = 0; i < n; i++)
		sum = sum * 3 + va_arg(list, long);
	va_end(list);
	LEAVE();
	return sum;
}

COUNTED double doubles_by_list(int n, ...)
{
	ENTER();
	va_list list;
	double sum = 0;
	va_start(list, n);
	for (int i = 0; i < n; i++)
		sum = sum / 2 + va_arg(list, double) + va_arg(list, int);
	va_end(list);
	LEAVE();
	return sum;
}

__attribute__((target("avx"))) COUNTED __m256d avx(__m256d a, __m256d b, double c)
{
	ENTER();
	__m256d r = _mm256_add_pd(_mm256_mul_pd(a, b), _mm256_set1_pd(c));
	LEAVE();
	return r;
}

__attribute__((target("avx"))) COUNTED double avx_sum(void)
{
	ENTER();
	__m256d keep = _mm256_set_pd(1, 2, 3, 4), r = keep;
	for (int i = 0; i < 10; i++)
		r = _mm256_add_pd(avx(r, _mm256_set1_pd(0.5), i), keep);
	double v[4];
	_mm256_storeu_pd(v, r);
	LEAVE();
	return v[0] + 10 * v[1] + 100 * v[2] + 1000 * v[3];
}

__attribute__((target("avx512f"))) COUNTED __m512d avx512(__m512d a, __m512d b, __mmask8 m)
{
	ENTER();
	__m512d r = _mm512_mask_add_pd(a, m, a, b);
	LEAVE();
	return r;
}

__attribute__((target("avx512f"))) COUNTED double avx512_sum(void)
{
	ENTER();
	__m512d keep = _mm512_set_pd(1, 2, 3, 4, 5, 6, 7, 8), r = keep;
	for (int i = 0; i < 10; i++)
		r = _mm512_add_pd(avx512(r, _mm512_set1_pd(i), (__mmask8)(0x5a + i)), keep);
	double v[8], sum = 0;
	_mm512_storeu_pd(v, r);
	for (int i = 0; i < 8; i++)
		sum = 3 * sum + v[i];
	LEAVE();
	return sum;
}

/* Nothing is called from here: the array lies in the red zone, below the stack pointer. */
COUNTED long red_zone(long seed)
{
	ENTER();
	volatile long v[10];
	for (int i = 0; i < 10; i++)
		v[i] = seed * (i + 1);
	long sum = 0;
	for (int i = 0; i < 10; i++)
		sum = sum * 7 + v[i];
	LEAVE();
	return sum;
}

COUNTED static long static_leaf(long a)
{
	ENTER();
	LEAVE();
	return a * 31 + 7;
}

COUNTED static long static_caller(long a, long b, long c, long d)
{
	ENTER();
	long r = static_leaf(a) + static_leaf(b + a) * 3 + static_leaf(c ^ b) * 5 +
		 static_leaf(d - c) * 7 + a + b + c + d;
	LEAVE();
	return r;
}

COUNTED long fibonacci(long n)
{
	ENTER();
	long r = n < 2 ? n : 0;
	if (n >= 2) {
		r = fibonacci(n - 1);
		r += fibonacci(n - 2);
	}
	LEAVE();
	return r;
}

static long tail_sum;

#ifndef NO_TAIL
COUNTED static long tail_odd(long n, long sum);
COUNTED static long tail_even(long n, long sum)
{
	ENTER();
	tail_sum += n;
	LEAVE();
	if (n == 0)
		return sum;
	return tail_odd(n - 1, sum + n);
}

COUNTED static long tail_odd(long n, long sum)
{
	ENTER();
	tail_sum -= n;
	LEAVE();
	if (n == 0)
		return sum;
	return tail_even(n - 1, sum ^ n);
}

static long (*volatile tail_target)(long, long) = tail_even;

COUNTED long tail_by_pointer(long n)
{
	ENTER();
	LEAVE();
	return tail_target(n, 1);
}

COUNTED long below_tail(long n)
{
	ENTER();
	long r = tail_by_pointer(n) + 1;
	r += fibonacci(3);
	LEAVE();
	return r;
}
#endif

COUNTED int keeps_errno(int value)
{
	ENTER();
	errno = value;
	int r = (int)static_leaf(value);
	LEAVE();
	return r;
}

COUNTED int compare(const void *a, const void *b)
{
	ENTER();
	int x = *(const int *)a, y = *(const int *)b;
	LEAVE();
	return (x > y) - (x < y);
}

COUNTED void calls_back(void)
{
	ENTER();
	int v[40];
	for (int i = 0; i < 40; i++)
		v[i] = i * 17 % 41;
	qsort(v, 40, sizeof *v, compare);
	for (int i = 0; i < 40; i++)
		printf("%d%c", v[i], i < 39 ? ' ' : '\n');
	LEAVE();
}

COUNTED void nothing(void)
{
	ENTER();
	LEAVE();
}

typedef void nothing_fn(void);

COUNTED int lots(int n)
{
	ENTER();
	nothing_fn *volatile call = nothing;
	for (int i = 0; i < n; i++)
		call();
	LEAVE();
	return n;
}

int main(int argc, char **argv)
{
	ENTER();
	int rounds = argc > 1 ? atoi(argv[1]) : 20;

	for (int round = 0; round < rounds; round++) {
		long x = round;
		printf("twenty %ld\n", twenty(x, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
					      17, 18, 19, 20 + x));
		printf("doubles %.6f\n", doubles(1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5,
						 10.5 + (double)x, 11.25f));
		printf("float %.6f\n", (double)one_float(1.25f, round, 7.5f));
		printf("long double %.6Lf\n", long_doubles(1.25L, (long double)x, 9));
		_Complex long double cl = complex_long(1.5L, (long double)x);
		printf("complex long %.4Lf %.4Lf\n", creall(cl), cimagl(cl));
		_Complex double cd = complex_double(2.5, (double)x);
		printf("complex %.4f %.4f\n", creal(cd), cimag(cd));
		__int128 w = wide(((__int128)x << 70) + 3, ((__int128)1 << 20) + x, -5);
		printf("wide %016lx%016lx\n", (long)(w >> 64), (long)w);
		struct small s = small_struct(round, (struct small){ 4, 9 });
		printf("small %d %d\n", s.a, s.b);
		struct mixed m = mixed_struct((struct mixed){ 2.5, 40 }, (double)x);
		printf("mixed %.3f %ld\n", m.d, m.l);
		struct big b = big_struct((struct big){ { 1, 2, 3, 4, 5, 6 } }, x);
		printf("big %ld %ld %ld %ld %ld %ld\n", b.v[0], b.v[1], b.v[2], b.v[3], b.v[4],
		       b.v[5]);
		printf("lists %ld %.6f\n", ints_by_list(9, 1l, 2l, 3l, 4l, 5l, 6l, 7l, 8l, x),
		       doubles_by_list(10, 1.0, 1, 2.0, 2, 3.0, 3, 4.0, 4, 5.0, 5, 6.0, 6, 7.0, 7,
				       8.0, 8, 9.0, 9, (double)x, 10));
		if (__builtin_cpu_supports("avx"))
			printf("avx %.6f\n", avx_sum());
		if (__builtin_cpu_supports("avx512f"))
			printf("avx512 %.6f\n", avx512_sum());
		printf("red zone %ld\n", red_zone(x + 3));
		printf("static %ld\n", static_caller(x, 2, 3, 4));
		printf("fibonacci %ld\n", fibonacci(10));
#ifndef NO_TAIL
		printf("tail %ld\n", below_tail(500 + x));
		printf("tail sum %ld\n", tail_sum);
#endif
		int kept = keeps_errno(round + 100);
		printf("errno %d %d\n", kept, errno);
		calls_back();
	}
	printf("lots %d\n", lots(20000));
	LEAVE();
	return 3;
}
