# SPDX-License-Identifier: MIT
# callcc copies the stack away, and back again as often as it is asked to.
require 'continuation'
def deep(n, &b) n == 0 ? b.call : [n].map { deep(n - 1, &b) }[0] end
count = 0
saved = nil
r = deep(20) { callcc { |c| saved = c; 0 } }
count += 1
puts "back #{count} #{r}"
if count < 200
  deep(count % 30) { [3,1,2].sort_by { |x| -x }; saved.call(count) }
end
gen = callcc { |c| c }
puts "end #{gen.class}"
begin deep(3) { raise "x" } rescue puts $!.message end
exit 6
