//! A social graph in the manner of `LinkBench`: nodes, links between them, counts of a node's
//! links.
//!
//! From `LinkBench`'s published description and configuration of Facebook's workload come: the
//! three tables with their keys, the ten operations with their statements and shares, the exponents
//! of the power laws by which nodes are chosen, two types of links, payloads of 128 and 8 bytes,
//! and lists of up to 10,000 links.
//!
//! What differs, beside the generator (sysbench, not Java), and why its figures don't compare with
//! `LinkBench`'s:
//!
//! - The graph is small and lies in memory; at full scale it has a million nodes (`LinkBench`'s
//!   default is ten million, and E7's database had 141 GB).
//! - A node's links follow a power law too, 2 × √(nodes / id) of them (3.6 on average), not
//!   Facebook's measured one, and lead to nodes that arithmetic chooses. `LinkBench` lets 0.5 % of
//!   its accesses to links, and 5 % of its changes, go by the number of links; here none do.
//! - Payloads have a fixed length, and nothing is said of how well they compress.
//! - A client learns from the protocol in `LinkBench` whether adding a link made a row, and counts
//!   it or not. sysbench doesn't tell: the script asks for the row first, as `LinkBench` does
//!   before it deletes. Of two clients that add the same link at once both may count it.
//! - One link is asked for at a time, not 2.6 on average; lists are not asked for their older part,
//!   which three in ten are there; nodes that were added later are not asked for.
//! - Reads are sent with autocommit, not in transactions that each end in a `COMMIT`.

use super::filling;
use super::plan::{About, Arm, Data, Experiment, Pace, Plan, Point, Script, SysbenchLoad};
use crate::results::{Published, Scale};

/// What the server's own cache and Remora have for results, MiB.
const MEMORY_MIB: u32 = 256;

/// The experiment.
#[derive(Debug)]
pub struct Social;

/// How many nodes the graph begins with.
pub fn nodes(scale: Scale) -> u32 {
    match scale {
        Scale::Tiny => 1_000,
        Scale::Quick => 20_000,
        Scale::Normal => 200_000,
        Scale::Full => 1_000_000,
    }
}

/// What makes and fills the tables.
pub fn statements(nodes: u32) -> Vec<String> {
    let mut statements: Vec<String> = [
        "CREATE TABLE nodes (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, type INT UNSIGNED NOT NULL, \
         version BIGINT UNSIGNED NOT NULL, time BIGINT UNSIGNED NOT NULL, data MEDIUMTEXT NOT NULL) \
         ENGINE=InnoDB CHARSET=latin1",
        "CREATE TABLE links (id1 BIGINT UNSIGNED NOT NULL, id2 BIGINT UNSIGNED NOT NULL, \
         link_type BIGINT UNSIGNED NOT NULL, visibility TINYINT NOT NULL, data VARCHAR(255) NOT NULL, \
         time BIGINT UNSIGNED NOT NULL, version INT UNSIGNED NOT NULL, PRIMARY KEY (id1, id2, link_type), \
         KEY id1_type (id1, link_type, visibility, time, version, data)) ENGINE=InnoDB CHARSET=latin1",
        "CREATE TABLE counts (id BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, \
         links INT UNSIGNED NOT NULL, time BIGINT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL, \
         PRIMARY KEY (id, link_type)) ENGINE=InnoDB CHARSET=latin1",
    ]
    .map(str::to_owned)
    .to_vec();
    let node = format!("n, 1, 0, n, {}", filling::text(128));
    statements.extend(filling::fill("nodes", &node, nodes));
    statements.extend(links(nodes));
    statements.extend(filling::chunks(nodes).map(|(first, last)| {
        format!(
            "INSERT INTO counts SELECT id1, link_type, COUNT(*), 0, 0 FROM links \
             WHERE id1 BETWEEN {first} AND {last} GROUP BY id1, link_type"
        )
    }));
    statements
}

/// First each node's first link, then the second of those that have two … Node `id` has a link with
/// this number if number² × id is at most four times the number of nodes. The script knows the same
/// arithmetic.
fn links(nodes: u32) -> Vec<String> {
    let most = u64::from(nodes) * 4;
    let mut statements = Vec::new();
    for number in 1_u64.. {
        let last = (most / (number * number)).min(nodes.into());
        if last == 0 {
            break;
        }
        let last = u32::try_from(last).unwrap_or(nodes);
        statements.extend(filling::chunks(last).map(|(first, last)| {
            format!(
                "INSERT INTO links SELECT id, 1 + (id * 31 + {number} * 104729) MOD {nodes}, 1 + {number} MOD 2, 1, \
                 LEFT(MD5(id * 31 + {number}), 8), {number}, 0 FROM nodes WHERE id BETWEEN {first} AND {last}"
            )
        }));
    }
    statements
}

/// The mix, without a number of clients.
pub fn load(nodes: u32) -> SysbenchLoad {
    SysbenchLoad {
        script: Script::Ours("social"),
        threads: 1,
        prepared: false,
        options: vec![format!("--nodes={nodes}")],
    }
}

impl Experiment for Social {
    fn about(&self) -> About {
        let published = |what, value| Published::new(what, value, "operations/s");
        About {
            id: "social",
            title: "A social graph in the manner of LinkBench",
            question: "What does a cache give a mix in which three of ten operations write?",
            source_figure: "LinkBench, 141 GB, 64 requesters, an hour: 11,041 operations a second (E7)",
            published: vec![
                published("LinkBench, 64 requesters, 141 GB, not compressed", 11_041.0),
                published("the same, lz4", 9_625.0),
                published("the same, zlib", 7_966.0),
            ],
        }
    }

    fn plan(&self, scale: Scale) -> Plan {
        let nodes = nodes(scale);
        let clients: &[u32] = match scale {
            Scale::Tiny => &[4],
            Scale::Quick => &[16],
            Scale::Normal => &[4, 16, 64],
            Scale::Full => &[1, 4, 16, 64, 256],
        };
        let builtin = Arm::Builtin { mib: MEMORY_MIB };
        let remora = Arm::Remora {
            memory_mib: MEMORY_MIB,
        };
        let time_to_live_ms = 1_000;
        let arms = match scale {
            Scale::Tiny | Scale::Quick => vec![Arm::Direct, builtin, remora],
            Scale::Normal | Scale::Full => vec![
                Arm::Direct,
                builtin,
                Arm::Hop,
                Arm::ProxySql { time_to_live_ms },
                remora,
            ],
        };
        let pace = match scale {
            Scale::Tiny => Pace::new(1, 1, 2),
            Scale::Quick => Pace::QUICK,
            Scale::Normal => Pace::new(3, 20, 30),
            Scale::Full => Pace::new(5, 120, 120),
        };
        let pool_mib = if scale == Scale::Full { 2_048 } else { 512 };
        Plan {
            data: Data::Statements(statements(nodes)),
            server_options: vec![format!("--innodb-buffer-pool-size={pool_mib}M")],
            points: clients
                .iter()
                .map(|&clients| Point::new("LinkBench's mix", load(nodes)).threads(clients))
                .collect(),
            arms,
            pace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_as_many_links_as_the_power_law_says() {
        // The first link of each of ten nodes, the second of each, the third of four (9 × 4 ≤ 40) …
        let lasts: Vec<String> = links(10)
            .iter()
            .map(|text| text.rsplit(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(lasts, ["10", "10", "4", "2", "1", "1"]);
    }
}
