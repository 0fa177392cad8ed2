import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** What the runner tells a program (see ../README.md), and how a program answers. */
final class Environment {
    static final Map<String, String> PORTS =
            Map.of("direct", variable("SERVER_PORT"), "remora", variable("REMORA_PORT"));
    static final List<String> SIDES = List.of("direct", "remora");
    static final List<String> TABLES = words("TABLES");
    static final List<String> PASSED_TABLES = words("PASSED_TABLES");
    static final int[] LARGE_LENGTHS = words("LARGE_LENGTHS").stream().mapToInt(Integer::parseInt).toArray();
    static final boolean TLS = variable("TLS").equals("on");
    /** How long reads are repeated until memory answers as many of them as it can. */
    static final Duration WARM_UP = Duration.ofMinutes(2);

    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    static String variable(String name) {
        return System.getenv("DRIVER_" + name);
    }

    static List<String> words(String name) {
        return List.of(variable(name).trim().split(" "));
    }

    /** The driver, or the run, has no such thing. */
    static final class NotThere extends RuntimeException {
        NotThere(String reason) {
            super(reason);
        }
    }

    interface Check {
        void run() throws Exception;
    }

    /** Statements that Remora has answered from memory. */
    static int hits() throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create("http://" + variable("ADMIN") + "/metrics")).build();
        var page = CLIENT.send(request, HttpResponse.BodyHandlers.ofString()).body();
        var line = page.lines().filter(one -> one.startsWith("remora_hits_total ")).findFirst();
        return Integer.parseInt(line.orElseThrow().split(" ")[1]);
    }

    /** Hits since then, at most as many as expected; they are counted after their answers were sent. */
    static int hitsSince(int before, int expected) throws IOException, InterruptedException {
        for (int tries = 0; tries < 10 && hits() - before < expected; tries++) {
            Thread.sleep(20);
        }
        return Math.min(hits() - before, expected);
    }

    /** Runs one check and reports it in one line. */
    static void check(List<String> wanted, String name, Check check) {
        if (!wanted.isEmpty() && !wanted.contains(name)) {
            return;
        }
        try {
            check.run();
            System.out.println("ok " + name);
        } catch (NotThere reason) {
            System.out.println("none " + name + " " + reason.getMessage());
        } catch (Exception | AssertionError error) {
            if (System.getenv("DRIVER_TRACE") != null) {
                error.printStackTrace();
            }
            var text = error.toString().replaceAll("\\s+", " ");
            System.out.println("FAIL " + name + " " + text.substring(0, Math.min(text.length(), 600)));
        }
    }

    static void expect(boolean condition, Object what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    /** The two must be equal; the message shows where they begin to differ. */
    static void same(String what, String seen, String expected) {
        if (seen.equals(expected)) {
            return;
        }
        int at = 0;
        while (at < Math.min(seen.length(), expected.length()) && seen.charAt(at) == expected.charAt(at)) {
            at++;
        }
        throw new AssertionError(
                what + ": through Remora …" + window(seen, at) + " instead of …" + window(expected, at));
    }

    private static String window(String text, int at) {
        return text.substring(Math.max(0, at - 40), Math.min(text.length(), at + 120));
    }

    /** Stands for a long value. */
    static String digest(byte[] value) throws Exception {
        return value.length + " bytes " + HexFormat.of().formatHex(MessageDigest.getInstance("SHA-1").digest(value));
    }
}
