-- A join with a big result, and small queries beside it (experiment E9). For sysbench 1.0. The tables are made by
-- crates/lab/src/experiments/e9.rs.
--
-- An event is one join; the latencies are those of joins alone. Of the threads, `beside` ask small questions with
-- pauses, as long as the others join: sysbench counts their queries, but not as events.

local ffi = require("ffi")
ffi.cdef("int getpid(void); int usleep(unsigned int microseconds);")

sysbench.cmdline.options = {
   groups = {"The groups that are joined have the numbers from 1 to this", 2},
   is_new = {"Whether each join is one that was never asked for before, which no cache can have", true},
   beside = {"Threads that ask small questions", 0},
   pause_us = {"Between two small questions of a thread, microseconds", 2000},
   small_rows = {"The rows that small questions ask for have the ids from 1 to this", 1000},
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   -- No two threads of any two runs have the same.
   own = string.format("%d-%d-%d", os.time(), ffi.C.getpid(), sysbench.tid)
   asked = 0
end

function event()
   local mark = "again"
   if sysbench.opt.is_new then
      asked = asked + 1
      mark = own .. "-" .. asked
   end
   connection:query(string.format(
      "SELECT parts.name FROM owners JOIN parts ON parts.owner = owners.id WHERE owners.part = %d AND owners.note <> '%s'",
      sysbench.rand.uniform(1, sysbench.opt.groups), mark))
end

-- sysbench's own thread_run measures what event does. The threads with small questions do without it.
local measured_run = thread_run

function thread_run(thread)
   if sysbench.tid >= sysbench.opt.beside then
      return measured_run(thread)
   end
   while ffi.C.sb_more_events(thread) do
      local id = sysbench.rand.uniform(1, sysbench.opt.small_rows)
      connection:query(string.format("SELECT note FROM small WHERE id = %d", id))
      ffi.C.usleep(sysbench.opt.pause_us)
   end
end

function thread_done()
   connection:disconnect()
end
