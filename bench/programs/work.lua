-- SPDX-License-Identifier: MIT
--
-- Work for the Lua interpreter: tables, strings, closures, sorting, the garbage collector. No
-- coroutine and no error that is caught, which a peer of the benchmark does not survive.
-- arg[1]: how many rounds.

local seed = 7
local function random(n)
	seed = (seed * 1103515245 + 12345) % 2147483648
	return seed // 65536 % n
end

local function queens(n)
	local columns, up, down, found = {}, {}, {}, 0
	local function place(row)
		if row > n then
			found = found + 1
			return
		end
		for column = 1, n do
			local a, b = row + column, row - column + n
			if not (columns[column] or up[a] or down[b]) then
				columns[column], up[a], down[b] = true, true, true
				place(row + 1)
				columns[column], up[a], down[b] = nil, nil, nil
			end
		end
	end
	place(1)
	return found
end

local function words(count)
	local seen, list = {}, {}
	for _ = 1, count do
		local word = string.format("w%x", random(5000))
		seen[word] = (seen[word] or 0) + 1
	end
	for word, times in pairs(seen) do
		list[#list + 1] = { word = word, times = times }
	end
	table.sort(list, function(a, b)
		return a.times > b.times or a.times == b.times and a.word < b.word
	end)
	local parts = {}
	for i = 1, 20 do
		parts[i] = list[i].word .. ":" .. list[i].times
	end
	return table.concat(parts, " ")
end

local text
for _ = 1, tonumber(arg[1]) or 1 do
	text = queens(6) .. " " .. #words(4000)
end
print(text)
