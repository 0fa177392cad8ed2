-- Light and heavy queries (experiment E8): light.lua's queries, and among them COUNT(*) over all rows of a group by a
-- secondary index. For sysbench 1.0. The table is made by crates/lab/src/experiments/e8.rs; an event is one query, sent
-- as text.

sysbench.cmdline.options = {
   asked_rows = {"The rows that are asked for have the ids from 1 to this", 1000},
   fan_out = {"Rows with the same value of the first secondary index", 16},
   groups = {"The groups that are counted have the numbers from 1 to this", 16},
   heavy_percent = {"Share of the queries that count", 10},
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   keys = math.floor(sysbench.opt.asked_rows / sysbench.opt.fan_out)
end

function event()
   local statement
   if sysbench.rand.uniform(1, 100) <= sysbench.opt.heavy_percent then
      local part = sysbench.rand.uniform(1, sysbench.opt.groups)
      -- With a condition on v, or an update of v would not concern the count.
      statement = string.format("SELECT COUNT(*) FROM light_heavy WHERE part = %d AND v >= 0", part)
   elseif sysbench.rand.uniform(0, 1) == 0 then
      local id = sysbench.rand.uniform(1, sysbench.opt.asked_rows)
      statement = string.format("SELECT c FROM light_heavy WHERE id = %d", id)
   else
      local k = sysbench.rand.uniform(1, keys)
      statement = string.format("SELECT id, v FROM light_heavy WHERE k = %d", k)
   end
   connection:query(statement)
end

function thread_done()
   connection:disconnect()
end
