-- SPDX-License-Identifier: MIT
-- Errors through C frames, coroutines and callbacks: LuaJIT lands by where its calls' frames lie.
local function overflow() return overflow() + 1 end
for i = 1, 50 do
	assert(not pcall(error, "thrown"))
	assert(not pcall(string.rep))
	assert(select(2, pcall(function() table.sort({ 3, 1, 2 }, function() error("in C") end) end)):find("in C"))
end
assert(not pcall(overflow))
local turns = coroutine.wrap(function() for i = 1, 300 do coroutine.yield(i) end error("done") end)
local sum = 0
for i = 1, 300 do sum = sum + turns() end
print(sum, pcall(turns))
local ffi = require("ffi")
ffi.cdef("void qsort(void *, size_t, size_t, int (*)(const int *, const int *));")
local numbers = ffi.new("int[100]")
for i = 0, 99 do numbers[i] = i * 31 % 101 end
ffi.C.qsort(numbers, 100, 4, function(a, b) return a[0] - b[0] end)
print(numbers[5])
os.exit(6)
