-- Light queries (experiment E8): a row by its primary key, or about 16 rows by a secondary index, as often as each other.
-- For sysbench 1.0. The table is made by crates/lab/src/experiments/e8.rs; an event is one query, sent as text.

sysbench.cmdline.options = {
   asked_rows = {"The rows that are asked for have the ids from 1 to this", 1000},
   fan_out = {"Rows with the same value of the secondary index", 16},
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   keys = math.floor(sysbench.opt.asked_rows / sysbench.opt.fan_out)
end

function event()
   if sysbench.rand.uniform(0, 1) == 0 then
      local id = sysbench.rand.uniform(1, sysbench.opt.asked_rows)
      connection:query(string.format("SELECT c FROM light_heavy WHERE id = %d", id))
   else
      local k = sysbench.rand.uniform(1, keys)
      connection:query(string.format("SELECT id, v FROM light_heavy WHERE k = %d", k))
   end
end

function thread_done()
   connection:disconnect()
end
