/* SPDX-License-Identifier: MIT */
/*
 * Static functions that the compiler sees through: with -fipa-ra (gcc -O2) a caller keeps values in
 * registers that any other callee may change, because this one does not. A tracer that changes such
 * a register makes wrong sums here, and nothing else shows it.
 */
#include "tests/programs/count.h"
#include <stdio.h>
#include <stdlib.h>

COUNT_SITE(twice_site, "twice");
COUNT_SITE(mix_site, "mix");
COUNT_SITE(scale_site, "scale");
COUNT_SITE(nothing_site, "nothing");

static volatile long input[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };

COUNTED static long twice(long x)
{
	COUNT_ONLY(twice_site);
	return x * 2 + 1;
}

COUNTED static long mix(long x, long y)
{
	COUNT_ONLY(mix_site);
	return x * 31 ^ y;
}

COUNTED static double scale(double x)
{
	COUNT_ONLY(scale_site);
	return x * 1.5;
}

COUNTED static void nothing(void)
{
	COUNT_ONLY(nothing_site);
}

COUNTED long integers(long n)
{
	ENTER();
	long a = input[0] + n, b = input[1] ^ n, c = input[2] - n, d = input[3], e = input[4],
	     f = input[5], g = input[6] * n, h = input[7];
	long r = twice(a);
	nothing();
	r += mix(b, c) + a * b;
	nothing();
	r = r * 3 + twice(d) + c * d + e * f;
	nothing();
	r ^= mix(e, f) - g * h + a + b + c;
	r += twice(g) + twice(h) + a * 2 + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + g * 17 +
	     h * 19;
	LEAVE();
	return r;
}

COUNTED double floats(long n)
{
	ENTER();
	double a = (double)input[8] + (double)n, b = (double)input[9], c = (double)input[10] / 3,
	       d = (double)input[11], e = (double)input[12], f = (double)input[13] * 0.25;
	double r = scale(a);
	nothing();
	r += scale(b) * a + c;
	nothing();
	r -= scale(c) * d - e * f;
	r = r / 2 + scale(d) + scale(e) * b + scale(f) + a + b + c + d + e + f;
	LEAVE();
	return r;
}

int main(int argc, char **argv)
{
	ENTER();
	int rounds = argc > 1 ? atoi(argv[1]) : 20000;
	unsigned long sum = 0;
	double real = 0;
	count_list(&twice_site);
	count_list(&mix_site);
	count_list(&scale_site);
	count_list(&nothing_site);
	for (int i = 0; i < rounds; i++) {
		sum = sum * 3 + (unsigned long)integers(i);
		real = real / 2 + floats(i);
	}
	printf("%lu %.9f\n", sum, real);
	LEAVE();
	return 0;
}
