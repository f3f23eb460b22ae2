// SPDX-License-Identifier: MIT
// C++'s own: references, strings, members, scoped enumerations, a class that is passed by reference.
#include <cstdio>
#include <string>
#include <string_view>

enum class Mode : unsigned char { Read = 1, Write = 2 };

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noinline, noipa))
#endif

struct Counter {
	int x;
	KEPT int get(int d) const { return x + d; }
};

namespace shop {
KEPT std::string join(const std::string &a, std::string b, int &n, const double &d)
{
	n += static_cast<int>(d);
	return a + b;
}
}

KEPT Mode mode(Mode m, bool yes, std::string_view text)
{
	return yes && text[0] == 'v' ? m : Mode::Read;
}

volatile int touched;

KEPT const int &refer(const int &n)
{
	touched = n;
	return n;
}

KEPT void throws(const char *what)
{
	throw std::string(what);
}

int main()
{
	Counter counter{ 4 };
	int n = 3;
	std::string joined = shop::join("hello ", "a text that does not fit in the object", n, 2.5);

	n -= static_cast<int>(mode(Mode::Write, counter.get(2) == 6, "view"));
	n = refer(n) + 2;
	try {
		throws("oops");
	} catch (const std::string &) {
		n++;
	}
	std::printf("%s %d\n", joined.c_str(), n);
}
