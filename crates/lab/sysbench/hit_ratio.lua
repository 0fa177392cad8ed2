-- Queries of which a set share can be answered by a cache (experiment break-even). For sysbench 1.0. The table is made
-- by crates/lab/src/experiments/break_even.rs, which says why this gives the ratio. An event is one query, sent as text.
--
-- With a probability of `hits_percent` an event asks one of `hot` questions, each of which is asked before the first
-- event. Otherwise it asks a question that nobody has asked before: it names a text of its own. Both do the same work on
-- the server.

local ffi = require("ffi")
ffi.cdef("int getpid(void);")

sysbench.cmdline.options = {
   hits_percent = {"Share of the events whose question has been asked before", 50},
   hot = {"So many questions are asked again and again", 100},
   rows = {"Rows of the table", 1000},
   groups = {"Groups of rows: of the heavy questions", 10},
   is_heavy = {"Whether rows of a group are counted, or one row is read", false},
}

local LIGHT = "SELECT c FROM hit_ratio WHERE id = %d AND c <> '%s'"
local HEAVY = "SELECT COUNT(*) FROM hit_ratio WHERE part = %d AND c <> '%s'"

function thread_init()
   connection = sysbench.sql.driver():connect()
   template = sysbench.opt.is_heavy and HEAVY or LIGHT
   keys = sysbench.opt.is_heavy and sysbench.opt.groups or sysbench.opt.rows
   -- No two threads of any two runs have the same.
   own = string.format("%d-%d-%d", os.time(), ffi.C.getpid(), sysbench.tid)
   asked = 0
   -- Each thread warms a part.
   for number = sysbench.tid + 1, sysbench.opt.hot, sysbench.opt.threads do
      ask_hot(number)
   end
end

-- The hot questions are about keys that lie apart.
function ask_hot(number)
   local key = 1 + (number * 7919) % keys
   connection:query(template:format(key, "hot-" .. number))
end

function event()
   -- In hundredths of a percent, so that shares between whole percents can be set.
   if sysbench.rand.uniform(1, 10000) <= sysbench.opt.hits_percent * 100 then
      ask_hot(sysbench.rand.uniform(1, sysbench.opt.hot))
   else
      asked = asked + 1
      connection:query(template:format(sysbench.rand.uniform(1, keys), own .. "-" .. asked))
   end
end

function thread_done()
   connection:disconnect()
end
