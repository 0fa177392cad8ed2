import static java.util.stream.Collectors.joining;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** The check {@code transaction_reads}, for all that begin transactions in a way of their own. */
final class TransactionReads {
    /** One side's transactions. */
    interface Side {
        /** In one transaction: reads these rows of w_reads, does something, reads those. */
        List<String> within(boolean readOnly, List<Integer> before, Environment.Check between, List<Integer> after)
                throws Exception;

        /** An own write inside a transaction: row 5 becomes 2. */
        void write() throws Exception;
    }

    static void check(Side direct, Side remora) throws Exception {
        try (var writer = Session.connect("direct")) {
            writer.run("CREATE TABLE w_reads (id INT PRIMARY KEY, value INT) ENGINE=InnoDB",
                    "INSERT INTO w_reads VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)");
            var expected = observe(direct, writer);
            var values = expected.stream().map(answer -> answer.strip().substring(answer.strip().length() - 1)).collect(joining());
            Environment.same("directly", values, "0000000000010002");
            // Of the rows that nobody changes, all reads but the first of each transaction.
            int allowed = expected.size() * 5 / 8;
            int seen = 0;
            for (var until = Instant.now().plus(Environment.WARM_UP); seen < allowed && Instant.now().isBefore(until);) {
                int before = Environment.hits();
                var answers = observe(remora, writer);
                Environment.same("answers inside transactions", String.join("\n", answers), String.join("\n", expected));
                seen = Math.max(seen, Environment.hitsSince(before, expected.size()));
            }
            System.out.println("hits transactions " + seen + " " + expected.size());
        }
    }

    private static List<String> observe(Side side, Session writer) throws Exception {
        writer.run("UPDATE w_reads SET value = 0");
        var others = (Environment.Check) () -> writer.run("UPDATE w_reads SET value = 1 WHERE id = 4");
        var seen = new ArrayList<>(side.within(true, List.of(1, 2, 3, 4), others, List.of(1, 2, 3, 4)));
        seen.addAll(side.within(false, List.of(1, 2, 3, 4), side::write, List.of(1, 2, 3, 5)));
        return seen;
    }
}
