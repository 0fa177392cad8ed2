//! How a session's state follows from what it has sent.

use remora_cache::{BrokenRules, FenceScope, Position, Tag, Timeline, TimelineLimits};

use remora_sql::TransactionDefaults;

use super::super::counts::CountedTables;
use super::written::{WRITTEN_TABLE_TAGS_MAX, WRITTEN_TAGS_MAX};
use super::*;
use crate::settings::{SetAnswers, SettingsAfter, TransactionFlags};
use crate::tags::StringConversion;

const AUTOCOMMIT: StatusFlags = StatusFlags::AUTOCOMMIT;
const IN_TRANSACTION: StatusFlags = StatusFlags::AUTOCOMMIT.with(StatusFlags::IN_TRANSACTION);

fn fingerprint(isolation: Isolation) -> Arc<Fingerprint> {
    fingerprint_with(true, isolation)
}

fn fingerprint_with(autocommit: bool, isolation: Isolation) -> Arc<Fingerprint> {
    Arc::new(Fingerprint {
        account: None,
        id: 1 + u64::from(autocommit),
        autocommit,
        schema: Some("shop".to_owned()),
        dialect: Some(remora_sql::Dialect::default()),
        isolation,
        character_sets: ["utf8mb4", "utf8mb4", "utf8mb4_general_ci"].map(str::to_owned),
        charset: TextCharset::Utf8,
        string_conversion: StringConversion::None,
        allows_caching: true,
        ends_transactions_plainly: true,
        selects_nothing: false,
        selects_all: true,
        transaction_flags: TransactionFlags::default(),
        after: SettingsAfter::default(),
        set_answers: SetAnswers::default(),
        instance: None,
    })
}

fn flavour() -> Flavour {
    Flavour {
        capabilities: Capabilities::PROTOCOL_41,
        login_epoch: 0,
        schema_epoch: 0,
        role_epoch: 0,
        client: None,
    }
}

fn own(cache_type: CacheType) -> OwnValues {
    OwnValues {
        cache_type,
        strip_comments: true,
    }
}

fn session(isolation: Isolation) -> SessionState {
    let mark = EndMark {
        status: AUTOCOMMIT,
        warnings: 0,
    };
    let mut state = SessionState::new(flavour(), Some(mark), own(CacheType::On));
    state.learn(fingerprint(isolation));
    state
}

fn ok(status: StatusFlags) -> Summary {
    Summary {
        ending: Ending::Ok,
        mark: Some(EndMark {
            status,
            warnings: 0,
        }),
        results: 1,
        numbered_from_one: true,
    }
}

fn error() -> Summary {
    Summary {
        ending: Ending::Err(1213),
        mark: None,
        results: 1,
        numbered_from_one: true,
    }
}

fn effects(session: SessionEffect, transaction: Transaction) -> Effects {
    Effects {
        session,
        transaction,
        ..Effects::NONE
    }
}

fn table(name: &str) -> WriteScope {
    let tags = vec![Tag::table("shop", name)];
    WriteScope::Tables {
        fine: tags.clone(),
        whole: tags,
    }
}

fn one_table() -> WriteScope {
    table("orders")
}

/// `SET autocommit = …` that says nothing else.
fn set_autocommit(autocommit: bool) -> Effects {
    let defaults = TransactionDefaults {
        autocommit: Some(autocommit),
        ..TransactionDefaults::default()
    };
    let transaction = if autocommit {
        Transaction::ImplicitCommit
    } else {
        Transaction::None
    };
    effects(SessionEffect::TransactionDefaults(defaults), transaction)
}

/// Turns autocommit off, and asks for the settings.
fn turn_off(state: &mut SessionState, timeline: &Timeline) {
    sends(
        state,
        timeline,
        &set_autocommit(false),
        StatusFlags::default(),
    );
    state.learn(fingerprint_with(false, Isolation::RepeatableRead));
}

const BEGIN: Effects = Effects {
    transaction: Transaction::Begin,
    control: Some(TransactionControl::Begin),
    ..Effects::NONE
};

#[test]
fn a_fresh_session_must_ask_for_its_settings_first() {
    let state = SessionState::new(flavour(), Some(EndMark::default()), own(CacheType::On));
    assert_eq!(state.scope(), Err(Bypass::SettingsUnknown));
    assert!(state.wants_settings());
}

#[test]
fn statements_outside_a_transaction_are_looked_up() {
    assert!(session(Isolation::RepeatableRead).scope().is_ok());
    assert!(session(Isolation::ReadCommitted).scope().is_ok());
    assert_eq!(
        session(Isolation::Other).scope(),
        Err(Bypass::IsolationLevel)
    );
}

#[test]
fn with_transaction_reads_off_a_repeatable_read_transaction_passes_through() {
    let mut state = session(Isolation::RepeatableRead);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    assert_eq!(state.scope(), Err(Bypass::InTransaction));
    let mut state = session(Isolation::ReadCommitted);
    let outside = state.scope();
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    assert!(state.scope().is_ok());
    assert_ne!(state.scope(), outside, "the flags in the answers differ");
}

#[test]
fn a_transaction_reads_what_it_has_written_from_the_server_until_it_ends() {
    let mut state = session(Isolation::ReadCommitted);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    state.after(&Effects::NONE, Some(&one_table()), &ok(IN_TRANSACTION));
    assert!(state.scope().is_ok());
    let of = |name| [Tag::table("shop", name)].into_iter();
    assert!(state.written().concerns(of("orders")));
    assert!(!state.written().concerns(of("customers")));
    state.after(
        &Effects::NONE,
        Some(&WriteScope::Everything),
        &ok(IN_TRANSACTION),
    );
    assert_eq!(state.scope(), Err(Bypass::TransactionHasWritten));
    let commit = effects(SessionEffect::None, Transaction::Commit);
    state.after(&commit, None, &ok(AUTOCOMMIT));
    assert!(state.scope().is_ok());
    assert!(state.written().is_nothing());
}

#[test]
fn an_isolation_level_set_inside_a_transaction_does_not_count_for_it() {
    let mut state = session(Isolation::RepeatableRead);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    let set = effects(SessionEffect::SettingsChanged, Transaction::None);
    state.after(&set, None, &ok(IN_TRANSACTION));
    assert!(
        !state.wants_settings(),
        "what the server reports isn't this transaction's"
    );
    state.learn(fingerprint(Isolation::ReadCommitted));
    assert_eq!(state.scope(), Err(Bypass::InTransaction));
}

#[test]
fn after_an_error_the_transaction_is_uncertain_until_the_next_mark() {
    let mut state = session(Isolation::ReadCommitted);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    state.after(&Effects::NONE, None, &error());
    assert_eq!(state.scope(), Err(Bypass::StatusUncertain));
    assert!(
        !state.is_certainly_in_transaction(),
        "a deadlock has rolled it back"
    );
    let rollback = effects(SessionEffect::None, Transaction::Rollback);
    state.after(&rollback, None, &ok(AUTOCOMMIT));
    assert!(state.scope().is_ok());
}

#[test]
fn what_a_failed_statement_may_have_written_counts() {
    let mut state = session(Isolation::ReadCommitted);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    state.after(&Effects::NONE, Some(&WriteScope::Everything), &error());
    assert_eq!(state.written(), &Written::Everything);
}

#[test]
fn with_autocommit_off_a_read_would_open_a_transaction() {
    let mut state = session(Isolation::ReadCommitted);
    state.after(&set_autocommit(false), None, &ok(StatusFlags::default()));
    state.learn(fingerprint_with(false, Isolation::ReadCommitted));
    assert_eq!(state.scope(), Err(Bypass::AutocommitOff));
}

#[test]
fn the_settings_after_a_change_of_autocommit_are_asked_for_once() {
    let (_, timeline) = repeatable();
    let (off, open) = (StatusFlags::default(), StatusFlags::IN_TRANSACTION);
    let on_settings = fingerprint(Isolation::RepeatableRead);
    let off_settings = fingerprint_with(false, Isolation::RepeatableRead);
    for is_first in [true, false] {
        let mut state = session_of(&on_settings);
        state.set_transaction_reads(TransactionReads::AfterSnapshot);
        let outside = state.scope().expect("it is known");
        sends(&mut state, &timeline, &set_autocommit(false), off);
        assert_eq!(state.lacks_settings(), is_first);
        if is_first {
            state.learn_with_mark(Arc::clone(&off_settings), 7);
        }
        if is_first {
            assert_eq!(state.scope(), Err(Bypass::AutocommitOff));
        } else {
            // By now it is known what flags the first read's answer has.
            assert!(state.scope().is_ok() && state.must_have_snapshot());
        }
        sends(&mut state, &timeline, &row(&timeline), open);
        let inside = state.scope().expect("the snapshot is made");
        assert_ne!(inside, outside);
        let write = WriteScope::Everything;
        state.after(&Effects::NONE, Some(&write), &ok(open));
        assert_eq!(state.written(), &Written::Everything);
        sends(&mut state, &timeline, &set_autocommit(true), AUTOCOMMIT);
        assert_eq!(state.lacks_settings(), is_first);
        if is_first {
            state.learn_with_mark(Arc::clone(&on_settings), 7);
        }
        assert!(state.written().is_nothing());
        assert_eq!(state.snapshot(), None);
        assert_eq!(state.scope(), Ok(outside));
    }
}

/// MySQL's flag says that autocommit is on in a session that began with `SET GLOBAL autocommit =
/// 0`.
#[test]
fn nothing_is_looked_up_while_the_flag_and_the_setting_differ() {
    let mut state = session(Isolation::RepeatableRead);
    state.learn(fingerprint_with(false, Isolation::RepeatableRead));
    assert_eq!(state.scope(), Err(Bypass::StatusUncertain));
    state.after(&set_autocommit(true), None, &ok(AUTOCOMMIT));
    state.learn(fingerprint(Isolation::RepeatableRead));
    assert!(state.scope().is_ok());
}

#[test]
fn code_that_is_not_seen_and_turns_autocommit_off_may_have_read() {
    let function = SessionEffect::Unknown(UnknownEffect::StoredFunction);
    for effects in [Effects::NONE, effects(function, Transaction::None)] {
        let mut state = session(Isolation::RepeatableRead);
        state.after(&effects, None, &ok(StatusFlags::default()));
        state.after(&set_autocommit(true), None, &ok(AUTOCOMMIT));
        state.learn(fingerprint(Isolation::RepeatableRead));
        assert_eq!(state.scope(), Err(Bypass::UnknownSessionState));
    }
}

/// MySQL 5.6 goes on with `BEGIN` after a deadlock, and its flag says that none is open.
#[test]
fn after_an_error_in_a_transaction_one_may_be_begun() {
    let commit = effects(SessionEffect::None, Transaction::Commit);
    let (_, timeline) = repeatable();
    for clears in [&commit, &row(&timeline)] {
        let mut state = session(Isolation::RepeatableRead);
        state.after(&BEGIN, None, &ok(IN_TRANSACTION));
        state.after(&Effects::NONE, None, &error());
        state.after(&Effects::NONE, None, &ok(AUTOCOMMIT));
        assert_eq!(state.scope(), Err(Bypass::StatusUncertain));
        assert!(!state.is_certainly_outside_transaction());
        state.after(clears, None, &ok(AUTOCOMMIT));
        assert!(state.scope().is_ok());
        // Outside a transaction errors say nothing of one.
        for _ in 0..2 {
            state.after(&Effects::NONE, None, &error());
        }
        state.after(&Effects::NONE, None, &ok(AUTOCOMMIT));
        assert!(state.scope().is_ok());
    }
}

/// The server goes on with the isolation level and the access mode of the transaction before.
#[test]
fn a_transaction_behind_one_that_ended_without_commit_or_rollback_is_in_doubt() {
    let read_only = Effects {
        control: Some(TransactionControl::BeginReadOnly),
        ..BEGIN
    };
    let implicit = effects(SessionEffect::None, Transaction::ImplicitCommit);
    let commit = effects(SessionEffect::None, Transaction::Commit);
    let mut state = session(Isolation::RepeatableRead);
    for (begin, end, is_in_doubt) in [
        (&BEGIN, &implicit, false),
        (&read_only, &commit, false),
        (&read_only, &implicit, true),
    ] {
        state.after(begin, None, &ok(IN_TRANSACTION));
        state.after(&BEGIN, None, &ok(IN_TRANSACTION));
        state.after(end, None, &ok(AUTOCOMMIT));
        assert_eq!(state.doubts_next_transaction(), is_in_doubt);
    }
    assert_eq!(state.scope(), Err(Bypass::NextTransactionDiffers));
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    assert_eq!(state.scope(), Err(Bypass::NextTransactionDiffers));
    state.after(&commit, None, &ok(AUTOCOMMIT));
    assert!(state.scope().is_ok());
    // The same after a change of settings inside.
    let set = effects(SessionEffect::SettingsChanged, Transaction::None);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    state.after(&set, None, &ok(IN_TRANSACTION));
    state.after(&implicit, None, &ok(AUTOCOMMIT));
    assert!(state.doubts_next_transaction());
}

#[test]
fn a_failed_change_of_autocommit_leaves_it_uncertain() {
    let mut state = session(Isolation::ReadCommitted);
    let set_on = effects(SessionEffect::None, Transaction::ImplicitCommit);
    state.after(&set_on, None, &error());
    assert_eq!(state.scope(), Err(Bypass::StatusUncertain));
}

#[test]
fn a_query_that_turns_autocommit_off_may_have_read() {
    let (mut state, timeline) = repeatable();
    let low = timeline.as_of();
    let set = effects(SessionEffect::SettingsChanged, Transaction::None);
    sends(&mut state, &timeline, &set, StatusFlags::default());
    assert!(state.wants_settings());
    state.learn(fingerprint_with(false, Isolation::RepeatableRead));
    sends(
        &mut state,
        &timeline,
        &row(&timeline),
        StatusFlags::IN_TRANSACTION,
    );
    assert_eq!(state.snapshot().map(|it| it.low), low);
}

/// The server's answer to a login is from before `init_connect`.
#[test]
fn the_answer_to_the_question_tells_of_autocommit() {
    let mut state = session(Isolation::ReadCommitted);
    let outside = state.scope();
    state.learn_autocommit(StatusFlags::IN_TRANSACTION);
    state.learn(fingerprint_with(false, Isolation::ReadCommitted));
    assert_eq!(state.scope(), Err(Bypass::AutocommitOff));
    state.learn_autocommit(AUTOCOMMIT.with(StatusFlags::NO_INDEX));
    state.learn(fingerprint(Isolation::ReadCommitted));
    assert_eq!(state.scope(), outside);
}

/// `SET SESSION TRANSACTION READ ONLY` and `READ WRITE`.
fn read_only(read_only: bool) -> Effects {
    let defaults = TransactionDefaults {
        read_only: Some(read_only),
        ..TransactionDefaults::default()
    };
    effects(
        SessionEffect::TransactionDefaults(defaults),
        Transaction::None,
    )
}

/// A session of these settings, asked for with the mark 7.
fn session_of(settings: &Arc<Fingerprint>) -> SessionState {
    let mut state = session(Isolation::RepeatableRead);
    state.learn_with_mark(Arc::clone(settings), 7);
    state.asked_for_mark(7, true);
    state
}

fn has(state: &SessionState, settings: &Arc<Fingerprint>) -> bool {
    state
        .fingerprint()
        .is_some_and(|known| Arc::ptr_eq(known, settings))
}

#[test]
fn the_settings_after_a_change_of_transactions_are_asked_for_once() {
    let (writes, reads) = (
        fingerprint(Isolation::RepeatableRead),
        fingerprint(Isolation::RepeatableRead),
    );
    let mut first = session_of(&writes);
    first.after(&read_only(true), None, &ok(AUTOCOMMIT));
    assert!(first.wants_settings());
    assert_eq!(first.scope(), Err(Bypass::SettingsUnknown));
    // Neither a statement between nor the same twice makes a difference.
    first.after(&Effects::NONE, None, &ok(AUTOCOMMIT));
    first.after(&read_only(true), None, &ok(AUTOCOMMIT));
    first.learn_with_mark(Arc::clone(&reads), 7);
    assert!(has(&first, &reads));
    let mut next = session_of(&writes);
    next.after(&read_only(true), None, &ok(AUTOCOMMIT));
    assert!(has(&next, &reads), "it was told");
    next.after(&read_only(false), None, &ok(AUTOCOMMIT));
    assert!(next.wants_settings(), "this was not");
    next.learn_with_mark(Arc::clone(&writes), 7);
    first.after(&read_only(false), None, &ok(AUTOCOMMIT));
    assert!(has(&first, &writes));
    // Inside a transaction, that one stays what it is.
    first.after(&BEGIN, None, &ok(IN_TRANSACTION));
    first.after(&read_only(true), None, &ok(IN_TRANSACTION));
    assert_eq!(first.scope(), Err(Bypass::InTransaction));
    let commit = effects(SessionEffect::None, Transaction::Commit);
    first.after(&commit, None, &ok(AUTOCOMMIT));
    assert!(has(&first, &reads) && first.scope().is_ok());
    // What is forgotten is asked for again.
    drop((first, next, reads));
    let mut last = session_of(&writes);
    last.after(&read_only(true), None, &ok(AUTOCOMMIT));
    assert!(last.wants_settings());
}

/// Whether a `SET` that turns autocommit off may be answered in the server's place.
fn may_turn_off_later(state: &SessionState) -> bool {
    let off = TransactionDefaults {
        autocommit: Some(false),
        ..TransactionDefaults::default()
    };
    state.settings_around_deferred_set(off).is_some()
}

#[test]
fn a_set_is_deferred_only_with_known_settings_and_outside_transactions() {
    let on = fingerprint_with(true, Isolation::RepeatableRead);
    let off = fingerprint_with(false, Isolation::RepeatableRead);
    let session = || session_of(&on).with_transaction_reads(TransactionReads::AfterSnapshot);
    let mut first = session();
    assert!(!may_turn_off_later(&first), "what would they be?");
    first.after(&set_autocommit(false), None, &ok(StatusFlags::default()));
    first.learn_with_mark(Arc::clone(&off), 7);
    assert!(!may_turn_off_later(&first), "that is known only from there");
    assert!(may_turn_off_later(&session()));
    let reads_off = session().with_transaction_reads(TransactionReads::Off);
    assert!(!may_turn_off_later(&reads_off));
    let statements = [
        (BEGIN, ok(IN_TRANSACTION)),
        (effects(SessionEffect::None, Transaction::None), error()),
        (
            effects(SessionEffect::NextTransaction, Transaction::None),
            ok(AUTOCOMMIT),
        ),
        (
            effects(SessionEffect::LockedTables, Transaction::None),
            ok(AUTOCOMMIT),
        ),
        (
            effects(SessionEffect::SettingsChanged, Transaction::None),
            ok(AUTOCOMMIT),
        ),
        (
            effects(
                SessionEffect::Unknown(UnknownEffect::StoredProcedure),
                Transaction::None,
            ),
            ok(AUTOCOMMIT),
        ),
    ];
    for (statement, summary) in statements {
        let mut state = session();
        state.after(&statement, None, &summary);
        assert!(!may_turn_off_later(&state), "{statement:?}");
    }
}

/// `SET` to literals by this text.
fn sets(text: &str) -> Effects {
    Effects {
        literal_set: Some(text.as_bytes().into()),
        ..effects(SessionEffect::SettingsChanged, Transaction::None)
    }
}

#[test]
fn the_settings_after_literals_are_asked_for_once_by_text_and_order() {
    let of = || fingerprint(Isolation::RepeatableRead);
    let (start, after_both) = (of(), of());
    let mut first = session_of(&start);
    first.after(&sets("SET NAMES a"), None, &ok(AUTOCOMMIT));
    first.after(&sets("SET NAMES b"), None, &ok(AUTOCOMMIT));
    first.learn_with_mark(Arc::clone(&after_both), 7);
    let mut next = session_of(&start);
    next.after(&sets("SET NAMES a"), None, &ok(AUTOCOMMIT));
    assert!(
        next.wants_settings(),
        "nobody was told what they are between"
    );
    next.after(&sets("SET NAMES b"), None, &ok(AUTOCOMMIT));
    assert!(has(&next, &after_both));
    let mut other = session_of(&start);
    other.after(&sets("SET NAMES b"), None, &ok(AUTOCOMMIT));
    other.after(&sets("SET NAMES a"), None, &ok(AUTOCOMMIT));
    assert!(other.wants_settings());
    // One that failed may have set something.
    let mut failed = session_of(&start);
    failed.after(&sets("SET NAMES a"), None, &error());
    failed.after(&sets("SET NAMES b"), None, &ok(AUTOCOMMIT));
    assert!(failed.wants_settings());
    // So may anything between.
    let mut unsure = session_of(&start);
    unsure.after(&sets("SET NAMES a"), None, &ok(AUTOCOMMIT));
    let set = effects(SessionEffect::SettingsChanged, Transaction::None);
    unsure.after(&set, None, &ok(AUTOCOMMIT));
    unsure.after(&sets("SET NAMES b"), None, &ok(AUTOCOMMIT));
    assert!(unsure.wants_settings());
}

#[test]
fn settings_that_do_not_follow_from_the_statement_alone_are_not_remembered() {
    let next = effects(SessionEffect::NextTransaction, Transaction::None);
    let other = effects(SessionEffect::SettingsChanged, Transaction::None);
    let schema = effects(SessionEffect::DefaultSchema, Transaction::None);
    let code = Effects {
        unseen_code: UnseenCode::Possible,
        ..Effects::NONE
    };
    let text = Effects {
        may_turn_log_off: true,
        ..Effects::NONE
    };
    let usual = ok(AUTOCOMMIT);
    let set = read_only(true);
    let scripts: [(&[(&Effects, &Summary)], u64); 9] = [
        (&[(&set, &error())], 7),
        (&[(&set, &error()), (&set, &usual)], 7),
        (&[(&set, &usual), (&other, &usual)], 7),
        (&[(&other, &usual), (&set, &usual)], 7),
        (&[(&schema, &usual), (&set, &usual)], 7),
        (&[(&set, &usual), (&code, &usual)], 7),
        (&[(&set, &usual), (&text, &usual)], 7),
        (&[(&next, &usual), (&set, &usual)], 7),
        (&[(&set, &usual)], 8),
    ];
    for (number, (script, mark)) in scripts.into_iter().enumerate() {
        let before = fingerprint(Isolation::RepeatableRead);
        let mut state = session_of(&before);
        for (effects, summary) in script {
            state.after(effects, None, summary);
        }
        assert!(state.lacks_settings(), "{number}");
        let after = fingerprint(Isolation::RepeatableRead);
        state.learn_with_mark(Arc::clone(&after), mark);
        let mut other = session_of(&before);
        other.after(&set, None, &usual);
        assert!(other.wants_settings(), "{number}");
    }
    // Inside a transaction the server may tell of that.
    let before = fingerprint(Isolation::RepeatableRead);
    let mut state = session_of(&before);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    state.after(&set, None, &ok(IN_TRANSACTION));
    let after = fingerprint(Isolation::RepeatableRead);
    state.learn_with_mark(Arc::clone(&after), 7);
    let mut other = session_of(&before);
    other.after(&set, None, &usual);
    assert!(other.wants_settings());
}

#[test]
fn a_next_transaction_that_differs_is_over_after_it_has_ended() {
    let mut state = session(Isolation::RepeatableRead);
    let set = effects(SessionEffect::NextTransaction, Transaction::None);
    state.after(&set, None, &ok(AUTOCOMMIT));
    assert_eq!(state.scope(), Err(Bypass::NextTransactionDiffers));
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    assert_eq!(state.scope(), Err(Bypass::NextTransactionDiffers));
    let commit = effects(SessionEffect::None, Transaction::Commit);
    state.after(&commit, None, &ok(AUTOCOMMIT));
    assert!(state.scope().is_ok());
}

#[test]
fn code_that_is_not_seen_puts_the_next_transaction_in_doubt_until_one_has_ended() {
    let code = Effects {
        unseen_code: UnseenCode::Known,
        ..Effects::NONE
    };
    let uses = Effects {
        own_transaction: OwnTransaction::Certain,
        ..Effects::NONE
    };
    let after_code = || {
        let mut state = session(Isolation::RepeatableRead);
        state.after(&code, None, &ok(AUTOCOMMIT));
        state.learn(fingerprint(Isolation::RepeatableRead));
        state.learn_counts(Some(counts(CountedTables::All(0), 0)));
        assert_eq!(state.scope(), Err(Bypass::NextTransactionDiffers));
        state
    };
    let perhaps = Effects {
        unseen_code: UnseenCode::Possible,
        ..code.clone()
    };
    let mut state = session(Isolation::RepeatableRead);
    state.after(&perhaps, None, &ok(AUTOCOMMIT));
    assert!(
        !state.doubts_next_transaction(),
        "there is none as far as is known"
    );
    let mut state = after_code();
    state.after(&Effects::NONE, None, &ok(AUTOCOMMIT));
    assert!(state.doubts_next_transaction(), "it may have used no table");
    state.after(&uses, None, &error());
    assert!(state.doubts_next_transaction(), "nor one that failed");
    state.after(&uses, None, &ok(AUTOCOMMIT));
    assert!(
        state.doubts_next_transaction(),
        "before it all was uncertain"
    );
    state.after(&uses, None, &ok(AUTOCOMMIT));
    assert!(state.scope().is_ok());
    // In a transaction the level is that of the transaction.
    let mut state = after_code();
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    state.after(&uses, None, &ok(IN_TRANSACTION));
    assert!(state.doubts_next_transaction());
    let commit = effects(SessionEffect::None, Transaction::Commit);
    state.after(&commit, None, &ok(AUTOCOMMIT));
    assert!(state.scope().is_ok());
    // Code is refused to set it there.
    let mut state = session(Isolation::RepeatableRead);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    state.after(&code, None, &ok(IN_TRANSACTION));
    assert!(!state.doubts_next_transaction());
}

#[test]
fn code_of_a_statement_whose_own_transaction_ends_leaves_no_doubt() {
    let mut state = session(Isolation::RepeatableRead);
    let both = Effects {
        unseen_code: UnseenCode::Known,
        own_transaction: OwnTransaction::Certain,
        ..Effects::NONE
    };
    state.after(&both, None, &ok(AUTOCOMMIT));
    assert!(!state.doubts_next_transaction());
    state.after(&both, None, &ok(StatusFlags::default()));
    assert!(state.doubts_next_transaction(), "autocommit is off by then");
    let if_code_ran = Effects {
        own_transaction: OwnTransaction::IfCodeRan,
        ..both
    };
    let mut state = session(Isolation::RepeatableRead);
    state.after(&if_code_ran, None, &ok(AUTOCOMMIT));
    assert!(!state.doubts_next_transaction());
    let code = Effects {
        unseen_code: UnseenCode::Known,
        ..Effects::NONE
    };
    state.after(&code, None, &ok(AUTOCOMMIT));
    state.after(&if_code_ran, None, &ok(AUTOCOMMIT));
    assert!(state.doubts_next_transaction(), "perhaps it used nothing");
}

/// Then a text may be several statements, whatever the login said.
#[test]
fn a_reset_does_not_forget_that_multi_statements_may_have_been_switched() {
    let mut state = session(Isolation::RepeatableRead);
    assert!(!state.may_have_switched_multi_statements());
    state.option_changed();
    assert!(state.may_have_switched_multi_statements() && state.passes_through());
    state.reset(None, own(CacheType::On));
    assert!(state.may_have_switched_multi_statements() && !state.passes_through());
    state.changed_user(2, None, own(CacheType::On));
    assert!(state.may_have_switched_multi_statements());
}

#[test]
fn temporary_tables_and_unknown_effects_last_until_the_session_is_reset() {
    for (effect, why) in [
        (SessionEffect::TemporaryTable, Bypass::TemporaryTables),
        (SessionEffect::BinlogOff, Bypass::WritesUnlogged),
        (
            SessionEffect::Unknown(UnknownEffect::UnknownStatement),
            Bypass::UnknownSessionState,
        ),
    ] {
        let mut state = session(Isolation::RepeatableRead);
        state.after(&effects(effect, Transaction::None), None, &ok(AUTOCOMMIT));
        state.after(&Effects::NONE, None, &ok(AUTOCOMMIT));
        assert_eq!(state.scope(), Err(why));
        let mark = EndMark {
            status: AUTOCOMMIT,
            warnings: 0,
        };
        state.reset(Some(mark), own(CacheType::On));
        assert_eq!(state.scope(), Err(Bypass::SettingsUnknown));
    }
}

/// What the server may tell, if its counts were not reset.
fn counts(tables: CountedTables, locks: u64) -> SessionCounts {
    SessionCounts {
        tables,
        locks,
        were_reset: Some(false),
    }
}

#[test]
fn after_a_procedure_the_server_tells_whether_anything_stays_but_the_next_transaction() {
    let of = |tables, locks, were_reset| {
        Some(SessionCounts {
            tables: CountedTables::Temporary(tables),
            locks,
            were_reset,
        })
    };
    for effect in [UnknownEffect::StoredProcedure, UnknownEffect::DynamicSql] {
        for (counted, why) in [
            (of(0, 0, Some(false)), Bypass::NextTransactionDiffers),
            (of(1, 0, Some(false)), Bypass::TemporaryTables),
            (of(0, 1, Some(false)), Bypass::UnknownSessionState),
            (of(0, 0, Some(true)), Bypass::TemporaryTables),
            (of(0, 0, None), Bypass::UnknownSessionState),
            (None, Bypass::SettingsUnknown),
        ] {
            let mut state = session(Isolation::RepeatableRead);
            let call = effects(SessionEffect::Unknown(effect), Transaction::ImplicitCommit);
            state.after(&call, None, &ok(AUTOCOMMIT));
            assert_eq!(state.scope(), Err(Bypass::SettingsUnknown));
            assert!(state.wants_tables_created() && state.may_hold_locks());
            state.learn(fingerprint(Isolation::RepeatableRead));
            state.learn_counts(counted);
            assert_eq!(state.scope(), Err(why), "{counted:?}");
            let uses = Effects {
                own_transaction: OwnTransaction::Certain,
                ..Effects::NONE
            };
            state.after(&uses, None, &ok(AUTOCOMMIT));
            let is_served = why == Bypass::NextTransactionDiffers;
            assert_eq!(state.scope().is_ok(), is_served, "{counted:?}");
        }
    }
    // It may have ended the transaction, and said what the next one is like.
    let mut state = session(Isolation::RepeatableRead);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    let procedure = SessionEffect::Unknown(UnknownEffect::StoredProcedure);
    let call = effects(procedure, Transaction::ImplicitCommit);
    state.after(&call, None, &ok(IN_TRANSACTION));
    assert!(state.doubts_next_transaction());
}

#[test]
fn code_that_ran_when_privileges_had_changed_may_have_made_the_server_look_at_them() {
    let mut state = session(Isolation::RepeatableRead);
    let looked_in = state.flavour().schema_epoch;
    state.perhaps_looked_at_privileges(looked_in);
    assert!(state.scope().is_ok());
    state.chose_schema(looked_in + 1);
    state.perhaps_looked_at_privileges(looked_in + 1);
    assert_eq!(state.scope(), Err(Bypass::UnknownSessionState), "its role");
}

#[test]
fn a_session_without_query_cache_has_no_scope_until_it_is_switched_on() {
    let mut state = session(Isolation::RepeatableRead);
    state.set_cache_type(CacheType::Off);
    assert_eq!(state.scope(), Err(Bypass::QueryCacheOff));
    assert_eq!(state.binary_scope(), Err(Bypass::QueryCacheOff));
    for cache_type in [CacheType::Demand, CacheType::On] {
        state.set_cache_type(cache_type);
        assert!(state.scope().is_ok() && state.binary_scope().is_ok());
    }
    state.reset(None, own(CacheType::Off));
    assert_eq!(state.scope(), Err(Bypass::QueryCacheOff));
}

#[test]
fn a_session_with_a_temporary_table_of_unseen_code_passes_through_and_one_not_told_asks_again() {
    let hidden = Effects {
        unseen_code: UnseenCode::Possible,
        code_leaves_next_transaction: true,
        ..Effects::NONE
    };
    for (counted, scope) in [
        (Some(counts(CountedTables::Temporary(0), 0)), None),
        (
            Some(counts(CountedTables::Temporary(1), 0)),
            Some(Bypass::TemporaryTables),
        ),
        (None, Some(Bypass::SettingsUnknown)),
    ] {
        let mut state = session(Isolation::RepeatableRead);
        state.after(&hidden, None, &ok(AUTOCOMMIT));
        state.learn(fingerprint(Isolation::RepeatableRead));
        state.learn_counts(counted);
        assert_eq!(state.scope().err(), scope, "{counted:?}");
        assert!(!state.wants_settings(), "not before they change");
    }
    let mut state = session(Isolation::RepeatableRead);
    assert!(state.is_reset_of_counts_harmless());
    state.after(&hidden, None, &ok(AUTOCOMMIT));
    assert!(!state.is_reset_of_counts_harmless());
    state.learn(fingerprint(Isolation::RepeatableRead));
    let reset = SessionCounts {
        were_reset: Some(true),
        ..counts(CountedTables::All(0), 0)
    };
    state.learn_counts(Some(reset));
    assert_eq!(state.scope(), Err(Bypass::TemporaryTables));
    // `SET max_join_size = 1` keeps MariaDB from telling, until it is set back.
    let mut state = session(Isolation::RepeatableRead);
    state.after(&hidden, None, &ok(AUTOCOMMIT));
    state.learn_counts(None);
    let set = effects(SessionEffect::SettingsChanged, Transaction::None);
    state.after(&set, None, &ok(AUTOCOMMIT));
    assert!(state.wants_settings() && state.wants_tables_created());
    state.learn(fingerprint(Isolation::RepeatableRead));
    state.learn_counts(Some(counts(CountedTables::Temporary(0), 0)));
    assert!(state.scope().is_ok());
}

#[test]
fn table_locks_end_where_the_session_says_so() {
    let mut state = session(Isolation::RepeatableRead);
    let locked = effects(SessionEffect::LockedTables, Transaction::ImplicitCommit);
    state.after(&locked, None, &ok(AUTOCOMMIT));
    assert_eq!(state.scope(), Err(Bypass::LockedTables));
    let unlocked = effects(SessionEffect::UnlockedTables, Transaction::ImplicitCommit);
    state.after(&unlocked, None, &ok(AUTOCOMMIT));
    assert!(state.scope().is_ok());
}

#[test]
fn a_transaction_that_writes_very_many_tables_has_written_everything() {
    let mut state = session(Isolation::ReadCommitted);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    for number in 0..=WRITTEN_TABLE_TAGS_MAX {
        let scope = table(&number.to_string());
        state.after(&Effects::NONE, Some(&scope), &ok(IN_TRANSACTION));
    }
    assert_eq!(state.written(), &Written::Everything);
}

#[test]
fn a_transaction_that_writes_very_many_rows_has_written_their_tables() {
    let mut state = session(Isolation::ReadCommitted);
    state.after(&BEGIN, None, &ok(IN_TRANSACTION));
    let whole = vec![Tag::table("shop", "orders")];
    for number in 0..=WRITTEN_TAGS_MAX {
        let scope = WriteScope::Tables {
            fine: vec![Tag::table("row", &number.to_string())],
            whole: whole.clone(),
        };
        state.after(&Effects::NONE, Some(&scope), &ok(IN_TRANSACTION));
    }
    assert_eq!(state.written().scope(), FenceScope::Tables(whole));
}

/// A row that the server has read, after the question about the log's end of this number.
fn row(timeline: &Timeline) -> Effects {
    Effects {
        snapshot: Evidence::Seen(timeline.end_questions()),
        ..Effects::NONE
    }
}

fn repeatable() -> (SessionState, Arc<Timeline>) {
    let limits = TimelineLimits {
        tag_slots: 64,
        fence_slots: 64,
        lag_ms_max: 1_000,
    };
    let timeline = Arc::new(Timeline::new(limits, BrokenRules::default()));
    timeline.restart(Position::new(1, 100).unwrap());
    assert!(timeline.prove(timeline.epoch(), 1_000));
    let state = session(Isolation::RepeatableRead);
    let state = state.with_transaction_reads(TransactionReads::AfterSnapshot);
    (state, timeline)
}

/// Sends a message with these effects, whose answer has these flags.
fn sends(state: &mut SessionState, timeline: &Timeline, effects: &Effects, status: StatusFlags) {
    let low = state.wants_low(effects).then(|| timeline.as_of());
    state.sends(low.flatten());
    state.after(effects, None, &ok(status));
}

#[test]
fn a_transaction_is_looked_up_when_a_row_has_shown_its_snapshot() {
    let (mut state, timeline) = repeatable();
    sends(&mut state, &timeline, &BEGIN, IN_TRANSACTION);
    assert_eq!(state.scope(), Err(Bypass::SnapshotNotMade));
    sends(&mut state, &timeline, &Effects::NONE, IN_TRANSACTION);
    assert_eq!(state.scope(), Err(Bypass::SnapshotNotMade), "no row came");
    sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
    assert!(state.scope().is_ok());
    assert_eq!(state.snapshot().map(|it| it.low), timeline.as_of());
}

#[test]
fn a_snapshot_is_no_older_than_its_transaction_and_its_low_no_younger() {
    let (mut state, timeline) = repeatable();
    sends(&mut state, &timeline, &BEGIN, IN_TRANSACTION);
    let first = timeline.as_of().unwrap();
    timeline.set_applied(Position::new(1, 200).unwrap());
    timeline.advance_visible(timeline.epoch(), Position::new(1, 200).unwrap());
    sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
    assert_eq!(state.snapshot().map(|it| it.low), Some(first));
    let chain = effects(SessionEffect::None, Transaction::Commit);
    sends(&mut state, &timeline, &chain, IN_TRANSACTION);
    assert_eq!(state.snapshot(), None);
    sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
    assert_eq!(state.snapshot().map(|it| it.low), timeline.as_of());
}

#[test]
fn a_statement_that_may_have_ended_the_transaction_leaves_the_snapshot_in_doubt() {
    let doubtful = [
        effects(SessionEffect::None, Transaction::ImplicitCommit),
        effects(SessionEffect::SettingsChanged, Transaction::None),
        Effects {
            unseen_code: UnseenCode::Possible,
            ..Effects::NONE
        },
        Effects {
            may_turn_log_off: true,
            ..Effects::NONE
        },
    ];
    for effects in doubtful {
        let (mut state, timeline) = repeatable();
        sends(&mut state, &timeline, &BEGIN, IN_TRANSACTION);
        sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
        let made_after = state.snapshot().unwrap().made_after;
        timeline.begin_end_question();
        sends(&mut state, &timeline, &effects, IN_TRANSACTION);
        state.learn(fingerprint(Isolation::RepeatableRead));
        assert_eq!(state.snapshot(), None, "{effects:?}");
        sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
        assert!(state.snapshot().unwrap().made_after > made_after);
    }
    let (mut state, timeline) = repeatable();
    sends(&mut state, &timeline, &BEGIN, IN_TRANSACTION);
    sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
    state.sends(None);
    state.after(&Effects::NONE, None, &error());
    assert_eq!(state.snapshot(), None, "a deadlock has rolled it back");
}

#[test]
fn a_transaction_that_begins_while_nothing_is_followed_is_not_looked_up() {
    let (mut state, timeline) = repeatable();
    timeline.suspend();
    sends(&mut state, &timeline, &BEGIN, IN_TRANSACTION);
    timeline.resume();
    sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
    assert_eq!(state.scope(), Err(Bypass::SnapshotUnknown));
}

#[test]
fn with_autocommit_off_the_first_read_begins_the_transaction() {
    let (mut state, timeline) = repeatable();
    let (off, open) = (StatusFlags::default(), StatusFlags::IN_TRANSACTION);
    turn_off(&mut state, &timeline);
    assert_eq!(state.scope(), Err(Bypass::AutocommitOff));
    let low = timeline.as_of();
    sends(&mut state, &timeline, &row(&timeline), open);
    assert_eq!(state.snapshot().map(|it| it.low), low);
    sends(&mut state, &timeline, &Effects::NONE, off);
    assert_eq!(state.snapshot(), None);
}

#[test]
fn a_read_of_remoras_own_may_take_the_snapshot() {
    let (mut state, timeline) = repeatable();
    turn_off(&mut state, &timeline);
    let before = timeline.as_of();
    state.may_have_snapshot(before);
    timeline.set_applied(Position::new(1, 200).unwrap());
    timeline.advance_visible(timeline.epoch(), Position::new(1, 200).unwrap());
    sends(
        &mut state,
        &timeline,
        &row(&timeline),
        StatusFlags::IN_TRANSACTION,
    );
    assert_eq!(state.snapshot().map(|it| it.low), before);
}

#[test]
fn after_a_refused_change_of_user_the_snapshot_is_in_doubt() {
    let (mut state, timeline) = repeatable();
    sends(&mut state, &timeline, &BEGIN, IN_TRANSACTION);
    sends(&mut state, &timeline, &row(&timeline), IN_TRANSACTION);
    state.refused_user();
    state.learn(fingerprint(Isolation::RepeatableRead));
    sends(&mut state, &timeline, &Effects::NONE, IN_TRANSACTION);
    assert_eq!(state.snapshot(), None);
}

#[test]
fn warnings_are_kept_until_a_table_has_been_used_without_any() {
    let warned = |count| Summary {
        mark: Some(EndMark {
            status: AUTOCOMMIT,
            warnings: count,
        }),
        ..ok(AUTOCOMMIT)
    };
    let with = |table_use| Effects {
        table_use,
        ..Effects::NONE
    };
    for left_by in [warned(1), error()] {
        let mut state = session(Isolation::RepeatableRead);
        assert!(!state.may_have_warnings());
        state.after(&with(TableUse::Certain), None, &left_by);
        for table_use in [TableUse::None, TableUse::Possible] {
            state.after(&with(table_use), None, &warned(0));
        }
        assert!(state.may_have_warnings());
        state.after(&with(TableUse::Certain), None, &warned(0));
        assert!(!state.may_have_warnings());
    }
}
