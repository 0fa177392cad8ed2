<?php
// What the runner tells a program (see ../README.md), and how a program answers.

declare(strict_types=1);

function variable(string $name): string
{
    return (string) getenv("DRIVER_$name");
}

function words(string $name): array
{
    return array_values(array_filter(explode(' ', variable($name))));
}

const SIDES = ['direct', 'remora'];

/** How long reads are repeated until memory answers as many of them as it can. */
const WARM_UP_S = 120;

function port(string $side): int
{
    return (int) variable($side === 'direct' ? 'SERVER_PORT' : 'REMORA_PORT');
}

/** The driver, or the run, has no such thing. */
final class NotThere extends Exception
{
}

/** Statements that Remora has answered from memory. */
function hits(): int
{
    $page = file_get_contents('http://' . variable('ADMIN') . '/metrics');
    preg_match('/^remora_hits_total (\d+)/m', $page, $found);
    return (int) $found[1];
}

/** Hits since then, at most as many as expected; they are counted after their answers were sent. */
function hitsSince(int $before, int $expected): int
{
    for ($tries = 0; $tries < 10 && hits() - $before < $expected; $tries++) {
        usleep(20_000);
    }
    return min(hits() - $before, $expected);
}

function say(string ...$words): void
{
    echo implode(' ', $words), "\n";
}

/** Runs one check and reports it in one line. */
function check(array $wanted, string $name, callable $run): void
{
    if ($wanted && !in_array($name, $wanted, true)) {
        return;
    }
    try {
        $run();
        say('ok', $name);
    } catch (NotThere $reason) {
        say('none', $name, $reason->getMessage());
    } catch (Throwable $error) {
        if (getenv('DRIVER_TRACE')) {
            echo $error, "\n";
        }
        say('FAIL', $name, substr(preg_replace('/\s+/', ' ', $error->getMessage()), 0, 600));
    }
}

function expect(bool $condition, mixed $what): void
{
    if (!$condition) {
        throw new Exception(is_string($what) ? $what : show($what));
    }
}

/** A value as text, with its types; long texts as a digest. */
function show(mixed $value): string
{
    if (is_string($value)) {
        return strlen($value) > 1000 ? strlen($value) . ' bytes ' . sha1($value) : var_export($value, true);
    }
    if (is_array($value) || is_object($value)) {
        $shown = '';
        foreach ((array) $value as $key => $one) {
            $shown .= "$key: " . show($one) . "\n";
        }
        return "[$shown]";
    }
    return gettype($value) . ' ' . var_export($value, true);
}

/** The two must be equal; the message shows where they begin to differ. */
function same(string $what, mixed $seen, mixed $expected): void
{
    [$seen, $expected] = [show($seen), show($expected)];
    if ($seen === $expected) {
        return;
    }
    $at = strspn($seen ^ $expected, "\0");
    $window = fn (string $text) => substr($text, max(0, $at - 40), 160);
    throw new Exception("$what: through Remora …{$window($seen)} instead of …{$window($expected)}");
}
