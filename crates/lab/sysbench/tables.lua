-- Many tables, read one after another and again (experiment E2). For sysbench 1.0. The tables are made by
-- crates/lab/src/experiments/e2.rs; an event is the query of one table, sent as text. Each thread has a share of the
-- tables and reads them in turn.

sysbench.cmdline.options = {
   tables = {"Tables, named t0, t1 and so on", 100},
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   -- A thread beyond the number of tables shares one.
   table_number = sysbench.tid % sysbench.opt.tables
end

function event()
   connection:query(string.format("SELECT * FROM t%d", table_number))
   table_number = table_number + sysbench.opt.threads
   if table_number >= sysbench.opt.tables then
      table_number = sysbench.tid % sysbench.opt.tables
   end
end

function thread_done()
   connection:disconnect()
end
