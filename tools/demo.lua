-- SPDX-License-Identifier: MIT
--
-- What the demo's Lua interpreter does while it is traced: for each number that comes in on
-- standard input it makes that many log lines, parses them, groups them, sorts the groups and
-- prints one line. Coroutines, errors that are caught (longjmp inside the interpreter), the
-- garbage collector and the string library all have their part in it.

local seed = 42
local function random(n)
	seed = (seed * 1103515245 + 12345) % 2147483648
	return seed // 65536 % n
end

local function lines(count)
	return coroutine.wrap(function()
		for i = 1, count do
			coroutine.yield(string.format("%d host%02d %s %d", i, random(12),
				random(50) == 0 and "broken" or "ok", random(100000)))
		end
	end)
end

local function parse(line)
	local host, state, bytes = line:match("^%d+ (%w+) (%w+) (%d+)$")
	if state ~= "ok" then
		error({ line = line })
	end
	return host, tonumber(bytes)
end

local function summary(count)
	local hosts, failed = {}, 0
	for line in lines(count) do
		local ok, host, bytes = pcall(parse, line)
		if ok then
			local of = hosts[host] or { calls = 0, bytes = {} }
			of.calls = of.calls + 1
			of.bytes[#of.bytes + 1] = bytes
			hosts[host] = of
		else
			failed = failed + 1
		end
	end
	local names = {}
	for name, of in pairs(hosts) do
		table.sort(of.bytes)
		names[#names + 1] = name
	end
	table.sort(names)
	local words = {}
	for _, name in ipairs(names) do
		local of = hosts[name]
		words[#words + 1] = name .. "=" .. of.bytes[#of.bytes // 2 + 1]
	end
	return failed, table.concat(words, " ")
end

for line in io.lines() do
	local count = tonumber(line) or 0
	local failed, text = summary(count)
	print(count .. " lines, " .. failed .. " broken, medians " .. text)
	io.flush()
end
