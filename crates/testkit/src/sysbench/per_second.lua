-- What the lab adds to a script of sysbench: each second one line of plain counts, and sysbench's own histogram of
-- latencies, which otherwise it prints only at its end.

local ffi = require("ffi")

ffi.cdef [[
extern char sb_latency_histogram[];
]]

local transactions = 0

function sysbench.hooks.report_intermediate(stat)
   io.stdout:write(string.format("lab second %.6f %.6f %u %u %u %u %u %u %u %.6f\n", stat.time_total, stat.time_interval,
                                 stat.threads_running, stat.events, stat.reads, stat.writes, stat.other, stat.errors,
                                 stat.reconnects, stat.latency_pct * 1000))
   transactions = transactions + stat.events
   -- An empty histogram is left locked by the function that prints it.
   if transactions > 0 then
      ffi.C.sb_histogram_print(ffi.cast("sb_histogram_t *", ffi.C.sb_latency_histogram))
   end
   io.stdout:write("lab end\n")
   io.stdout:flush()
end
