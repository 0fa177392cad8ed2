//! The lines of `SHOW ENGINE INNODB STATUS` that rules go by. They are the same in MySQL 5.6 to 8.0
//! and in MariaDB, where status variables for them come and go with the version.

/// What InnoDB says of its log and of its purge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InnodbStatus {
    /// `Log sequence number`: the redo written since the server was installed, bytes.
    pub log_sequence_number: f64,
    /// `Last checkpoint at`: redo before this isn't needed any more, bytes.
    pub last_checkpoint: f64,
    /// `History list length`: transactions whose old rows aren't purged.
    pub history_length: f64,
}

impl InnodbStatus {
    /// Reads the text; `None` if it lacks one of the three lines.
    pub fn parse(text: &str) -> Option<InnodbStatus> {
        let number_behind = |start: &str| {
            let line = text
                .lines()
                .find_map(|line| line.trim_start().strip_prefix(start))?;
            line.trim().parse().ok()
        };
        Some(InnodbStatus {
            log_sequence_number: number_behind("Log sequence number")?,
            last_checkpoint: number_behind("Last checkpoint at")?,
            history_length: number_behind("History list length")?,
        })
    }

    /// The redo that a crash would have to replay, bytes.
    pub fn checkpoint_age(&self) -> f64 {
        self.log_sequence_number - self.last_checkpoint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_numbers_are_found_wherever_they_stand() {
        let text = "TRANSACTIONS\n------------\nTrx id counter 1\n\
                    History list length 17\nLIST OF TRANSACTIONS:\n---\nLOG\n---\n\
                    Log sequence number          20012345\n\
                    Log flushed up to   20012345\nLast checkpoint at           20000000\n";
        let status = InnodbStatus::parse(text).unwrap();
        assert!((status.checkpoint_age() - 12_345.0).abs() < 0.5);
        assert!((status.history_length - 17.0).abs() < 0.5);
    }

    #[test]
    fn a_text_without_one_of_them_tells_nothing() {
        assert_eq!(InnodbStatus::parse("Log sequence number 1\n"), None);
        assert_eq!(InnodbStatus::parse(""), None);
    }
}
