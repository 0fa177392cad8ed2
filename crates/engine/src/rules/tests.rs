//! What rules match and who decides.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn facts<'a>(tables: &'a [(&'a str, &'a str)]) -> Facts<'a> {
    Facts {
        digest: Some(Digest::from_number(7)),
        tables,
        names_have_case: true,
        account: Some("app@%"),
        schema: Some("shop"),
    }
}

fn rule(change: impl FnOnce(&mut Rule)) -> Rule {
    let mut rule = Rule {
        action: Action::Refuse,
        ..Rule::default()
    };
    change(&mut rule);
    rule
}

fn matches(rule: Rule, facts: &Facts<'_>) -> bool {
    RuleSet::new(vec![rule]).find(facts).is_some()
}

#[test]
fn tables_match_by_name_by_the_beginning_of_names_and_by_star() {
    let shop = [("other", "x"), ("shop", "log_2024")];
    for (pattern, is_match) in [
        ("shop.log_2024", true),
        ("shop.log_*", true),
        ("shop.*", true),
        ("*.log_*", true),
        ("*.log_2024", true),
        ("sh*.*", true),
        ("*.*", true),
        ("other.*", true),
        ("shop.log_2024*", true),
        ("shop.log", false),
        ("shop.log_20245*", false),
        ("shop.x", false),
        ("sho.log_2024", false),
        ("Shop.log_2024", false),
    ] {
        let rule = rule(|rule| rule.table = Some(pattern.parse().unwrap()));
        assert_eq!(matches(rule.clone(), &facts(&shop)), is_match, "{pattern}");
        assert_eq!(rule.table.unwrap().to_string(), pattern);
    }
    let folded = rule(|rule| rule.table = Some("SHOP.Log_*".parse().unwrap()));
    assert!(!matches(folded.clone(), &facts(&shop)));
    let without_case = Facts {
        names_have_case: false,
        ..facts(&shop)
    };
    assert!(matches(folded.clone(), &without_case));
    assert!(!matches(folded, &facts(&[])));
}

#[test]
fn a_table_pattern_has_two_parts_and_stars_at_their_ends_only() {
    for wrong in [
        "",
        "t",
        ".",
        "shop.",
        ".t",
        "shop.*_log",
        "s*p.t",
        "shop.`t`",
        "shop.**",
        "'shop'.t",
        "a\n.b",
    ] {
        assert_eq!(wrong.parse::<TablePattern>(), Err(NotAPattern), "{wrong:?}");
    }
}

#[test]
fn accounts_match_by_user_and_perhaps_host() {
    for (pattern, account, is_match) in [
        ("app", "app@%", true),
        ("app", "app@localhost", true),
        ("app", "App@%", false),
        ("app", "apps@%", false),
        ("app@%", "app@%", true),
        ("app@%", "app@localhost", false),
        ("app@LOCALHOST", "app@localhost", true),
        ("a@b@10.0.0.%", "a@b@10.0.0.%", true),
        ("@localhost", "@localhost", true),
        ("@localhost", "app@localhost", false),
    ] {
        let parsed: AccountPattern = pattern.parse().unwrap();
        assert_eq!(parsed.matches(account), is_match, "{pattern} {account}");
        assert_eq!(parsed.to_string(), pattern);
    }
    for wrong in ["", "@", "app@", "'app'@'%'", "`app`"] {
        assert_eq!(wrong.parse::<AccountPattern>(), Err(NotAPattern), "{wrong}");
    }
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let whole = rule(|rule| {
        rule.digest = Some(Digest::from_number(7));
        rule.table = Some("shop.*".parse().unwrap());
        rule.account = Some("app".parse().unwrap());
        rule.schema = Some("shop".into());
    });
    let tables = [("shop", "t")];
    assert!(matches(whole.clone(), &facts(&tables)));
    for facts in [
        Facts {
            digest: Some(Digest::from_number(8)),
            ..facts(&tables)
        },
        Facts {
            digest: None,
            ..facts(&tables)
        },
        facts(&[("stock", "t")]),
        Facts {
            account: Some("other@%"),
            ..facts(&tables)
        },
        Facts {
            account: None,
            ..facts(&tables)
        },
        Facts {
            schema: Some("stock"),
            ..facts(&tables)
        },
        Facts {
            schema: None,
            ..facts(&tables)
        },
    ] {
        assert!(!matches(whole.clone(), &facts), "{facts:?}");
    }
    assert!(
        matches(rule(|_| ()), &facts(&[])),
        "no condition: all reads"
    );
}

#[test]
fn rules_of_accounts_before_the_one_that_decides_are_told() {
    let rules = RuleSet::new(vec![
        rule(|rule| rule.account = Some("report".parse().unwrap())),
        rule(|rule| {
            rule.account = Some("report".parse().unwrap());
            rule.schema = Some("stock".into());
        }),
        rule(|rule| rule.schema = Some("shop".into())),
        rule(|rule| rule.account = Some("late".parse().unwrap())),
    ]);
    let unknown = Facts {
        account: None,
        ..facts(&[])
    };
    let decision = rules.find(&unknown).unwrap();
    assert_eq!(decision.number, 3);
    let numbers = |before| -> Vec<usize> {
        let decisions = rules.of_accounts(&unknown, before);
        decisions.iter().map(|decision| decision.number).collect()
    };
    assert_eq!(numbers(Some(decision)), [1]);
    assert_eq!(numbers(None), [1, 4]);
}

#[test]
fn rules_are_the_same_wherever_they_stand_in_the_file() {
    let set = |lines: &[usize]| {
        let rules = lines.iter().map(|line| {
            rule(|rule| {
                rule.line = *line;
                rule.schema = Some("shop".into());
            })
        });
        RuleSet::new(rules.collect())
    };
    assert!(set(&[1, 5]).says_the_same(&set(&[2, 9])));
    assert!(!set(&[1]).says_the_same(&set(&[1, 5])));
    let other = RuleSet::new(vec![rule(|rule| rule.schema = Some("stock".into()))]);
    assert!(!set(&[1]).says_the_same(&other));
    assert_eq!(
        set(&[3]).without_those_of(&other),
        ["never cached, where schema = \"shop\" (line 3)"]
    );
}

#[test]
fn a_rule_is_told_in_words() {
    let rule = rule(|rule| {
        rule.digest = Some(Digest::from_number(0xab));
        rule.table = Some("shop.*".parse().unwrap());
        rule.account = Some("app@%".parse().unwrap());
        rule.action = Action::Keep(Bounds {
            time_to_live_ms: Some(500),
            result_bytes_max: Some(1024),
        });
    });
    assert_eq!(
        rule.to_string(),
        "cached for at most 500 ms up to 1024 bytes, where digest = \"00000000000000ab\" and table = \"shop.*\" \
         and account = \"app@%\""
    );
}

fn session<'a>(account: Option<&'a str>, schema: &'a str) -> Facts<'a> {
    Facts {
        digest: None,
        account,
        schema: Some(schema),
        ..facts(&[])
    }
}

#[test]
fn the_first_rule_about_transactions_that_matches_a_session_says_what_memory_answers_there() {
    use TransactionReads::{AfterSnapshot, Early, Off};
    let about = |reads, change: fn(&mut Rule)| {
        let mut rule = rule(change);
        rule.action = Action::ReadInTransactions(reads);
        rule
    };
    let rules = RuleSet::new(vec![
        rule(|rule| rule.account = Some("app".parse().unwrap())),
        about(Early, |rule| {
            rule.account = Some("report@%".parse().unwrap());
        }),
        about(AfterSnapshot, |rule| rule.schema = Some("shop".into())),
        about(Off, |_| ()),
    ]);
    for (account, schema, expected) in [
        ("report@%", "shop", Early),
        ("app@%", "shop", AfterSnapshot),
        ("app@%", "other", Off),
    ] {
        let reads = rules.transaction_reads(&session(Some(account), schema));
        assert_eq!(reads, Some(expected), "{account}, {schema}");
    }
    // It could be the account that a rule is for.
    assert_eq!(rules.transaction_reads(&session(None, "shop")), Some(Off));
    let none = RuleSet::new(vec![rule(|_| ())]);
    assert_eq!(
        none.transaction_reads(&session(Some("app@%"), "shop")),
        None
    );
}

#[test]
fn rules_about_transactions_decide_about_no_read() {
    let mut about = rule(|rule| rule.account = Some("app".parse().unwrap()));
    about.action = Action::ReadInTransactions(TransactionReads::Early);
    let rules = RuleSet::new(vec![about, rule(|_| ())]);
    assert!(!rules.asks_for_sessions());
    let found = rules.find(&facts(&[("shop", "t")])).unwrap();
    assert_eq!(found.number, 2);
    let first = rules.find(&facts(&[])).unwrap();
    assert!(rules.of_accounts(&facts(&[]), Some(first)).is_empty());
}
