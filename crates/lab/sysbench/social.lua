-- A social graph in the manner of LinkBench: nodes, the links between them, and counts of a node's links. For sysbench
-- 1.0. The tables are made by crates/lab/src/experiments/social.rs, which says what differs from LinkBench. An event is
-- one operation, sent as text; those that write are transactions.
--
-- Shares of the operations, exponents of the access, number of link types, sizes of the payloads and the longest list
-- are those of LinkBench's published configuration of Facebook's workload.

sysbench.cmdline.options = {
   nodes = {"Nodes that the graph began with", 1000},
}

local TYPES = 2
local LIST_MAX = 10000
local VISIBLE, HIDDEN = 1, 0
local NODE_DATA = string.rep("@", 128)
local LINK_DATA = string.rep("@", 8)
-- How strongly each kind of access prefers some nodes: the exponents of power laws.
local READ_LINKS, WRITE_LINKS, READ_NODES, UPDATE_NODES = 0.8, 0.741, 0.625, 0.606

function thread_init()
   connection = sysbench.sql.driver():connect()
   nodes = sysbench.opt.nodes
end

-- A rank from 1 to the number of nodes, the first ones most often: its density falls with this power.
local function power_law(exponent)
   local rest = 1 - exponent
   local u = sysbench.rand.uniform_double()
   local rank = (u * ((nodes + 1) ^ rest - 1) + 1) ^ (1 / rest)
   return math.min(math.floor(rank), nodes)
end

-- The node of that rank. Ranks are spread over the ids, so that the nodes that are asked for most are not those with the
-- most links.
local function some_node(exponent)
   return 1 + (power_law(exponent) * 7919) % nodes
end

-- As in social.rs.
local function links_of(node)
   return math.floor(2 * math.sqrt(nodes / node))
end

local function nth_link(node, number)
   return 1 + (node * 31 + number * 104729) % nodes, 1 + number % TYPES
end

-- A link that the graph began with; it may have been hidden since.
local function some_link(node)
   return nth_link(node, sysbench.rand.uniform(1, math.max(links_of(node), 1)))
end

local function now_ms()
   return os.time() * 1000
end

local function send(text, ...)
   connection:query(text:format(...))
end

-- What the link's row says of its visibility; nil if there is no row.
local function visibility_of(node, other, kind)
   return tonumber(connection:query_row(string.format(
      "SELECT visibility FROM links WHERE id1 = %d AND id2 = %d AND link_type = %d", node, other, kind)))
end

local function put_link(node, other, kind)
   local data = sysbench.rand.string(LINK_DATA)
   send("BEGIN")
   -- LinkBench learns this from the number of rows that the next statement changed, which sysbench keeps to itself.
   local before = visibility_of(node, other, kind)
   send("INSERT INTO links (id1, id2, link_type, visibility, data, time, version) " ..
        "VALUES (%d, %d, %d, %d, '%s', %d, 0) ON DUPLICATE KEY UPDATE visibility = %d",
        node, other, kind, VISIBLE, data, now_ms(), VISIBLE)
   if before ~= VISIBLE then
      send("INSERT INTO counts (id, link_type, links, time, version) VALUES (%d, %d, 1, %d, 0) " ..
           "ON DUPLICATE KEY UPDATE links = links + 1", node, kind, now_ms())
   end
   if before ~= nil then
      send("UPDATE links SET data = '%s', time = %d, version = version + 1 " ..
           "WHERE id1 = %d AND id2 = %d AND link_type = %d", data, now_ms(), node, other, kind)
   end
   send("COMMIT")
end

local function add_link()
   put_link(some_node(WRITE_LINKS), sysbench.rand.uniform(1, nodes), sysbench.rand.uniform(1, TYPES))
end

local function update_link()
   local node = some_node(WRITE_LINKS)
   put_link(node, some_link(node))
end

local function delete_link()
   local node = some_node(WRITE_LINKS)
   local other, kind = some_link(node)
   send("BEGIN")
   if visibility_of(node, other, kind) == VISIBLE then
      send("UPDATE links SET visibility = %d WHERE id1 = %d AND id2 = %d AND link_type = %d",
           HIDDEN, node, other, kind)
      send("UPDATE counts SET links = IF(links = 0, 0, links - 1), time = %d, version = version + 1 " ..
           "WHERE id = %d AND link_type = %d", now_ms(), node, kind)
   end
   send("COMMIT")
end

local function count_links()
   send("SELECT links FROM counts WHERE id = %d AND link_type = %d",
        some_node(READ_LINKS), sysbench.rand.uniform(1, TYPES))
end

local function get_link()
   local node = some_node(READ_LINKS)
   local other, kind = some_link(node)
   send("SELECT id1, id2, link_type, visibility, data, time, version FROM links " ..
        "WHERE id1 = %d AND link_type = %d AND id2 IN (%d)", node, kind, other)
end

local function get_link_list()
   send("SELECT id1, id2, link_type, visibility, data, time, version FROM links WHERE id1 = %d " ..
        "AND link_type = %d AND visibility = %d ORDER BY time DESC LIMIT %d",
        some_node(READ_LINKS), sysbench.rand.uniform(1, TYPES), VISIBLE, LIST_MAX)
end

local function get_node()
   send("SELECT id, type, version, time, data FROM nodes WHERE id = %d", some_node(READ_NODES))
end

local function add_node()
   send("INSERT INTO nodes (type, version, time, data) VALUES (1, 0, %d, '%s')",
        now_ms(), sysbench.rand.string(NODE_DATA))
end

local function update_node()
   send("UPDATE nodes SET version = version + 1, time = %d, data = '%s' WHERE id = %d",
        now_ms(), sysbench.rand.string(NODE_DATA), some_node(UPDATE_NODES))
end

-- Any node as likely as any other: it can only go once.
local function delete_node()
   send("DELETE FROM nodes WHERE id = %d", sysbench.rand.uniform(1, nodes))
end

-- LinkBench's shares, percent.
local MIX = {
   {50.7119145, get_link_list}, {12.9326683, get_node}, {8.9886601, add_link}, {8.0122125, update_link},
   {7.366437, update_node}, {4.8863567, count_links}, {2.9907664, delete_link}, {2.5732789, add_node},
   {1.0115914, delete_node}, {0.5261142, get_link},
}

function event()
   local rest = sysbench.rand.uniform_double() * 100
   for _, operation in ipairs(MIX) do
      rest = rest - operation[1]
      if rest < 0 then
         operation[2]()
         return
      end
   end
end

function thread_done()
   connection:disconnect()
end
